// Squared errors against the exact solution, one thread a cell: L2 norm and H1 seminorm of each component.
// needs: NDOF NBASIS NC NA NAUX NQ DIM NNODES TIME BASIS GRAD GEO GEO_GRAD WEIGHTS
//
// Arrays
//   out [2 NC, stride]  |u - exact|^2 of each component, then |grad (u - exact)|^2; cell fastest
// The others as in cg_point.clh, geometry.clh and cg_cell.cl.

#define U_E(i) u_e[i]

__kernel void cg_error(CG_ARGUMENTS, __global real *out)
{
  const int cell = get_global_id(0);
  if (cell >= num_cells) return;
  POINT_LOAD_CONSTANTS
  real u_e[NDOF], sum[2 * NC];
  for (int i = 0; i < NDOF; ++i) u_e[i] = CG_U(cell, i);
  for (int k = 0; k < 2 * NC; ++k) sum[k] = 0;
  Geometry g;
  geometry_load(&g, nodes, cell_nodes, stored_geometry, stride, cell);
  for (int q = 0; q < NQ; ++q) {
    TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM;
    real x[DIM], u[NC], u_x[NC * DIM], exact[NC], exact_x[NC * DIM];
    geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
    geometry_x(&g, GEO + q * NNODES, x);
    CG_EVALUATE(U_E, basis, grad, &g, u, u_x);
    pw_exact(t, x, constants, exact, exact_x);
    const real weight = WEIGHTS[q] * g.measure;
    for (int c = 0; c < NC; ++c) {
      sum[c] += weight * (u[c] - exact[c]) * (u[c] - exact[c]);
      for (int d = 0; d < DIM; ++d) {
        const real difference = u_x[c * DIM + d] - exact_x[c * DIM + d];
        sum[NC + c] += weight * difference * difference;
      }
    }
  }
  for (int k = 0; k < 2 * NC; ++k) out[k * stride + cell] = sum[k];
}
