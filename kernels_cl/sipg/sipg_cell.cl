// Interior penalty on quadrilaterals of low degree in one pass on a GPU, any physics, one work-item a cell: values and sums in
// registers, all loops unrolled. After sipg_node.clh.
//
// 1. own values, geometry and links   2. at each node the fluxes of the interior and of its facets to other cells, tested
// 3. rows written   4. the few facets on the boundary, added.
//
// needs: ARGUMENTS DIM NC NB N NQF NNODES NFACETS GEO_FACET CELLS TIME STATE FLUX_F1 D1 GEO_ORDER
//
// Sizes
//   CELLS  work-items of a work-group
// Arrays: arguments PASS of discretizations/sipg/arguments.py.

#if TIME
#define RATES rows_of(ut_owned, ut_tail, num_cells, num_ghosts, cell)
#else
#define RATES rows_of(u_owned, u_tail, num_cells, num_ghosts, cell)
#endif

#define WORK(values, state)                                                                                              \
  {values, state, corner, inward, sigma, link, aux, u_owned, u_tail, ut_owned, ut_tail, du_owned, du_tail, code, kinds,  \
   RATES, 0, cell, stride, num_cells, 0, t, shift}

// Rows of test functions at a node against its fluxes, added to sum [NC, NB].
INLINE void test_fluxes(const int *at, const real *f0, const real *f1, real *sum)
{
  const int node = at[0] + N * at[1];
  UNROLL for (int c = 0; c < NC; ++c) {
    sum[c * NB + node] += f0[c];
    UNROLL for (int r = 0; r < DIM; ++r)
      UNROLL for (int k = 0; k < N; ++k) sum[c * NB + node + (k - at[r]) * STRIDE(r)] += D1[at[r] * N + k] * f1[c * DIM + r];
  }
}

// Weighted fluxes of a boundary facet at its point q, tested, added to rows of the result.
INLINE void boundary_point(const Work *w, const real *constants, int direction, int side, int q, int action,
                           __global real *row, int width)
{
  const int lane = 0, behind = w->link[LINK_OF(FACET_OF(direction, side), OTHER)];
  int at[3];
  real x[DIM], sigma[NC], f0[NC], f1[NC * DIM];
  Geometry g;
  Side own;
  SideDirection d_own;
  Place p;
  facet_indices(direction, side, q, at);
  const int node = node_state(w, at, action, &g, x, &own, &d_own);
  place_of(w, direction, side, at, &g, &p);
  for (int c = 0; c < NC; ++c) sigma[c] = w->sigma[c * NFACETS + p.facet];
  boundary_fluxes(w, constants, &p, behind, sigma, x, &own, &d_own, action, f0, f1);
  point_pull_back(&g, p.weight, f0, f1);
  for (int c = 0; c < NC; ++c) {
    row[(c * NB + node) * width] += f0[c];
#if FLUX_F1
    for (int r = 0; r < DIM; ++r)
      for (int k = 0; k < N; ++k)
        row[(c * NB + node + (k - at[r]) * STRIDE(r)) * width] += D1[at[r] * N + k] * f1[c * DIM + r];
#endif
  }
}

// Declares and fills what stands around a cell; UNROLLED loops or not.
#define SURROUNDINGS(UNROLLED)                                                                                           \
  real corner[NNODES * DIM], inward[NFACETS * GEO_FACET * DIM], sigma[NC * NFACETS];                                     \
  int link[NFACETS * LINK];                                                                                              \
  UNROLLED for (int k = 0; k < NNODES; ++k) load_corner(corner, lane, k, stride, cell, nodes, cell_nodes);               \
  UNROLLED for (int entry = 0; entry < NFACETS * GEO_FACET; ++entry) {                                                   \
    const int direction = entry / (2 * GEO_FACET), side = entry / GEO_FACET % 2, facet = FACET_OF(direction, side);      \
    const int other = neighbour[facet * stride + cell], its = SIPG_TURN(code[facet * stride + cell]);                    \
    load_inward(inward, corner, lane, direction, side, entry % GEO_FACET, other < 0 ? cell : other, its, stride, nodes,  \
                cell_nodes);                                                                                             \
    load_link(link, lane, facet, other, its, cell, num_cells, num_ghosts);                                               \
    UNROLL for (int c = 0; c < NC; ++c) sigma[c * NFACETS + facet] = sigma_[(c * NFACETS + facet) * stride + cell];      \
  }
#define ROWS_OF(vector) (vector + ((size_t)first * (NC * NB) + place))
#define VALUES(v, vector, UNROLLED)                                                                                      \
  real v[NC * NB];                                                                                                       \
  UNROLLED for (int k = 0; k < NC * NB; ++k) v[k] = ROWS_OF(vector)[k * width];

#define CELL_PASS(action, LOAD, state)                                                                                   \
  const int slot = (int)get_global_id(0) / 32, place = (int)get_global_id(0) % 32, lane = 0;                             \
  if (slot >= num_chunks) return;                                                                                        \
  const int first = 32 * chunks[slot], width = min(32, num_cells - first), cell = first + place;                         \
  if (place >= width) return;                                                                                            \
  __global real *row = ROWS_OF(out);                                                                                     \
  POINT_LOAD_CONSTANTS                                                                                                   \
  int outside = 0;                                                                                                       \
  {                                                                                                                      \
    LOAD(UNROLL)                                                                                                         \
    SURROUNDINGS(UNROLL)                                                                                                 \
    real sum[NC * NB];                                                                                                   \
    UNROLL for (int k = 0; k < NC * NB; ++k) sum[k] = 0;                                                                 \
    UNROLL for (int node = 0; node < NB; ++node) {                                                                       \
      const int at[3] = {node % N, node / N % N, node / (N * N)};                                                        \
      const Work w = WORK(v, state);                                                                                     \
      real f0[NC], f1[NC * DIM];                                                                                         \
      node_flux(&w, constants, at, action, f0, f1);                                                                      \
      test_fluxes(at, f0, f1, sum);                                                                                      \
    }                                                                                                                    \
    UNROLL for (int k = 0; k < NC * NB; ++k) row[k * width] = sum[k];                                                    \
    UNROLL for (int f = 0; f < NFACETS; ++f) outside |= link[LINK_OF(f, OTHER)] < -1;                                    \
  }                                                                                                                      \
  if (outside) {                                                                                                         \
    LOAD(UNROLL)                                                                                                               \
    SURROUNDINGS(UNROLL)                                                                                                       \
    const Work w = WORK(v, state);                                                                                       \
    for (int item = 0; item < NFACETS * NQF; ++item) {                                                                   \
      const int direction = item / (2 * NQF), side = item / NQF % 2;                                                     \
      if (link[LINK_OF(FACET_OF(direction, side), OTHER)] < -1)                                                          \
        boundary_point(&w, constants, direction, side, item % NQF, action, row, width);                                  \
    }                                                                                                                    \
  }

#define LOAD_STATE(UNROLLED) VALUES(v, u_owned, UNROLLED)
KERNEL(CELLS) void sipg_residual(ARGUMENTS)
{
  CELL_PASS(0, LOAD_STATE, v)
}

#if STATE
#define STATE_OF u
#define LOAD_DIRECTION(UNROLLED) VALUES(v, du_owned, UNROLLED) VALUES(u, u_owned, UNROLLED)
#else
#define STATE_OF v
#define LOAD_DIRECTION(UNROLLED) VALUES(v, du_owned, UNROLLED)
#endif
KERNEL(CELLS) void sipg_action(ARGUMENTS)
{
  CELL_PASS(1, LOAD_DIRECTION, STATE_OF)
}
