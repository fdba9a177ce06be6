// Static condensation (see condense.cl) by tensor cores: a work-group takes CELLS cells, whose residuals are one product,
// then TEAMS teams of WARPS warps condense one cell after the other in registers. For physics whose derivatives are the same at all points of
// an affine cell: matrices are a few numbers of the cell times matrices of the reference cell (Kirby and Logg 2006).
// After condense_warp_cell.clh and condense_batch.clh.
// needs: ARGUMENTS SIZE WARPS TEAMS PAIRS COLUMN_BLOCKS SYMMETRIC NTERMS TERM_ROW TERM_COLUMN TILED TILED_TERMS JUMPS CELLS
// needs: PANEL_REALS CELL_BLOCK WARP_RESULTS
//
// Tables; elements of lane 4 row0 + quad as in condense_warp.clh
//   TERM_ROW, TERM_COLUMN [NTERMS]  row and column (value: 0, reference gradient: 1 … DIM) of the derivative of each term
//   TILED [PAIRS, WARPS COLUMN_BLOCKS, NTERMS + F if JUMPS, 2, lane, 2]  Σ weight OP[row] OP[column], then squares of jumps
//   TILED_TERMS [PAIRS, COLUMN_BLOCKS]  bit k: one of these octets of columns of the warps has a part of matrix k
// Arrays: as in condense.cl; there is no scratch.

#define FACTORS (NTERMS + JUMPS * NFACETS)

// Factor of table k in the entry of components i and j.
static inline real warp_factor(__local const real *block, int k, int i, int j)
{
  if (k < NTERMS) return block[(i * NP + TERM_ROW[k]) * (NR + 1) + j * NP + TERM_COLUMN[k]];
  return i == j ? block[BLOCK + (k - NTERMS) * 2 * NC + i] : 0;
}

// Set the entries of a cell: block as CELL_BLOCK says, sums [ND] the residual.
static inline void warp_constant(real *entry, int warp, int row0, int quad, TABLE const real *tiled,
                                 __local const real *block, __local const real *sums)
{
#if NC == 1
  real factors[FACTORS];
  UNROLL for (int k = 0; k < FACTORS; ++k) factors[k] = warp_factor(block, k, 0, 0);
#endif
  EACH_PAIR(a) EACH_BLOCK(b) if (IS_KEPT(a, b)) {
    real *v = BLOCK_AT(a, b);
    TABLE const real2 *table = (TABLE const real2 *)tiled + (a * COLUMN_BLOCKS * WARPS + b * WARPS + warp) * FACTORS * 64;
    table += 4 * row0 + quad;
    EACH_ELEMENT(e) v[e] = 0;
    UNROLL for (int k = 0; k < FACTORS; ++k) if (TILED_TERMS[a * COLUMN_BLOCKS + b] >> k & 1) {
      const real2 upper = table[64 * k], lower = table[64 * k + 32];
#if NC == 1
      v[0] += factors[k] * upper.x;
      v[1] += factors[k] * upper.y;
      v[2] += factors[k] * lower.x;
      v[3] += factors[k] * lower.y;
#else
      EACH_ELEMENT(e) {
        const real value = e == 0 ? upper.x : e == 1 ? upper.y : e == 2 ? lower.x : lower.y;
        v[e] += warp_factor(block, k, ROW_OF(a, e) % NC, COLUMN_OF(b, e) % NC) * value;
      }
#endif
    }
    if ((b + 1) * WARPS * 8 > SIZE)
      EACH_ELEMENT(e) if (COLUMN_OF(b, e) == SIZE && ROW_OF(a, e) < SIZE) v[e] = sums[ROW_OF(a, e)];
  }
}

KERNEL(LANES) void condense(ARGUMENTS)
{
  __local real sums[CELLS * ND], blocks[CELLS * CELL_BLOCK], taus[LANES];
  __local real panels[TEAMS * PANEL_REALS > CELLS * ND ? TEAMS * PANEL_REALS : CELLS * ND] __attribute__((aligned(16)));
#if NATURAL
  __local real states[CELLS * ND], boundary[TEAMS * BOUNDARY_POINTS * BLOCK];
#else
  __local real *states = panels;  // which are not read after the residuals
#endif
  WARP_SCRATCH
  WARP_PLACE
  const int item0 = get_group_id(0) * CELLS;
  POINT_LOAD_CONSTANTS
  CONDENSE_BATCH(states, sums, blocks, taus)
  for (int c = team; c < CELLS; c += TEAMS) {
    const bool active = item0 + c < num_cells;  // others go along, because work-items meet barriers
    const int item = active ? item0 + c : num_cells - 1, cell = first + item;
    real entry[PAIRS * COLUMN_BLOCKS * 4];
    GROUP_BARRIER();  // so that teams read the same matrices at a time, from the first-level cache
    warp_constant(entry, warp, row0, quad, TILED, blocks + c * CELL_BLOCK, sums + c * ND);
    WARP_NATURAL(cell, states + c * ND, boundary + team * BOUNDARY_POINTS * BLOCK)
    const real pivot = warp_eliminate(entry, team, warp, row0, quad, panels + team * PANEL_REALS, mma_scratch);
    if (!active) continue;
    if (member == 0) {
      real least = REAL_HUGE;
      for (int k = 0; k < LANES / CELLS; ++k) least = fmin(least, taus[k * CELLS + c]);
      status[cell] = least > 0 ? pivot : -1;
    }
    WARP_RESULTS(item, cell)
  }
}
