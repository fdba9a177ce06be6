// Integrals of pointwise numbers over each cell, one thread a cell: norms of errors (after error_squares.clh), integrands
// of users (pw_objective is then in the physics). After hdg_recovery.clh.
// needs: ARGUMENTS INTEGRAL NOBJ READS_AUX DIM NC NA NFUN NSTAR NQ NNODES OP STAR GEO GEO_GRAD WEIGHTS TABLE pw_objective
// optional: AUX_NODAL AUX_NODES AUX_BASIS AUX_GRAD
//
// Macros
//   INTEGRAL   name of the kernel;  NOBJ numbers at a point;  READS_AUX whether they read auxiliary fields
//   NSTAR      scalar functions of u*; 0 where it is not read
//   AUX_NODAL, AUX_NODES as in condense_point.clh
// Arrays
//   star  [NSTAR, NC, stride]  coefficients of u*
//   out   [NOBJ, stride]       integrals; cell fastest
// The others as in hdg_recovery.clh and geometry.clh.
// Tables
//   OP [NQ, 1 + DIM, NFUN], STAR [NQ, NSTAR], GEO [NQ, NNODES], GEO_GRAD [NQ, NNODES, DIM], WEIGHTS [NQ],
//   AUX_BASIS [NQ, AUX_NODES], AUX_GRAD [NQ, AUX_NODES, DIM] where auxiliary fields are nodal

__kernel void INTEGRAL(ARGUMENTS)
{
  const int cell = get_global_id(0);
  if (cell >= num_cells) return;
  POINT_LOAD_CONSTANTS
#if READS_AUX
  POINT_LOAD_AUX(cell)
#endif
  real sum[NOBJ];
  for (int k = 0; k < NOBJ; ++k) sum[k] = 0;
  Geometry g;
  geometry_load(&g, nodes, cell_nodes, 0, stride, cell);
  for (int p = 0; p < NQ; ++p) {
    real x[DIM], u[2 * NC], q[NC * DIM], a[NA + 1], a_x[(NA + 1) * DIM], obj[NOBJ];  // u, then u*
    geometry_point(&g, GEO_GRAD + p * NNODES * DIM);
    geometry_x(&g, GEO + p * NNODES, x);
    recovery_state(OP + p * (1 + DIM) * NFUN, x_e, stride, cell, u, q);
    point_physical(&g, NC, q);
#if NSTAR
    for (int c = 0; c < NC; ++c) {
      u[NC + c] = 0;
      for (int j = 0; j < NSTAR; ++j) u[NC + c] += star[(j * NC + c) * (size_t)stride + cell] * STAR[p * NSTAR + j];
    }
#endif
#if READS_AUX && AUX_NODAL
    point_auxiliary(aux_e, AUX_BASIS + p * AUX_NODES, AUX_GRAD + p * AUX_NODES * DIM, &g, a, a_x);
#elif READS_AUX
    point_auxiliary(aux_e, AUX_BASIS, AUX_GRAD, &g, a, a_x);
#endif
    pw_objective(u, q, a, a_x, t, x, constants, obj);
    const real weight = WEIGHTS[p] * g.measure;
    for (int k = 0; k < NOBJ; ++k) sum[k] += weight * obj[k];
  }
  for (int k = 0; k < NOBJ; ++k) out[k * (size_t)stride + cell] = sum[k];
}
