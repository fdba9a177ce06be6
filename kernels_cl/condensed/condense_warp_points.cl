// Static condensation (see condense.cl) by tensor cores: TEAMS teams of WARPS warps take a cell each, whose matrix is a sum
// over points, eight numbers of points at once, of their functions times derivatives times functions. For one component.
// After condense_warp_cell.clh.
// needs: ARGUMENTS SIZE NI NT NQ NQF NFACETS JUMPS WARPS TEAMS PAIRS COLUMN_BLOCKS POINT_ROWS WEIGHTS POINTS_FASTEST
// needs: PANEL_REALS WARP_FINISH BLOCK_PITCH
// optional: JUMP_ROWS JUMP
//
// Tables, zeros standing where there is no function or point, numbers p of points up to 4
//   POINT_ROWS [NQ / 2, OCTETS, lane, 2]     of lane 4 g + t: OP of function 8 i + g at point 2 s + t / 2, number
//                                            2 (t % 2) + e at [s, i, lane, e]
//   JUMP_ROWS [F NQF / 8, OCTETS, lane, 2]   of lane 4 g + t: JUMP of function 8 i + g at point 8 s + 4 e + t of all facets
// Arrays: as in condense.cl; there is no scratch.

#define OCTETS (WARPS * COLUMN_BLOCKS > 2 * PAIRS ? WARPS * COLUMN_BLOCKS : 2 * PAIRS)
// Points whose derivatives local memory holds, rows of numbers that DIM leaves out being zero.
#define HELD 32
#define HELD_REALS (4 * BLOCK_PITCH)
#define TEAM_REALS (PANEL_REALS > HELD * HELD_REALS ? PANEL_REALS : HELD * HELD_REALS)
#define COPIED(v) (*(TABLE const real2 *)(v))

// Add rows of functions times their images.
static inline void points_multiply(real *entry, int warp, int lane, TABLE const real *rows, const real2 *image,
                                   __local real *mma_scratch)
{
  EACH_PAIR(a) {
    const real2 upper = COPIED(rows + (2 * a * 32 + lane) * 2), lower = COPIED(rows + ((2 * a + 1) * 32 + lane) * 2);
    EACH_BLOCK(b) if (IS_KEPT(a, b))
      MMA(BLOCK_AT(a, b), upper.x, lower.x, upper.y, lower.y, image[b].x, image[b].y);
  }
}

// Add two points with derivatives held [2, HELD_REALS].
static inline void points_add(real *entry, int warp, int row0, int quad, TABLE const real *rows, __local const real *held,
                              __local real *mma_scratch)
{
  const int lane = 4 * row0 + quad;
  __local const real *first = held + quad / 2 * HELD_REALS + quad % 2 * 2 * BLOCK_PITCH, *second = first + BLOCK_PITCH;
  real2 image[COLUMN_BLOCKS];
  EACH_BLOCK(b) {
    const int octet = b * WARPS + warp;
    TABLE const real *op = rows + (octet * 32 + lane - quad % 2) * 2;
    const real2 low = COPIED(op), high = COPIED(op + 2);
    image[b].x = first[0] * low.x + first[1] * low.y + first[2] * high.x + first[3] * high.y;
    image[b].y = second[0] * low.x + second[1] * low.y + second[2] * high.x + second[3] * high.y;
    if ((b + 1) * WARPS * 8 > SIZE && 8 * octet + row0 == SIZE) image[b] = (real2)(first[NR], second[NR]);
  }
  points_multiply(entry, warp, lane, rows, image, mma_scratch);
}

#if JUMPS
// Add eight points of facets with weighted tau, and that times the jump, held [8, 2].
static inline void points_add_jumps(real *entry, int warp, int row0, int quad, TABLE const real *rows, __local const real *held,
                                    __local real *mma_scratch)
{
  const int lane = 4 * row0 + quad;
  real2 image[COLUMN_BLOCKS];
  EACH_BLOCK(b) {
    const int octet = b * WARPS + warp;
    image[b] = COPIED(rows + (octet * 32 + lane) * 2) * (real2)(held[2 * quad], held[2 * quad + 8]);
    if ((b + 1) * WARPS * 8 > SIZE && 8 * octet + row0 == SIZE)
      image[b] = (real2)(held[2 * quad + 1], held[2 * quad + 9]);
  }
  points_multiply(entry, warp, lane, rows, image, mma_scratch);
}
#endif

KERNEL(LANES) void condense(ARGUMENTS)
{
  __local real reals[TEAMS * TEAM_REALS] __attribute__((aligned(16)));
  WARP_SCRATCH
  WARP_PLACE
  WARP_CELL
  __local real *held = reals + team * TEAM_REALS;
  for (int q0 = 0; q0 < NQ; q0 += HELD) {
    const int q = q0 + member;
    if (member < HELD && q < NQ) {
      geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
      __local real *mine = held + member * HELD_REALS;
      for (int k = NP * BLOCK_PITCH; k < HELD_REALS; ++k) mine[k] = 0;
      condense_block(true, AT_INSIDE(q), s, mine);
    } else if (member < HELD && q <= NQ) {
      for (int k = 0; k < HELD_REALS; ++k) held[member * HELD_REALS + k] = 0;
    }
    GROUP_BARRIER();  // of all teams, so that they read the same functions at a time, from the first-level cache
    for (int p = 0; p < HELD && q0 + p < NQ; p += 2)
      points_add(entry, warp, row0, quad, POINT_ROWS + (q0 + p) / 2 * OCTETS * 64, held + p * HELD_REALS, mma_scratch);
    GROUP_BARRIER();
  }
#if JUMPS
  for (int q0 = 0; q0 < NFACETS * NQF; q0 += 32 * WARPS) {
    const int q = q0 + member;
    real values[2] = {0, 0};
    if (q < NFACETS * NQF) {
      geometry_point(&g, FACET_GEO_GRAD + q * NNODES * DIM);
      least = fmin(least, condense_jump_values(AT_JUMP(q), s, values));
    }
    PAIR_OF(held + 2 * member) = (real2)(values[0], values[1]);
    GROUP_BARRIER();
    for (int p = 0; p < 32 * WARPS && q0 + p < NFACETS * NQF; p += 8)
      points_add_jumps(entry, warp, row0, quad, JUMP_ROWS + (q0 + p) / 8 * OCTETS * 64, held + 2 * p, mma_scratch);
    GROUP_BARRIER();
  }
#endif
  taus[lane] = least;
  WARP_FINISH(held)
}
