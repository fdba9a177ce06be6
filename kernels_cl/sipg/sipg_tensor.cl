// Interior penalty on quadrilaterals and hexahedra in one pass, any physics: each cell's residual or Jacobian action is its own
// volume integral and the integrals over its facets (Gorlani 2015, chapter 3, with both fluxes recomputed: nothing is kept
// between kernels). After sipg_tensor_point.clh.
//
// 1. own values and geometry nodes into local memory   2. fluxes at the nodes   3. for each axis its two facets: the neighbours'
// traces and normal derivatives, fluxes added at the facets' nodes   4. test functions: derivatives of all fluxes along lines.
//
// needs: ARGUMENTS DIM NC NB N NQF NNODES GEO_FACET LANES TIME STATE GEO_ORDER PLACE
//
// Arrays: arguments PASS of discretizations/sipg/arguments.py.

// Loops over a cell's entries, and in them over the cells: all at once as vectors, or one after the other where vectors would gather
// what eight loads bring in less time.
#define SHARED(index, count) for (int index = 0; index < (count); ++index)
#define FOR_LANES _Pragma("clang loop vectorize(assume_safety) vectorize_width(LANES)") for (int lane = 0; lane < LANES; ++lane)
#define FOR_EACH_LANE _Pragma("clang loop vectorize(disable) unroll(disable)") for (int lane = 0; lane < LANES; ++lane)
#if NQF <= 16
#define UNROLL_FEW UNROLL
#else
#define UNROLL_FEW
#endif
#define WIDE __attribute__((min_vector_width(512)))

// Declares a cell and what a work-item works with there; lanes behind the last cell repeat it.
#define CELL const int cell = first + min(part + lane, width - 1);
#define WORK(u, du, trace, d_trace)                                                                              \
  CELL                                                                                                           \
  POINT_LOAD_CONSTANTS                                                                                           \
  const Work w = {corner, inward, metric, u, du, trace, d_trace, RATES(cell), lane, cell, stride, t, shift};
#if TIME
#define RATES(cell) rows_of(ut_owned, ut_tail, num_cells, num_ghosts, cell)
#else
#define RATES(cell) rows_of(u_owned, u_tail, num_cells, num_ghosts, cell)
#endif

// Declares a facet of the cell: facet, other (what lies behind), behind (a cell there, itself on the boundary), turn, place.
#define FACET(axis, side)                                                                             \
  const int facet = FACET_OF(axis, side), other = other_l[AT(facet)];                      \
  const int behind = other < 0 ? cell : other, turn = SIPG_TURN(code_l[AT(facet)]);        \
  __constant const int *place = PLACE + 4 * turn;
#define PENALTY   \
  real sigma[NC]; \
  UNROLL for (int c = 0; c < NC; ++c) sigma[c] = sigma_l[AT(facet * NC + c)];

// Own values [NC, NB] of a vector into local memory.
#define LOAD_OWN(v, vector) \
  SHARED(row, NC * NB) v[AT(row)] = vector[(size_t)first * (NC * NB) + row * width + (cell - first)];

// Trace of a vector from the neighbour behind a side.
#define LOAD_TRACE(v, owned, tail)                                                \
  {                                                                               \
    const Rows rows = rows_of(owned, tail, num_cells, num_ghosts, behind);        \
    UNROLL_FEW SHARED(q, NQF) load_trace(v + side * (2 * NC * NQF * LANES), lane, rows, place, q); \
  }

#define TENSOR_PASS(action, u, du, trace, d_trace, LOAD_VALUES, LOAD_NEIGHBOUR)                                            \
  __local real corner[NNODES * DIM * LANES], inward[2 * DIM * GEO_FACET * DIM * LANES];                                \
  __local real flux[NC * (1 + DIM) * NB * LANES];                                                                          \
  __local real metric[(DIM * DIM + 1) * NB * LANES];                                                                       \
  real sigma_l[2 * DIM * NC * LANES], sums[LANES];                                                                         \
  int other_l[2 * DIM * LANES], code_l[2 * DIM * LANES];                                                                   \
  const int group = get_group_id(0), first = 32 * chunks[group / (32 / LANES)], width = min(32, num_cells - first);        \
  const int part = group % (32 / LANES) * LANES, lanes = min(LANES, width - part);                                         \
  if (lanes <= 0) return;                                                                                                  \
  FOR_EACH_LANE                                                                                                            \
  {                                                                                                                        \
    CELL                                                                                                                   \
    LOAD_VALUES                                                                                                            \
    SHARED(facet, 2 * DIM)                                                                                                 \
    {                                                                                                                      \
      other_l[AT(facet)] = neighbour[facet * stride + cell], code_l[AT(facet)] = code[facet * stride + cell];              \
      SHARED(c, NC) sigma_l[AT(facet * NC + c)] = sigma_[(c * 2 * DIM + facet) * stride + cell];                           \
    }                                                                                                                      \
    UNROLL SHARED(k, NNODES) load_corner(corner, lane, k, stride, cell, nodes, cell_nodes);                                \
  }                                                                                                                        \
  SHARED(node, NB) FOR_LANES                                                                                               \
  {                                                                                                                        \
    WORK(u, du, trace, d_trace)                                                                                            \
    volume_flux(&w, aux, constants, node, action, flux);                                                                   \
  }                                                                                                                        \
  UNROLL for (int axis = 0; axis < DIM; ++axis) {                                                                          \
    SHARED(side, 2) FOR_EACH_LANE                                                                                          \
    {                                                                                                                      \
      CELL                                                                                                                 \
      FACET(axis, side)                                                                                                    \
      LOAD_NEIGHBOUR                                                                                                       \
      UNROLL SHARED(k, GEO_FACET)                                                                                          \
      load_inward(inward, corner, lane, axis, side, k, behind, turn, stride, nodes, cell_nodes);                           \
    }                                                                                                                      \
    SHARED(item, 2 * NQF) FOR_LANES                                                                                        \
    {                                                                                                                      \
      WORK(u, du, trace, d_trace)                                                                                          \
      FACET(axis, item / NQF)                                                                                              \
      PENALTY                                                                                                              \
      interior_flux(&w, aux, constants, axis, item / NQF, item % NQF, behind, place, RATES(behind),                        \
                    SIPG_WALL(code_l[AT(facet)], kinds), sigma, action, -(other >= 0), flux);                              \
    }                                                                                                                      \
    SHARED(side, 2) FOR_EACH_LANE                                                                                          \
    {                                                                                                                      \
      WORK(u, du, trace, d_trace)                                                                                          \
      FACET(axis, side)                                                                                                    \
      if (other <= -2) {                                                                                                   \
        PENALTY                                                                                                            \
        SHARED(q, NQF)                                                                                                     \
        boundary_flux(&w, aux, constants, axis, side, q, kinds - (other + 2) * (NC + 1), sigma, action, flux);             \
      }                                                                                                                    \
    }                                                                                                                      \
  }                                                                                                                        \
  SHARED(row, NC * NB)                                                                                                     \
  {                                                                                                                        \
    FOR_LANES { sums[lane] = test_node(flux, lane, row / NB, row % NB); }                                                  \
    SHARED(lane, lanes) out[(size_t)first * (NC * NB) + row * width + part + lane] = sums[lane];                           \
  }

KERNEL(1) WIDE void sipg_residual(ARGUMENTS)
{
  __local real u[NC * NB * LANES], trace[4 * NC * NQF * LANES];
  TENSOR_PASS(0, u, u, trace, trace, LOAD_OWN(u, u_owned), LOAD_TRACE(trace, u_owned, u_tail))
}

KERNEL(1) WIDE void sipg_action(ARGUMENTS)
{
  __local real du[NC * NB * LANES], d_trace[4 * NC * NQF * LANES];
#if STATE
  __local real u[NC * NB * LANES], trace[4 * NC * NQF * LANES];
  TENSOR_PASS(1, u, du, trace, d_trace, LOAD_OWN(u, u_owned) LOAD_OWN(du, du_owned),
              LOAD_TRACE(trace, u_owned, u_tail) LOAD_TRACE(d_trace, du_owned, du_tail))
#else
  TENSOR_PASS(1, du, du, d_trace, d_trace, LOAD_OWN(du, du_owned), LOAD_TRACE(d_trace, du_owned, du_tail))
#endif
}
