// Static condensation (see condense.cl) by tensor cores on hexahedra: TEAMS teams of WARPS warps take a cell
// each, whose matrix is summed one axis after the other (Orszag 1980), a slice of points of the last axis at a time. For one
// component and functions that are products (tensor_factors.py). After condense_warp_cell.clh.
//
// All steps have one form. The derivatives D [1 + DIM, 1 + DIM + 1] at a point, whose last column is the flux, become a matrix of
// functions along the first axis, that one a matrix of functions on a slice, that one the cell's: entry (i, j) is a sum over the points
// of an axis of two numbers of row i times two of column j times the four entries of the matrix before at the rows and columns
// which i and j come from. Points of facets are two more points of the axis across them, where jumps stand for slopes and τ for D.
// needs: ARGUMENTS SIZE NQ NQF NFACETS WARPS TEAMS PAIRS COLUMN_BLOCKS LINE_NODES LINE_POINTS HELD_SLICES COLUMNS COLUMNS_SLICE INDICES PANEL_REALS
// needs: WARP_FINISH POINT_AT FACET_POINT_AT LINE LINE_FACTORS SLICE_FACTORS LAST_FACTORS FROM HAS
// needs: POINTS_FASTEST WEIGHTS FACET_WEIGHTS JUMPS
//
// Tables, N = LINE_NODES, Q = LINE_POINTS; factors [0] is for the first row that one comes from, [1] for the second; the two points
// behind Q are the ends of an axis
//   LINE [Q + 2, N + 2, 2]                value and lifted slope; 0 and jump at the ends
//   LINE_FACTORS [Q + 2, COLUMNS, 2]      of functions of a line: with value and first slope (N + 2), slopes along each other axis (N
//                                         each), the flux
//   SLICE_FACTORS [Q + 2, COLUMNS_SLICE, 2]  of functions of a slice: N (N + 2) + 2 N, then N² slopes across, the flux
//   LAST_FACTORS [Q + 2, INDICES, 2]      of functions of the cell, SIZE being the flux
//   FROM [COLUMNS + COLUMNS_SLICE + INDICES, 2]  of all these, the rows or columns they come from
//   HAS [INDICES / 8]                     bit 0: factors [0] inside, 1: factors [1], 2: the flux
//   POINT_AT [Q, …]                       point of the rule by the places of its coordinates
//   FACET_POINT_AT [axis, end, Q, …]      likewise of facets
// Arrays: as in condense.cl; there is no scratch.

#define LINES (LINE_NODES + 2)
#define ROWS (COLUMNS - 1)
#define FACE (LINE_POINTS * LINE_POINTS)
#define MEMBERS (32 * WARPS)
#define END_MATRIX (LINE_NODES * (LINE_NODES + 1))
// Local memory of a team: τ and τ times the jump on facets; derivatives of HELD_SLICES slices; matrices of lines; of a slice.
#define FACET_REALS (4 * DIM * FACE)
#define HELD_REALS (HELD_SLICES * FACE * BLOCK)
#define LINE_REALS (LINE_POINTS * ROWS * COLUMNS + 2 * END_MATRIX)
#define SLICE_REALS ((COLUMNS_SLICE - 1) * COLUMNS_SLICE)
#define SUM_REALS (FACET_REALS + HELD_REALS + LINE_REALS + SLICE_REALS)
#define TEAM_REALS (((PANEL_REALS > SUM_REALS ? PANEL_REALS : SUM_REALS) + 1) / 2 * 2)
#define FACET_VALUES(facets, axis, end, k) ((facets) + (((axis) * 2 + (end)) * FACE + (k)) * 2)

// Matrices [ROWS, COLUMNS] of the lines of a slice from its blocks, or from τ where the slice is a facet. A work-item has columns.
static inline void tensor_lines(__local real *lines, TABLE const real *table, __local const int *from, __local const real *blocks, __local const real *facets,
                                int slice, int member)
{
  for (int item = member; item < LINE_POINTS * COLUMNS; item += MEMBERS) {
    const int column = item % COLUMNS, line = item / COLUMNS, from0 = from[2 * column];
    const int from1 = from[2 * column + 1];
    TABLE const real2 *factors = (TABLE const real2 *)table + column;
    real sum[ROWS];
    UNROLL for (int k = 0; k < ROWS; ++k) sum[k] = 0;
    for (int q = 0; q < LINE_POINTS; ++q) {
      real u[NP];
      const real2 factor = factors[q * COLUMNS];
      if (slice < LINE_POINTS) {
        __local const real *block = blocks + (line * LINE_POINTS + q) * BLOCK;
        UNROLL for (int r = 0; r < NP; ++r)
          u[r] = factor.x * block[r * BLOCK_PITCH + from0] + factor.y * block[r * BLOCK_PITCH + from1];
      } else {
        __local const real *tau = FACET_VALUES(facets, DIM - 1, slice - LINE_POINTS, q * LINE_POINTS + line);
        UNROLL for (int r = 0; r < DIM; ++r) u[r] = 0;
        u[DIM] = from0 == DIM ? factor.x * tau[0] : from0 == NP ? factor.x * tau[1] : 0;
      }
      UNROLL for (int m = 0; m < LINES; ++m) sum[m] += LINE[(q * LINES + m) * 2] * u[0] + LINE[(q * LINES + m) * 2 + 1] * u[1];
      UNROLL for (int r = 2; r < NP; ++r)
        UNROLL for (int m = 0; m < LINE_NODES; ++m) sum[LINES + (r - 2) * LINE_NODES + m] += LINE[(q * LINES + m) * 2] * u[r];
    }
    for (int end = 0; end < 2 && slice < LINE_POINTS; ++end) {
      const int q = LINE_POINTS + end;
      __local const real *tau = FACET_VALUES(facets, 0, end, line * LINE_POINTS + slice);
      const real2 factor = factors[q * COLUMNS];
      const real u = factor.x * tau[1] + factor.y * tau[0];
      UNROLL for (int m = 0; m < LINES; ++m) sum[m] += LINE[(q * LINES + m) * 2 + 1] * u;
    }
    UNROLL for (int k = 0; k < ROWS; ++k) lines[(line * ROWS + k) * COLUMNS + column] = sum[k];
  }
}

// Matrices [end, LINE_NODES, LINE_NODES + 1] of the lines at both ends of the second axis: jumps of functions of the first.
static inline void tensor_ends(__local real *ends, __local const real *facets, int slice, int member)
{
  for (int item = member; item < 2 * (LINE_NODES + 1); item += MEMBERS) {
    const int column = item % (LINE_NODES + 1), end = item / (LINE_NODES + 1);
    for (int m = 0; m < LINE_NODES; ++m) {
      real sum = 0;
      for (int q = 0; q < LINE_POINTS; ++q) {
        __local const real *tau = FACET_VALUES(facets, 1, end, q * LINE_POINTS + slice);
        const real factor = column < LINE_NODES ? LINE[(q * LINES + column) * 2] * tau[0] : tau[1];
        sum += LINE[(q * LINES + m) * 2] * factor;
      }
      ends[end * END_MATRIX + m * (LINE_NODES + 1) + column] = sum;
    }
  }
}

// Matrix [COLUMNS_SLICE - 1, COLUMNS_SLICE] of a slice. A work-item has the rows of one function of the first axis.
static inline void tensor_slice(__local real *matrix, TABLE const real *table, __local const int *from, __local const real *lines, __local const real *ends,
                                int slice, int member)
{
  const bool inside = slice < LINE_POINTS;
  for (int item = member + (inside ? 0 : LINES * COLUMNS_SLICE); item < (LINES + LINE_NODES) * COLUMNS_SLICE; item += MEMBERS) {
    const int column = item % COLUMNS_SLICE, kind = item / COLUMNS_SLICE, place = kind < LINES ? kind : kind - LINES;
    const int from0 = from[2 * column], from1 = from[2 * column + 1];
    TABLE const real2 *factors = (TABLE const real2 *)table + column;
    __local const real *row = lines + (kind < LINES ? kind : kind + LINE_NODES) * COLUMNS;
    real sum[LINES];
    UNROLL for (int m = 0; m < LINES; ++m) sum[m] = 0;
    for (int q = 0; q < LINE_POINTS; ++q, row += ROWS * COLUMNS) {
      __local const real *slope = row + LINES * COLUMNS;
      const real2 factor = factors[q * COLUMNS_SLICE];
      const real u = factor.x * row[from0] + factor.y * row[from1];
      const real v = kind < LINE_NODES ? factor.x * slope[from0] + factor.y * slope[from1] : 0;
      UNROLL for (int m = 0; m < LINES; ++m) sum[m] += LINE[(q * LINES + m) * 2] * u + LINE[(q * LINES + m) * 2 + 1] * v;
    }
    for (int end = 0; end < 2 && inside && kind < LINE_NODES; ++end) {
      const int q = LINE_POINTS + end, at = from1 - LINES;
      __local const real *jumps = ends + end * END_MATRIX + kind * (LINE_NODES + 1);
      const real2 factor = factors[q * COLUMNS_SLICE];
      const real v = factor.x * jumps[LINE_NODES] + factor.y * jumps[at >= 0 && at < LINE_NODES ? at : 0];
      UNROLL for (int m = 0; m < LINES; ++m) sum[m] += LINE[(q * LINES + m) * 2 + 1] * v;
    }
    const int first = kind < LINE_NODES ? place : kind < LINES ? LINE_NODES * LINES + (kind - LINE_NODES) * LINE_NODES
                                                               : LINE_NODES * (LINES + 2) + place;
    const int step = kind < LINE_NODES || kind >= LINES ? LINE_NODES : 1, count = kind < LINE_NODES ? LINES : LINE_NODES;
    UNROLL for (int m = 0; m < LINES; ++m)
      if (m < count) matrix[(first + m * step) * COLUMNS_SLICE + column] = sum[m];
  }
}

// Add what a slice with a matrix [COLUMNS_SLICE - 1, COLUMNS_SLICE] gives the cell's.
static inline void tensor_add(real *entry, int warp, int row0, int quad, TABLE const real *table, __local const int *from, __local const real *matrix,
                              int slice)
{
  TABLE const real2 *factors = (TABLE const real2 *)table + slice * INDICES;
  const int inside = slice < LINE_POINTS;
  int first[COLUMN_BLOCKS * 2], second[COLUMN_BLOCKS * 2];
  real2 right[COLUMN_BLOCKS * 2];
  EACH_BLOCK(b) EACH_HALF(e) {
    const int j = COLUMN_OF(b, e);
    first[2 * b + e] = from[2 * j];
    second[2 * b + e] = from[2 * j + 1];
    right[2 * b + e] = factors[j];
  }
  EACH_PAIR(a) {
    const int rows = (HAS[2 * a] | HAS[2 * a + 1]) & (inside ? 3 : 2);
    EACH_HALF(h) {
      const int i = ROW_OF(a, 2 * h) < SIZE ? ROW_OF(a, 2 * h) : 0;
      __local const real *upper = matrix + from[2 * i] * COLUMNS_SLICE, *lower = matrix + from[2 * i + 1] * COLUMNS_SLICE;
      const real2 left = factors[i];
      EACH_BLOCK(b) if (IS_KEPT(a, b)) {
        const int has = HAS[b * WARPS + warp], columns = (inside ? has & 1 : has >> 2) | (has & 2);
        EACH_HALF(e) {
          const int at0 = first[2 * b + e], at1 = second[2 * b + e];
          const real2 x = right[2 * b + e];
          real above = 0, below = 0;
          if (columns & 1) {
            if (rows & 1) above += upper[at0] * x.x;
            if (rows & 2) below += lower[at0] * x.x;
          }
          if (columns & 2) {
            if (rows & 1) above += upper[at1] * x.y;
            if (rows & 2) below += lower[at1] * x.y;
          }
          BLOCK_AT(a, b)[2 * h + e] += left.x * above + left.y * below;
        }
      }
    }
  }
}

KERNEL(LANES) void condense(ARGUMENTS)
{
  __local real reals[TEAMS * TEAM_REALS] __attribute__((aligned(16)));
  __local int from[2 * (COLUMNS + COLUMNS_SLICE + INDICES)];
  WARP_SCRATCH
  WARP_PLACE
  for (int k = lane; k < 2 * (COLUMNS + COLUMNS_SLICE + INDICES); k += LANES) from[k] = FROM[k];
  WARP_CELL
  __local real *facets = reals + team * TEAM_REALS, *held = facets + FACET_REALS, *lines = held + HELD_REALS;
  __local real *ends = lines + LINE_POINTS * ROWS * COLUMNS, *matrix = ends + 2 * END_MATRIX;
  for (int k = member; k < 2 * DIM * FACE; k += MEMBERS) {
    const int q = FACET_POINT_AT[k];
    real values[2];
    geometry_point(&g, FACET_GEO_GRAD + q * NNODES * DIM);
    least = fmin(least, condense_jump_values(AT_JUMP(q), s, values));
    PAIR_OF(facets + 2 * k) = (real2)(values[0], values[1]);
  }
  taus[lane] = least;
  for (int slice = 0; slice < LINE_POINTS + 2; ++slice) {
    const int held_slice = slice % HELD_SLICES;
    if (held_slice == 0) {
      for (int k = member; k < HELD_SLICES * FACE; k += MEMBERS) {
        // [slice, line of the slice, point of the line]
        const int at = slice + k / FACE, line = k % FACE / LINE_POINTS, point = k % LINE_POINTS;
        if (at < LINE_POINTS) {
          const int q = POINT_AT[(point * LINE_POINTS + line) * LINE_POINTS + at];
          geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
          condense_block(true, AT_INSIDE(q), s, held + k * BLOCK);
        }
      }
    }
    TEAM_BARRIER(team);
    tensor_lines(lines, LINE_FACTORS, from, held + held_slice * FACE * BLOCK, facets, slice, member);
    if (slice < LINE_POINTS) tensor_ends(ends, facets, slice, member);
    TEAM_BARRIER(team);
    tensor_slice(matrix, SLICE_FACTORS, from + 2 * COLUMNS, lines, ends, slice, member);
    TEAM_BARRIER(team);
    tensor_add(entry, warp, row0, quad, LAST_FACTORS, from + 2 * (COLUMNS + COLUMNS_SLICE), matrix, slice);
  }
  WARP_FINISH(facets)
}
