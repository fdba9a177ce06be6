// Fluxes out of each cell through its facets, and its source, one thread a cell. The flux through a facet is the residual
// of its trace functions, whose sum is one there: the integral of f1·n - tau (u - û), lifted where f1 is not linear, or
// (POINT_FLUX) of that at the facet's points.
// They balance: over all facets they add up to the integral of f0. What f1 of natural conditions gives, as it is tested by
// gradients, goes through all facets of the cell. After condense_point.clh and hdg_recovery.clh.
// needs: ARGUMENTS DIM NC NA NFUN NI NT NFACETS NQ NQF NNODES JUMPS AUX_NODAL OP ONES GEO GEO_GRAD WEIGHTS AUX_BASIS AUX_GRAD
// needs: JUMP FACET_GEO FACET_GEO_GRAD FACET_WEIGHTS FACET_NORMALS FACET_AUX_BASIS FACET_AUX_GRAD AUX_NODES TABLE
// needs: NATURAL BOUNDARY_ROWS SIDES POINT_FLUX
// optional: FACET_OP FACET_ONES
//
// Arrays
//   stabilization, facet_tau, conditions  as in condense_point.clh
//   out  [NFACETS + 1, NC, stride]  fluxes, then the integral of f0; cell fastest; the others as in hdg_recovery.clh
// Tables
//   ONES [NQ, DIM, NFACETS]  reference gradients of the sum of the trace functions of each facet, FACET_ONES [F NQF, …]
//   the others as in condense_point.clh

#define NTF (NT / NFACETS)

// Part of the fluxes inside the cell: f1 against the gradients of the sums; and the source.
static inline void flux_inside(int cell, int stride, real t, const real *constants, const real *aux_e, Geometry *g,
                               __global const real *tables, __global const real *x_e, real *sum)
{
  for (int p = 0; p < NQ; ++p) {
    real x[DIM], u[NC], q[NC * DIM], u_t[NC], a[NA + 1], a_x[(NA + 1) * DIM], f0[NC], f1[NC * DIM];
    geometry_point(g, GEO_GRAD + p * NNODES * DIM);
    geometry_x(g, GEO + p * NNODES, x);
    recovery_state(OP + p * (1 + DIM) * NFUN, x_e, stride, cell, u, q);
    point_physical(g, NC, q);
    for (int c = 0; c < NC; ++c) u_t[c] = 0;
    point_auxiliary(aux_e, AUX_AT(AUX_BASIS, p, AUX_NODES), AUX_AT(AUX_GRAD, p, AUX_NODES * DIM), g, a, a_x);
    pw_residual(u, u_t, q, a, a_x, t, x, constants, f0, f1);
    point_pull_back(g, WEIGHTS[p] * g->measure, f0, f1);
    for (int c = 0; c < NC; ++c) {
      sum[NFACETS * NC + c] += f0[c];
      for (int f = 0; f < NFACETS && !POINT_FLUX; ++f)
        for (int r = 0; r < DIM; ++r) sum[f * NC + c] += f1[c * DIM + r] * ONES[(p * DIM + r) * NFACETS + f];
    }
  }
}

#if JUMPS
// Part of the flux through facet f: the stabilized jump.
static inline void flux_jump(int f, int cell, int stride, real t, Stabilization stabilization, const real *constants, const real *aux_e,
                             Geometry *g, __global const real *tables, __global const real *x_e, real *sum)
{
  for (int p = f * NQF; p < (f + 1) * NQF; ++p) {
    real x[DIM], n[DIM], a[NA + 1], a_x[(NA + 1) * DIM];
    geometry_point(g, FACET_GEO_GRAD + p * NNODES * DIM);
    const real weight = FACET_WEIGHTS[p] * condense_normal(FACET_NORMALS + f * DIM, g, n);
    geometry_x(g, FACET_GEO + p * NNODES, x);
    point_auxiliary(aux_e, AUX_AT(FACET_AUX_BASIS, p, AUX_NODES), AUX_AT(FACET_AUX_GRAD, p, AUX_NODES * DIM), g, a,
                    a_x);
#if SIDES
    real u[NC], q[NC * DIM], u_in[NC], u_t[NC], S[NC * NC], flux[NC];
    recovery_state(FACET_OP + p * (1 + DIM) * NFUN, x_e, stride, cell, u, q);
    point_physical(g, NC, q);
    for (int c = 0; c < NC; ++c) {
      u_in[c] = u_t[c] = 0;
      for (int j = 0; j < NI; ++j) u_in[c] += x_e[(j * NC + c) * (size_t)stride + cell] * JUMP[p * NFUN + j];
    }
    side_stabilization(stabilization, u, t, x, n, a, a_x, constants, S);
    side_flux(u, q, u_in, u_t, S, t, x, n, a, a_x, constants, flux);
    for (int c = 0; c < NC; ++c) sum[f * NC + c] += weight * flux[c];
#else
    real tau[NC];
    condense_tau(stabilization, t, x, n, a, a_x, constants, tau);
    for (int c = 0; c < NC; ++c) {
      real jump = 0;
      for (int j = 0; j < NI; ++j) jump += x_e[(j * NC + c) * (size_t)stride + cell] * JUMP[p * NFUN + j];
      for (int j = NI + f * NTF; j < NI + (f + 1) * NTF; ++j)
        jump += x_e[(j * NC + c) * (size_t)stride + cell] * JUMP[p * NFUN + j];
      sum[f * NC + c] -= weight * tau[c] * jump;
    }
#endif
  }
}
#endif

#if BOUNDARY_ROWS > 1
// Part of the fluxes on facet f: f1 of its natural conditions, the bits of `mask`, against the gradients of the sums.
static inline void flux_natural(int f, int mask, int cell, int stride, real t, const real *constants, const real *aux_e,
                                Geometry *g, __global const real *tables, __global const real *x_e, real *sum)
{
  for (int p = f * NQF; mask && p < (f + 1) * NQF; ++p) {
    real x[DIM], n[DIM], u[NC], q[NC * DIM], u_t[NC], a[NA + 1], a_x[(NA + 1) * DIM], f0[NC], f1[NC * DIM];
    geometry_point(g, FACET_GEO_GRAD + p * NNODES * DIM);
    const real weight = FACET_WEIGHTS[p] * condense_normal(FACET_NORMALS + f * DIM, g, n);
    geometry_x(g, FACET_GEO + p * NNODES, x);
    recovery_state(FACET_OP + p * (1 + DIM) * NFUN, x_e, stride, cell, u, q);
    point_physical(g, NC, q);
    for (int c = 0; c < NC; ++c) u_t[c] = 0;
    point_auxiliary(aux_e, AUX_AT(FACET_AUX_BASIS, p, AUX_NODES), AUX_AT(FACET_AUX_GRAD, p, AUX_NODES * DIM), g, a,
                    a_x);
    for (int condition = 0; condition < NATURAL; ++condition) {
      if (!(mask >> condition & 1)) continue;
      pw_boundary(condition, u, u_t, q, a, a_x, t, x, n, constants, f0, f1);
      point_pull_back(g, weight, f0, f1);
      for (int k = 0; k < NFACETS * NC; ++k)
        for (int r = 0; r < DIM; ++r) sum[k] += f1[k % NC * DIM + r] * FACET_ONES[(p * DIM + r) * NFACETS + k / NC];
    }
  }
}
#endif

__kernel void hdg_flux(ARGUMENTS)
{
  const int cell = get_global_id(0);
  if (cell >= num_cells) return;
  POINT_LOAD_CONSTANTS
  POINT_LOAD_AUX(cell)
  real sum[(NFACETS + 1) * NC];
  for (int k = 0; k < (NFACETS + 1) * NC; ++k) sum[k] = 0;
  Geometry g;
  geometry_load(&g, nodes, cell_nodes, 0, stride, cell);
  flux_inside(cell, stride, t, constants, aux_e, &g, tables, x_e, sum);
#if JUMPS
  for (int f = 0; f < NFACETS; ++f)
    flux_jump(f, cell, stride, t, STABILIZATION(f), constants, aux_e, &g, tables, x_e, sum);
#endif
#if BOUNDARY_ROWS > 1
  for (int f = 0; f < NFACETS; ++f)
    flux_natural(f, conditions[f * stride + cell], cell, stride, t, constants, aux_e, &g, tables, x_e, sum);
#endif
  for (int k = 0; k < (NFACETS + 1) * NC; ++k) out[k * (size_t)stride + cell] = sum[k];
}
