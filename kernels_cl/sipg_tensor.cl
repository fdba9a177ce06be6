// Interior penalty on quadrilaterals and hexahedra in one pass, any physics: each cell's residual or Jacobian action is its own
// volume integral and the integrals over its facets (Gorlani 2015, chapter 3, with both fluxes recomputed: nothing is kept
// between kernels). After sipg_tensor.clh.
//
// 1. own values and geometry nodes into local memory   2. fluxes at the nodes   3. for each axis its two facets: the neighbours'
// traces and normal derivatives, fluxes added at the facets' nodes   4. test functions: derivatives of all fluxes along lines.
//
// needs: DIM NC NB N NQF G NNODES GEO_FACET LANES THREADS TIME STATE THETA NAUX DPHI GEO_ORDER PLACE GEO_PLACE
//
// Sizes
//   STATE  whether the Jacobian depends on the state;  TIME whether the physics reads u_t
// Arrays: as SIPG_ARGUMENTS in sipg_flux.clh says; out: owned values.

// What a work-item knows of its cell and facet.
typedef struct {
  __local const real *corner;    // [NNODES, DIM] coordinates of geometry nodes
  __local const real *inward;    // [2, GEO_FACET, DIM] derivative of the neighbours' coordinates inwards
  __local const real *u, *du;    // [NC, NB]
  __local const real *trace, *d_trace;   // [2, NC, 2, NQF]
  Rows rate;                     // own values of u_t
  int lane, cell, stride;
  real t, shift;
} Work;

INLINE void state_rates(Rows rows, int node, real *u_t)
{
  UNROLL for (int c = 0; c < NC; ++c) {
#if TIME
    u_t[c] = rows.first[(c * NB + node) * rows.step];
#else
    u_t[c] = 0;
#endif
  }
}

// The own side at a node.
INLINE void own_side(const Work *w, __global const real *aux, int node, const int *at, const Geometry *g, int with_state,
                     Side *own)
{
  if (with_state) {
    node_values(w->u, w->lane, node, at, own->u, own->u_x);
    point_physical(g, NC, own->u_x);
    state_rates(w->rate, node, own->u_t);
  } else {
    UNROLL for (int k = 0; k < NC; ++k) own->u[k] = own->u_t[k] = 0;
    UNROLL for (int k = 0; k < NC * DIM; ++k) own->u_x[k] = 0;
  }
  node_auxiliary(aux, w->stride, w->cell, node, at, g, own->a, own->a_x);
}

INLINE void own_direction(const Work *w, int node, const int *at, const Geometry *g, SideDirection *d_own)
{
  node_values(w->du, w->lane, node, at, d_own->u, d_own->u_x);
  point_physical(g, NC, d_own->u_x);
  UNROLL for (int k = 0; k < NC; ++k) d_own->u_t[k] = w->shift * d_own->u[k];
}

// Outward normal n [DIM]; returns the surface element over that of the reference cell (Nanson's formula).
INLINE real facet_normal(const Geometry *g, int direction, int side, real *n)
{
  real length = 0;
  UNROLL for (int d = 0; d < DIM; ++d) {
    n[d] = direction == 0 ? g->inverse[d] : direction == 1 ? g->inverse[DIM + d] : g->inverse[(DIM - 1) * DIM + d];
    length += n[d] * n[d];
  }
  length = sqrt(length);
  UNROLL for (int d = 0; d < DIM; ++d) n[d] *= (side ? 1 : -1) / length;
  return g->measure * length;
}

INLINE real node_weight(const int *at)
{
  real weight = W1[at[0]] * W1[at[1]];
#if DIM == 3
  weight *= W1[at[2]];
#endif
  return weight;
}

INLINE real facet_weight(int q)
{
#if DIM == 3
  return W1[q % N] * W1[q / N];
#else
  return W1[q];
#endif
}

// Jacobian [DIM, DIM] whose column of the facet's axis is the neighbour's derivative inwards.
INLINE void frame_jacobian(const Work *w, const real *jacobian, int direction, int side, int q, real *frame)
{
  UNROLL for (int d = 0; d < DIM; ++d) {
    real corner[GEO_FACET];
    UNROLL for (int k = 0; k < GEO_FACET; ++k)
      corner[k] = w->inward[((side * GEO_FACET + k) * DIM + d) * LANES + w->lane];
#if DIM == 3
    real on_line[G];
    UNROLL for (int k = 0; k < G; ++k) on_line[k] = line_value(corner + k * G, 1, q % N);
    const real inwards = line_value(on_line, 1, q / N);
#else
    const real inwards = line_value(corner, 1, q);
#endif
    UNROLL for (int r = 0; r < DIM; ++r) frame[d * DIM + r] = r == direction ? inwards : jacobian[d * DIM + r];
  }
}

// Weighted fluxes of the cell's interior at a node, into flux [NC, 1 + DIM, NB].
INLINE void volume_flux(const Work *w, __global const real *aux, const real *constants, int node, int action,
                        __local real *flux)
{
  const int lane = w->lane;
  int at[DIM];
  real x[DIM], jacobian[DIM * DIM], f0[NC], f1[NC * DIM];
  Geometry g;
  Side own;
  node_indices(node, at);
  node_geometry(w->corner, lane, at, x, jacobian);
  geometry_invert(jacobian, &g);
  own_side(w, aux, node, at, &g, !action || STATE, &own);
  if (action) {
    SideDirection d_own;
    own_direction(w, node, at, &g, &d_own);
    pw_jacobian(own.u, own.u_t, own.u_x, d_own.u, d_own.u_t, d_own.u_x, own.a, own.a_x, w->t, w->shift, x, constants, f0, f1);
  } else {
    pw_residual(own.u, own.u_t, own.u_x, own.a, own.a_x, w->t, x, constants, f0, f1);
  }
  point_pull_back(&g, node_weight(at) * g.measure, f0, f1);
  UNROLL for (int c = 0; c < NC; ++c) {
    flux[AT(c * (1 + DIM) * NB + node)] = f0[c];
    UNROLL for (int r = 0; r < DIM; ++r) flux[AT((c * (1 + DIM) + 1 + r) * NB + node)] = f1[c * DIM + r];
  }
}

// Weighted fluxes of an interior facet at its point q, added at the node; nothing where there is no neighbour.
INLINE void interior_flux(const Work *w, __global const real *aux, const real *constants, int direction, int side, int q,
                          int other_cell, __constant const int *place, Rows other_rate, const real *sigma, int action,
                          int inside, __local real *flux)
{
  const int lane = w->lane;
  int at[DIM];
  const int node = facet_indices(direction, side, q, at);
  real x[DIM], n[DIM], jacobian[DIM * DIM], frame[DIM * DIM], f0[NC], f1[NC * DIM];
  Geometry g, behind;
  Side own, other;
  node_geometry(w->corner, lane, at, x, jacobian);
  geometry_invert(jacobian, &g);
  frame_jacobian(w, jacobian, direction, side, q, frame);
  geometry_invert(frame, &behind);
  const real weight = facet_weight(q) * facet_normal(&g, direction, side, n);
  own_side(w, aux, node, at, &g, !action || STATE, &own);
  if (!action || STATE) {
    trace_values(w->trace + side * 2 * NC * NQF * LANES, lane, direction, q, other.u, other.u_x);
    point_physical(&behind, NC, other.u_x);
    state_rates(other_rate, place_node(place, q), other.u_t);
  } else {
    UNROLL for (int k = 0; k < NC; ++k) other.u[k] = other.u_t[k] = 0;
    UNROLL for (int k = 0; k < NC * DIM; ++k) other.u_x[k] = 0;
  }
  trace_auxiliary(aux, w->stride, other_cell, place, direction, q, &behind, other.a, other.a_x);
  if (action) {
    SideDirection d_own, d_other;
    own_direction(w, node, at, &g, &d_own);
    trace_values(w->d_trace + side * 2 * NC * NQF * LANES, lane, direction, q, d_other.u, d_other.u_x);
    point_physical(&behind, NC, d_other.u_x);
    UNROLL for (int k = 0; k < NC; ++k) d_other.u_t[k] = w->shift * d_other.u[k];
    sipg_flux_jacobian(&own, &other, &d_own, &d_other, sigma, n, w->t, w->shift, x, constants, f0, f1);
  } else {
    sipg_flux(&own, &other, sigma, n, w->t, x, constants, f0, f1);
  }
  point_pull_back(&g, weight, f0, f1);
  UNROLL for (int k = 0; k < NC; ++k) f0[k] = inside ? f0[k] : 0;
  UNROLL for (int k = 0; k < NC * DIM; ++k) f1[k] = inside ? f1[k] : 0;
  add_flux(flux, lane, node, f0, f1);
}

// The same for a facet on the boundary, of kind [NC + 1].
SEPARATE void boundary_flux(const Work *w, __global const real *aux, const real *constants, int direction, int side, int q,
                          __global const int *kind, const real *sigma, int action, __local real *flux)
{
  const int lane = w->lane;
  int at[DIM];
  const int node = facet_indices(direction, side, q, at);
  real x[DIM], n[DIM], jacobian[DIM * DIM], f0[NC], f1[NC * DIM];
  Geometry g;
  Side own;
  node_geometry(w->corner, lane, at, x, jacobian);
  geometry_invert(jacobian, &g);
  const real weight = facet_weight(q) * facet_normal(&g, direction, side, n);
  own_side(w, aux, node, at, &g, !action || STATE, &own);
  if (action) {
    SideDirection d_own;
    own_direction(w, node, at, &g, &d_own);
    sipg_boundary_jacobian(kind, &own, &d_own, sigma, n, w->t, w->shift, x, constants, f0, f1);
  } else {
    sipg_boundary(kind, &own, sigma, n, w->t, x, constants, f0, f1);
  }
  point_pull_back(&g, weight, f0, f1);
  add_flux(flux, lane, node, f0, f1);
}

// Coordinate k % DIM of the derivative inwards the neighbour behind side k / (GEO_FACET DIM) of an axis, at geometry node
// k / DIM % GEO_FACET of the facet; some derivative of the own coordinates where there is no neighbour.
INLINE real neighbour_slope(__global const real *nodes, __global const int *cell_nodes, __global const int *neighbour,
                            __global const int *code, int stride, int cell, int axis, int k)
{
  const int facet = FACET_OF(axis, k / (GEO_FACET * DIM)), q = k / DIM % GEO_FACET;
  const int other = neighbour[facet * stride + cell], behind = other < 0 ? cell : other;
  __constant const int *place = GEO_PLACE + 4 * code[facet * stride + cell];
  const int first = place[0] + q % G * place[1] + q / G * place[2];
  real slope = 0;
  UNROLL for (int i = 0; i < G; ++i)
    slope += DPHI[i] * nodes[cell_nodes[GEO_ORDER[first + i * place[3]] * stride + behind] * DIM + k % DIM];
  return slope;
}

// Test functions of a node against all fluxes: Σ f0 φ + f1·∇φ [NC].
INLINE real test_node(__local const real *flux, int lane, int c, int node)
{
  int at[DIM];
  node_indices(node, at);
  real sum = flux[AT(c * (1 + DIM) * NB + node)];
  UNROLL for (int r = 0; r < DIM; ++r) {
    const int first = (c * (1 + DIM) + 1 + r) * NB + node - at[r] * STRIDE(r);
    UNROLL for (int k = 0; k < N; ++k) sum += D1[k * N + at[r]] * flux[AT(first + k * STRIDE(r))];
  }
  return sum;
}

// Declares a cell and what a work-item works with there; lanes behind the last cell repeat it.
#define CELL const int cell = first + min(part + lane, width - 1);
#define WORK(u, du, trace, d_trace)                                                                              \
  CELL                                                                                                           \
  POINT_LOAD_CONSTANTS                                                                                           \
  const Work w = {corner, inward, u, du, trace, d_trace, RATES(cell), lane, cell, stride, t, shift};
#if TIME
#define RATES(cell) rows_of(ut_owned, ut_tail, num_cells, num_ghosts, cell)
#else
#define RATES(cell) rows_of(u_owned, u_tail, num_cells, num_ghosts, cell)
#endif

// Declares a facet of the cell: facet, other (what lies behind), behind (a cell there, itself on the boundary), place.
#define FACET(axis, side)                                                                             \
  const int facet = FACET_OF(axis, side), other = neighbour[facet * stride + cell];                   \
  const int behind = other < 0 ? cell : other;                                                        \
  __constant const int *place = PLACE + 4 * code[facet * stride + cell];
#define PENALTY     \
  real sigma[NC];   \
  UNROLL for (int c = 0; c < NC; ++c) sigma[c] = sigma_[(c * 2 * DIM + facet) * stride + cell];

// Own values [NC, NB] of a vector into local memory.
#define LOAD_OWN(v, vector)                                                               \
  SHARED(row, NC * NB) FOR_LANES                                                          \
  {                                                                                       \
    CELL                                                                                  \
    v[AT(row)] = vector[(size_t)first * (NC * NB) + row * width + (cell - first)];        \
  }

// Traces of a vector from both neighbours of an axis.
#define LOAD_TRACES(v, owned, tail)                                                                          \
  SHARED(item, 2 * NQF) FOR_LANES                                                                            \
  {                                                                                                          \
    CELL                                                                                                     \
    FACET(axis, item / NQF)                                                                                  \
    load_trace(v + item / NQF * (2 * NC * NQF * LANES), lane, rows_of(owned, tail, num_cells, num_ghosts, behind), \
               place, item % NQF);                                                                           \
  }

#define TENSOR_PASS(action, u, du, trace, d_trace, LOAD_VALUES, LOAD_NEIGHBOURS)                                           \
  __local real corner[NNODES * DIM * LANES], inward[2 * GEO_FACET * DIM * LANES], flux[NC * (1 + DIM) * NB * LANES];       \
  const int group = get_group_id(0), first = 32 * chunks[group / (32 / LANES)], width = min(32, num_cells - first);        \
  const int part = group % (32 / LANES) * LANES;                                                                           \
  LOAD_VALUES                                                                                                              \
  SHARED(k, NNODES * DIM) FOR_LANES                                                                                        \
  {                                                                                                                        \
    CELL                                                                                                                   \
    corner[AT(k)] = nodes[cell_nodes[GEO_ORDER[k / DIM] * stride + cell] * DIM + k % DIM];                                 \
  }                                                                                                                        \
  JOIN                                                                                                                     \
  SHARED(node, NB) FOR_LANES                                                                                               \
  {                                                                                                                        \
    WORK(u, du, trace, d_trace)                                                                                            \
    volume_flux(&w, aux, constants, node, action, flux);                                                                   \
  }                                                                                                                        \
  UNROLL_AXES for (int axis = 0; axis < DIM; ++axis) {                                                                               \
    JOIN                                                                                                                   \
    LOAD_NEIGHBOURS                                                                                                        \
    SHARED(k, 2 * GEO_FACET * DIM) FOR_LANES                                                                               \
    {                                                                                                                      \
      CELL                                                                                                                 \
      inward[AT(k)] = neighbour_slope(nodes, cell_nodes, neighbour, code, stride, cell, axis, k);                          \
    }                                                                                                                      \
    JOIN                                                                                                                   \
    SHARED(item, 2 * NQF) FOR_LANES                                                                                        \
    {                                                                                                                      \
      WORK(u, du, trace, d_trace)                                                                                          \
      FACET(axis, item / NQF)                                                                                              \
      PENALTY                                                                                                              \
      if (THREADS == 1 || other >= 0)                                                                                      \
        interior_flux(&w, aux, constants, axis, item / NQF, item % NQF, behind, place, RATES(behind), sigma, action,       \
                      other >= 0, flux);                                                                                   \
    }                                                                                                                      \
    for (int side = 0; side < 2; ++side)                                                                                   \
      FOR_BOUNDARY_LANES                                                                                                   \
      {                                                                                                                    \
        WORK(u, du, trace, d_trace)                                                                                        \
        FACET(axis, side)                                                                                                  \
        if (other <= -2) {                                                                                                 \
          PENALTY                                                                                                          \
          SHARED(q, NQF)                                                                                                   \
          boundary_flux(&w, aux, constants, axis, side, q, kinds - (other + 2) * (NC + 1), sigma, action, flux);           \
        }                                                                                                                  \
      }                                                                                                                    \
  }                                                                                                                        \
  JOIN                                                                                                                     \
  SHARED(row, NC * NB) FOR_LANES                                                                                           \
  {                                                                                                                        \
    const real sum = test_node(flux, lane, row / NB, row % NB);                                                            \
    if (part + lane < width) out[(size_t)first * (NC * NB) + row * width + part + lane] = sum;                             \
  }

KERNEL(WORK_ITEMS) WIDE void sipg_residual(SIPG_ARGUMENTS, __global real *out)
{
  __local real u[NC * NB * LANES], trace[4 * NC * NQF * LANES];
  TENSOR_PASS(0, u, u, trace, trace, LOAD_OWN(u, u_owned), LOAD_TRACES(trace, u_owned, u_tail))
}

KERNEL(WORK_ITEMS) WIDE void sipg_action(SIPG_ARGUMENTS, __global real *out)
{
  __local real du[NC * NB * LANES], d_trace[4 * NC * NQF * LANES];
#if STATE
  __local real u[NC * NB * LANES], trace[4 * NC * NQF * LANES];
  TENSOR_PASS(1, u, du, trace, d_trace, LOAD_OWN(u, u_owned) LOAD_OWN(du, du_owned),
              LOAD_TRACES(trace, u_owned, u_tail) LOAD_TRACES(d_trace, du_owned, du_tail))
#else
  TENSOR_PASS(1, du, du, d_trace, d_trace, LOAD_OWN(du, du_owned), LOAD_TRACES(d_trace, du_owned, du_tail))
#endif
}
