// Element matrices and their diagonals, one thread a column of a cell: the Jacobian's action on each basis function.
//
// Global size is NDOF * stride: thread (j, cell), cell fastest.
// needs: NDOF NBASIS NC NA NAUX NQ DIM NNODES TIME BASIS GRAD GEO GEO_GRAD WEIGHTS
//
// Arrays
//   out [NDOF test, NDOF trial, stride] element matrices (cg_matrix), [NDOF, stride] diagonals (cg_diagonal), cell fastest;
//       after gather_cells.clh [cell, NDOF] diagonals
// The others as in cg_point.clh, geometry.clh and cg_cell.cl.

#define U_E(i) CG_U(cell, i)
#define UT_E(i) CG_UT(cell, i)

// Weighted fluxes of trial function j at point q of the cell: f0 [NC], f1 [NC, DIM] in the reference frame.
#define CG_COLUMN_POINT                                                                                               \
  TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;        \
  real f0[NC], f1[NC * DIM];                                                                                          \
  geometry_point(&g, GEO_GRAD + q * NNODES * DIM);                                                                    \
  CG_STATE(U_E, UT_E)                                                                                                 \
  CG_TRIAL(j)                                                                                                         \
  pw_jacobian(u, u_t, u_x, du, du_t, du_x, a, a_x, t, shift, x, constants, f0, f1);                                   \
  point_pull_back(&g, WEIGHTS[q] * g.measure, f0, f1);

__kernel void cg_matrix(CG_ARGUMENTS, __global real *out)
{
  const int cell = get_global_id(0) % stride, j = get_global_id(0) / stride;
  if (cell >= num_cells || j >= NDOF) return;
  POINT_LOAD_CONSTANTS
  POINT_LOAD_AUX(cell)
  Geometry g;
  geometry_load(&g, nodes, cell_nodes, stored_geometry, stride, cell);
  real column[NDOF];
  for (int i = 0; i < NDOF; ++i) column[i] = 0;
  for (int q = 0; q < NQ; ++q) {
    CG_COLUMN_POINT
    for (int i = 0; i < NDOF; ++i) column[i] += cg_test(i, basis, grad, f0, f1);
  }
  for (int i = 0; i < NDOF; ++i) out[((size_t)i * NDOF + j) * stride + cell] = column[i];
}

__kernel void cg_diagonal(CG_ARGUMENTS, __global real *out)
{
  const int cell = get_global_id(0) % stride, j = get_global_id(0) / stride;
  if (cell >= num_cells || j >= NDOF) return;
  POINT_LOAD_CONSTANTS
  POINT_LOAD_AUX(cell)
  Geometry g;
  geometry_load(&g, nodes, cell_nodes, stored_geometry, stride, cell);
  real sum = 0;
  for (int q = 0; q < NQ; ++q) {
    CG_COLUMN_POINT
    sum += cg_test(j, basis, grad, f0, f1);
  }
  out[ELEMENT_ENTRY(j, cell)] = sum;
}
