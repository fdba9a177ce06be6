// Element vectors of continuous Galerkin, a point of a cell after the other: on a GPU one thread a cell, everything in registers, no
// local memory; on a CPU a vector's lanes of cells.
// Fastest for few degrees of freedom a cell; the same result as cg_transpose.cl, and its plain version. After cell_lanes.clh.
//
// Phases, for each cell: load coefficients and geometry; at each quadrature point evaluate the fields, call the physics,
// add to the element vector; write it.
// needs: ARGUMENTS ROLE ALONG POINT_TERMS LANES UNROLLED NDOF NBASIS NC NA NAUX NQ DIM NNODES TIME BASIS GRAD GEO GEO_GRAD
// needs: WEIGHTS
//
// Arrays
//   out [NDOF, stride]  element vector, cell fastest, or [cell, NDOF] after gather_cells.clh
// The others as in cg_point.clh and geometry.clh.
// Tables
//   BASIS [NQ, NBASIS], GRAD [NQ, NBASIS, DIM], GEO [NQ, NNODES], GEO_GRAD [NQ, NNODES, DIM], WEIGHTS [NQ]

#define U_E(i) u_e[AT(i)]
#define UT_E(i) ut_e[AT(i)]
#define DU_E(i) du_e[AT(i)]

LANES_KERNEL ROLE(cg)(ARGUMENTS)
{
  CELLS_OF_ITEM
  POINT_LOAD_CONSTANTS
  OF_ITEM(POINT_LOAD_AUX(cell) Geometry g;)
  STATE_KEPT
  real r_e[NDOF * LANES];
  GEOMETRY_KEPT
#if ALONG
  real du_e[NDOF * LANES];
#endif
  FOR_EACH_LANE {
    OF_PHASE(CELL Geometry g;)
    KEEP_STATE
    UNROLLED for (int i = 0; i < NDOF; ++i) r_e[AT(i)] = 0;
#if ALONG
    UNROLLED for (int i = 0; i < NDOF; ++i) DU_E(i) = CG_DU(cell, i);
#endif
    geometry_load(&g, nodes, cell_nodes, stored_geometry, stride, cell);
    KEEP_GEOMETRY
  }
  for (int q = 0; q < NQ; ++q) {
    TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;
    FOR_LANES {
      OF_PHASE(CELL POINT_LOAD_AUX(cell) Geometry g; KEPT_GEOMETRY)
      real f0[NC], f1[NC * DIM];
      geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
      CG_STATE(U_E, UT_E)
#if ALONG
      CG_DIRECTION(DU_E)
#endif
      POINT_TERMS
      point_pull_back(&g, WEIGHTS[q] * g.measure, f0, f1);
      UNROLLED for (int i = 0; i < NDOF; ++i) r_e[AT(i)] += cg_test(i, basis, grad, f0, f1);
    }
  }
  FOR_LANES {
    OF_PHASE(const int cell = first + lane;)
    UNROLLED for (int i = 0; i < NDOF; ++i)
      if (cell < num_cells) out[ELEMENT_ENTRY(i, cell)] = r_e[AT(i)];
  }
}
