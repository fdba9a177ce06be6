// Integrals of pointwise numbers over each cell, one thread a cell: norms of errors (after error_squares.clh), integrands
// of users (pw_objective is then in the physics).
// needs: ARGUMENTS INTEGRAL NOBJ READS_AUX NDOF NBASIS NC NA NQ DIM NNODES BASIS GRAD GEO GEO_GRAD WEIGHTS pw_objective
//
// Macros
//   INTEGRAL   name of the kernel;  NOBJ numbers at a point;  READS_AUX whether they read auxiliary fields
// Arrays
//   out [NOBJ, stride]  integrals; cell fastest
// The others as in cg_point.clh, geometry.clh and cg_cell.cl.

#define U_E(i) u_e[i]

__kernel void INTEGRAL(ARGUMENTS)
{
  const int cell = get_global_id(0);
  if (cell >= num_cells) return;
  POINT_LOAD_CONSTANTS
#if READS_AUX
  POINT_LOAD_AUX(cell)
#endif
  real u_e[NDOF], sum[NOBJ];
  for (int i = 0; i < NDOF; ++i) u_e[i] = CG_U(cell, i);
  for (int k = 0; k < NOBJ; ++k) sum[k] = 0;
  Geometry g;
  geometry_load(&g, nodes, cell_nodes, stored_geometry, stride, cell);
  for (int q = 0; q < NQ; ++q) {
    TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM;
    real x[DIM], u[NC], u_x[NC * DIM], a[NA + 1], a_x[(NA + 1) * DIM], obj[NOBJ];
    geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
    geometry_x(&g, GEO + q * NNODES, x);
    CG_EVALUATE(U_E, basis, grad, &g, u, u_x);
#if READS_AUX
    point_auxiliary(aux_e, basis, grad, &g, a, a_x);
#endif
    pw_objective(u, u_x, a, a_x, t, x, constants, obj);
    const real weight = WEIGHTS[q] * g.measure;
    for (int k = 0; k < NOBJ; ++k) sum[k] += weight * obj[k];
  }
  for (int k = 0; k < NOBJ; ++k) out[k * stride + cell] = sum[k];
}
