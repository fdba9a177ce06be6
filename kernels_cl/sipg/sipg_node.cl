// Interior penalty on quadrilaterals and hexahedra in one pass on a GPU, any physics: a cell's residual or Jacobian action, from
// fluxes of its interior and of its facets at the same nodes (Gorlani 2015, chapter 3, with both fluxes recomputed: nothing
// is kept between kernels). After sipg_node.clh.
//
// 1. own values, geometry and links into local memory   2. derivatives, a work-item a line   3. fluxes, a work-item a node   4. test functions, a work-item a line.
//
// needs: ARGUMENTS DIM NC NB N NQF NNODES NFACETS GEO_FACET LANES THREADS ROUNDS TIME STATE D1 GEO_ORDER NODE_AT
//
// Tables
//   NODE_AT [ROUNDS, THREADS]  node that a work-item does in a round, or -1
// Arrays: arguments PASS of discretizations/sipg/arguments.py.

// A loop that the work-items of a cell share.
#define SHARED(index, count) for (int index = (int)get_local_id(0) / LANES; index < (count); index += THREADS)

#define START_OF_LINE(r, line) ((r) == 0 ? (line) * N : (r) == 1 ? (line) / N * (N * N) + (line) % N : (line))

// Derivatives along a line of v from its values.
INLINE void differentiate(__local real *v, int lane, int c, int r, int line)
{
  const int start = START_OF_LINE(r, line), step = STRIDE(r);
  real value[N];
  UNROLL for (int k = 0; k < N; ++k) value[k] = v[V(c, 0, start + k * step)];
  UNROLL for (int i = 0; i < N; ++i) {
    real sum = 0;
    UNROLL for (int k = 0; k < N; ++k) sum += D1[i * N + k] * value[k];
    v[V(c, 1 + r, start + i * step)] = sum;
  }
}

// Test functions of the nodes of a line against fluxes along it, added to v's values.
INLINE void test_line(__local real *v, int lane, int c, int r, int line)
{
  const int start = START_OF_LINE(r, line), step = STRIDE(r);
  real flux[N];
  UNROLL for (int k = 0; k < N; ++k) flux[k] = v[V(c, 1 + r, start + k * step)];
  UNROLL for (int i = 0; i < N; ++i) {
    real sum = v[V(c, 0, start + i * step)];
    UNROLL for (int k = 0; k < N; ++k) sum += D1[k * N + i] * flux[k];
    v[V(c, 0, start + i * step)] = sum;
  }
}

// All fluxes at a node, in place of its values and derivatives.
INLINE void node_to_fluxes(const Work *w, const real *constants, const int *at, int action, __local real *v)
{
  const int lane = w->lane, node = at[0] + N * at[1] + (DIM == 3 ? N * N * at[DIM - 1] : 0);
  real f0[NC], f1[NC * DIM];
  node_flux(w, constants, at, action, f0, f1);
  UNROLL for (int c = 0; c < NC; ++c) {
    v[V(c, 0, node)] = f0[c];
    UNROLL for (int r = 0; r < DIM; ++r) v[V(c, 1 + r, node)] = f1[c * DIM + r];
  }
}

#define WORK_OF(state, rates_owned, rates_tail)                                                                           \
  const Work w = {v, state, corner, inward, sigma, link, aux, u_owned, u_tail, ut_owned, ut_tail, du_owned, du_tail,       \
                  code, kinds, rows_of(rates_owned, rates_tail, num_cells, num_ghosts, cell), lane, cell, stride, num_cells, \
                  outside, t, shift};
#if TIME
#define WORK(state) WORK_OF(state, ut_owned, ut_tail)
#else
#define WORK(state) WORK_OF(state, u_owned, u_tail)
#endif

// Own values of a vector, [NC, NB] to `target(c, node)`.
#define LOAD_OWN(target, vector)                                                                    \
  SHARED(row, NC * NB)                                                                              \
  target[TARGET(row)] = vector[(size_t)first * (NC * NB) + row * width + (cell - first)];

#define NODE_PASS(action, state, LOAD_VALUES)                                                                             \
  __local real v[NC * (1 + DIM) * NB * LANES], corner[NNODES * DIM * LANES], inward[NFACETS * GEO_FACET * DIM * LANES];    \
  __local real sigma[NC * NFACETS * LANES];                                                                               \
  __local int link[NFACETS * LINK * LANES];                                                                               \
  const int group = get_group_id(0), first = 32 * chunks[group / (32 / LANES)], width = min(32, num_cells - first);       \
  const int part = group % (32 / LANES) * LANES, lane = (int)get_local_id(0) % LANES;                                     \
  const int cell = first + min(part + lane, width - 1);                                                                   \
  LOAD_VALUES                                                                                                             \
  SHARED(facet, NFACETS)                                                                                                  \
  {                                                                                                                       \
    load_link(link, lane, facet, neighbour[facet * stride + cell], SIPG_TURN(code[facet * stride + cell]), cell,          \
              num_cells, num_ghosts);                                                                                     \
    UNROLL for (int c = 0; c < NC; ++c)                                                                                   \
      sigma[AT(c * NFACETS + facet)] = sigma_[(c * NFACETS + facet) * stride + cell];                                     \
  }                                                                                                                       \
  SHARED(k, NNODES) load_corner(corner, lane, k, stride, cell, nodes, cell_nodes);                                        \
  BARRIER_LOCAL();                                                                                                        \
  SHARED(entry, NFACETS * GEO_FACET)                                                                                      \
  {                                                                                                                       \
    const int direction = entry / (2 * GEO_FACET), side = entry / GEO_FACET % 2, facet = FACET_OF(direction, side);       \
    const int other = neighbour[facet * stride + cell];                                                                   \
    load_inward(inward, corner, lane, direction, side, entry % GEO_FACET, other < 0 ? cell : other,                       \
                SIPG_TURN(code[facet * stride + cell]), stride, nodes, cell_nodes);                                       \
  }                                                                                                                       \
  BARRIER_LOCAL();                                                                                                        \
  SHARED(line, NC * DIM * NQF) differentiate(v, lane, line / (DIM * NQF), line / NQF % DIM, line % NQF);                  \
  BARRIER_LOCAL();                                                                                                        \
  {                                                                                                                       \
    POINT_LOAD_CONSTANTS                                                                                                  \
    int outside = 0;                                                                                                      \
    UNROLL for (int f = 0; f < NFACETS; ++f) outside |= link[LINK_OF(f, OTHER)] < -1;                                     \
    WORK(state)                                                                                                           \
    SHARED(k, ROUNDS * THREADS)                                                                                           \
    {                                                                                                                     \
      const int node = NODE_AT[k];                                                                                        \
      int at[3] = {node % N, node / N % N, node / (N * N)};                                                               \
      if (node >= 0) node_to_fluxes(&w, constants, at, action, v);                                                        \
    }                                                                                                                     \
  }                                                                                                                       \
  for (int r = DIM - 1; r >= 0; --r) {                                                                                    \
    BARRIER_LOCAL();                                                                                                      \
    SHARED(line, NC * NQF) test_line(v, lane, line / NQF, r, line % NQF);                                                 \
  }                                                                                                                       \
  BARRIER_LOCAL();                                                                                                        \
  if (part + lane < width)                                                                                                \
    SHARED(row, NC * NB) out[(size_t)first * (NC * NB) + row * width + part + lane] = v[V(row / NB, 0, row % NB)];

#define TARGET(row) V((row) / NB, 0, (row) % NB)
KERNEL(LANES * THREADS) void sipg_residual(ARGUMENTS)
{
  NODE_PASS(0, v, LOAD_OWN(v, u_owned))
}

#if STATE
#define LOAD_STATE SHARED(row, NC * NB) u[AT(row)] = u_owned[(size_t)first * (NC * NB) + row * width + (cell - first)];
#else
#define LOAD_STATE
#define u v
#endif
KERNEL(LANES * THREADS) void sipg_action(ARGUMENTS)
{
#if STATE
  __local real u[NC * NB * LANES];
#endif
  NODE_PASS(1, u, LOAD_OWN(v, du_owned) LOAD_STATE)
}
