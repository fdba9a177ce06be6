// Element vectors of continuous Galerkin, one thread a cell: everything in registers, no local memory.
// Fastest for few degrees of freedom a cell; the same result as cg_transpose.cl, and its plain version.
//
// Phases, for each cell: load coefficients and geometry; at each quadrature point evaluate the fields, call the physics,
// add to the element vector; write it.
// needs: ROLE ALONG POINT_TERMS NDOF NBASIS NC NA NAUX NQ DIM NNODES TIME BASIS GRAD GEO GEO_GRAD WEIGHTS
//
// Arrays
//   out [NDOF, stride]  element vector, cell fastest, or [cell, NDOF] after gather_cells.clh
// The others as in cg_point.clh and geometry.clh.
// Tables
//   BASIS [NQ, NBASIS], GRAD [NQ, NBASIS, DIM], GEO [NQ, NNODES], GEO_GRAD [NQ, NNODES, DIM], WEIGHTS [NQ]

#define U_E(i) u_e[i]
#define UT_E(i) ut_e[i]
#define DU_E(i) du_e[i]

__kernel void ROLE(cg)(CG_ARGUMENTS, __global real *out)
{
  const int cell = get_global_id(0);
  if (cell >= num_cells) return;
  POINT_LOAD_CONSTANTS
  POINT_LOAD_AUX(cell)
  real u_e[NDOF], r_e[NDOF];
  for (int i = 0; i < NDOF; ++i) u_e[i] = CG_U(cell, i);
  for (int i = 0; i < NDOF; ++i) r_e[i] = 0;
#if ALONG
  real du_e[NDOF];
  for (int i = 0; i < NDOF; ++i) du_e[i] = CG_DU(cell, i);
#endif
#if TIME
  real ut_e[NDOF];
  for (int i = 0; i < NDOF; ++i) ut_e[i] = CG_UT(cell, i);
#endif
  Geometry g;
  geometry_load(&g, nodes, cell_nodes, stored_geometry, stride, cell);
  for (int q = 0; q < NQ; ++q) {
    TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;
    real f0[NC], f1[NC * DIM];
    geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
    CG_STATE(U_E, UT_E)
#if ALONG
    CG_DIRECTION(DU_E)
#endif
    POINT_TERMS
    point_pull_back(&g, WEIGHTS[q] * g.measure, f0, f1);
    for (int i = 0; i < NDOF; ++i) r_e[i] += cg_test(i, basis, grad, f0, f1);
  }
  for (int i = 0; i < NDOF; ++i) out[ELEMENT_ENTRY(i, cell)] = r_e[i];
}
