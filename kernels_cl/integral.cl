// Integrals of pointwise numbers over each cell, one thread a cell: norms of errors (after error_squares.clh), integrands
// of users (pw_objective is then in the physics). After cg_point.clh or hdg_recovery.clh.
// needs: ARGUMENTS INTEGRAL INTEGRAND_CELL INTEGRAND NOBJ READS_AUX DIM NC NA NQ NNODES GEO GEO_GRAD WEIGHTS TABLE pw_objective
//
// Macros
//   INTEGRAL   name of the kernel;  NOBJ numbers at a point;  READS_AUX whether they read auxiliary fields
// Arrays
//   out [NOBJ, stride]  integrals; cell fastest
// The others as in the files before and in geometry.clh.
// Tables
//   GEO [NQ, NNODES], GEO_GRAD [NQ, NNODES, DIM], WEIGHTS [NQ], and those of the fields

__kernel void INTEGRAL(ARGUMENTS)
{
  const int cell = get_global_id(0);
  if (cell >= num_cells) return;
  POINT_LOAD_CONSTANTS
#if READS_AUX
  POINT_LOAD_AUX(cell)
#endif
  INTEGRAND_CELL
  real sum[NOBJ];
  for (int k = 0; k < NOBJ; ++k) sum[k] = 0;
  for (int q = 0; q < NQ; ++q) {
    real x[DIM], u[2 * NC], u_x[NC * DIM], a[NA + 1], a_x[(NA + 1) * DIM], obj[NOBJ];  // u, then u* of hybridizable DG
    geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
    geometry_x(&g, GEO + q * NNODES, x);
    INTEGRAND(q)
    pw_objective(u, u_x, a, a_x, t, x, constants, obj);
    const real weight = WEIGHTS[q] * g.measure;
    for (int k = 0; k < NOBJ; ++k) sum[k] += weight * obj[k];
  }
  for (int k = 0; k < NOBJ; ++k) out[k * (size_t)stride + cell] = sum[k];
}
