// Static condensation (see condense.cl) by tensor cores: TEAMS teams of WARPS warps take a cell each, whose matrix is a sum
// over points, eight numbers of points at once, of their functions times derivatives times functions. For one component.
// After condense_warp_cell.clh.
// needs: SIZE NI NT NQ NQF NFACETS JUMPS WARPS TEAMS PAIRS COLUMN_BLOCKS POINT_ROWS WEIGHTS POINTS_FASTEST
// needs: PANEL_REALS WARP_RESULTS BLOCK_PITCH
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
  EACH_PAIR(a) {
    const real2 upper = COPIED(rows + (2 * a * 32 + lane) * 2), lower = COPIED(rows + ((2 * a + 1) * 32 + lane) * 2);
    EACH_BLOCK(b) if (IS_KEPT(a, b))
      MMA(BLOCK_AT(a, b), upper.x, lower.x, upper.y, lower.y, image[b].x, image[b].y);
  }
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
  EACH_PAIR(a) {
    const real2 upper = COPIED(rows + (2 * a * 32 + lane) * 2), lower = COPIED(rows + ((2 * a + 1) * 32 + lane) * 2);
    EACH_BLOCK(b) if (IS_KEPT(a, b))
      MMA(BLOCK_AT(a, b), upper.x, lower.x, upper.y, lower.y, image[b].x, image[b].y);
  }
}
#endif

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void condense(CONDENSE_ARGUMENTS, int batch, __global real *scratch, __global real *schur, __global real *recovery,
              __global real *residual, __global real *solution, __global real *status)
{
  __local real all_states[TEAMS * ND], taus[LANES];
  __local real reals[TEAMS * TEAM_REALS] __attribute__((aligned(16)));
  __local int some;  // whether any state is not zero
#if NATURAL
  __local real boundary[TEAMS * BOUNDARY_POINTS * BLOCK];
#endif
  WARP_SCRATCH
  const int lane = get_local_id(0), row0 = lane % 32 / 4, quad = lane % 4, member = lane % (32 * WARPS);
  const int team = lane / (32 * WARPS), warp = member / 32;
  const bool active = get_group_id(0) * TEAMS + team < num_cells;  // others go along, because work-items meet barriers
  const int item = active ? get_group_id(0) * TEAMS + team : num_cells - 1, cell = first + item;
  __local real *held = reals + team * TEAM_REALS, *states = all_states + team * ND;
  POINT_LOAD_CONSTANTS
  POINT_LOAD_AUX(cell)
  Geometry g;
  geometry_load(&g, nodes, cell_nodes, 0, stride, cell);
  if (lane == 0) some = 0;
  GROUP_BARRIER();
  for (int k = member; k < ND; k += 32 * WARPS) {
    states[k] = condense_gather(interior, trace_owned, trace_tail, n_owned, dofs, stride, cell, k);
    if (states[k] != 0) some = 1;
  }
  GROUP_BARRIER();
  __local const real *s = some ? states : 0;
  real entry[PAIRS * COLUMN_BLOCKS * 4];
  UNROLL for (int k = 0; k < PAIRS * COLUMN_BLOCKS * 4; ++k) entry[k] = 0;
  for (int q0 = 0; q0 < NQ; q0 += HELD) {
    const int q = q0 + member;
    if (member < HELD && q < NQ) {
      geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
      __local real *mine = held + member * HELD_REALS;
      for (int k = NP * BLOCK_PITCH; k < HELD_REALS; ++k) mine[k] = 0;
      condense_block(true, STATE_OP(q), AUX_AT(AUX_BASIS, q, AUX_NODES), AUX_AT(AUX_GRAD, q, AUX_NODES * DIM),
                     GEO + q * NNODES, &g, WEIGHTS[q] * g.measure, t, constants, aux_e, s, mine);
    } else if (member < HELD && q <= NQ) {
      for (int k = 0; k < HELD_REALS; ++k) held[member * HELD_REALS + k] = 0;
    }
    GROUP_BARRIER();  // of all teams, so that they read the same functions at a time, from the first-level cache
    for (int p = 0; p < HELD && q0 + p < NQ; p += 2)
      points_add(entry, warp, row0, quad, POINT_ROWS + (q0 + p) / 2 * OCTETS * 64, held + p * HELD_REALS, mma_scratch);
    GROUP_BARRIER();
  }
  real least = REAL_HUGE;
#if JUMPS
  for (int q0 = 0; q0 < NFACETS * NQF; q0 += 32 * WARPS) {
    const int q = q0 + member;
    real values[2] = {0, 0};
    if (q < NFACETS * NQF) {
      geometry_point(&g, FACET_GEO_GRAD + q * NNODES * DIM);
      least = fmin(least, condense_jump_values(STATE_JUMP(q), AUX_AT(FACET_AUX_BASIS, q, AUX_NODES),
                                               AUX_AT(FACET_AUX_GRAD, q, AUX_NODES * DIM), FACET_GEO + q * NNODES,
                                               FACET_NORMALS + q / NQF * DIM, &g, FACET_WEIGHTS[q], STABILIZATION(q / NQF), t,
                                               constants, aux_e, s, values));
    }
    PAIR_OF(held + 2 * member) = (real2)(values[0], values[1]);
    GROUP_BARRIER();
    for (int p = 0; p < 32 * WARPS && q0 + p < NFACETS * NQF; p += 8)
      points_add_jumps(entry, warp, row0, quad, JUMP_ROWS + (q0 + p) / 8 * OCTETS * 64, held + 2 * p, mma_scratch);
    GROUP_BARRIER();
  }
#endif
  taus[lane] = least;
  WARP_NATURAL(cell, s, boundary + team * BOUNDARY_POINTS * BLOCK)
  const real pivot = warp_eliminate(entry, team, warp, row0, quad, held, mma_scratch);
  if (!active) return;
  if (member == 0) {
    for (int k = 0; k < 32 * WARPS; ++k) least = fmin(least, taus[lane + k]);
    status[cell] = least > 0 ? pivot : -1;
  }
  WARP_RESULTS(item, cell)
}
