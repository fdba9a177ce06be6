// Element vectors, matrices and their diagonals of continuous Galerkin, a point of a cell after the other: on a GPU one thread a
// cell, or a column of a cell's matrix, everything in registers, no local memory; on a CPU a vector's lanes of cells.
// Fastest for few degrees of freedom a cell; the same result as cg_transpose.cl, and its plain version. After cell_lanes.clh.
//
// Phases, for each cell: load coefficients and geometry; at each quadrature point evaluate the fields, call the physics,
// add to the element vector; write it.
// Work-items are (column, cells), cell fastest; vectors have one column.
// needs: ARGUMENTS ROLE ALONG MATRIX TRIALS DIAGONAL DIRECTION POINT_TERMS LANES UNROLLED NDOF NBASIS NC NA NAUX NQ DIM NNODES TIME
// needs: BASIS GRAD GEO GEO_GRAD WEIGHTS
//
// Arrays
//   out [NDOF, stride]  element vector or diagonal, cell fastest, or [cell, NDOF] with CELL_BY_CELL;
//       [NDOF test, NDOF trial, stride]  element matrices, cell fastest
// The others as in cg_point.clh and geometry.clh.
// Tables
//   BASIS [NQ, NBASIS], GRAD [NQ, NBASIS, DIM], GEO [NQ, NNODES], GEO_GRAD [NQ, NNODES, DIM], WEIGHTS [NQ]

#undef U_E
#undef UT_E
#undef R_E
#undef STATE_OF_CELL
#undef LOAD_STATE
#undef RESULT
#if MATRIX && LANES == 1  // each column reads the state where it stands
#define U_E(i) CG_U(cell, i)
#define UT_E(i) CG_UT(cell, i)
#define STATE_OF_CELL
#define LOAD_STATE
#else
#define U_E(i) u_e[AT(i)]
#define UT_E(i) ut_e[AT(i)]
#define STATE_OF_CELL STATE_KEPT
#define LOAD_STATE KEEP_STATE
#endif
#if MATRIX
#define RESULT(i) out[((size_t)(i) * NDOF + column) * stride + cell]
#else
#define RESULT(i) out[ELEMENT_ENTRY(i, cell)]
#endif
#define DU_E(i) du_e[AT(i)]
#define R_E(i) r_e[AT(i)]

LANES_KERNEL ROLE(cg)(ARGUMENTS)
{
  CELLS_OF_ITEM(TRIALS)
  POINT_LOAD_CONSTANTS
  OF_ITEM(POINT_LOAD_AUX(cell) Geometry g;)
  STATE_OF_CELL
  real r_e[NDOF * LANES];
  GEOMETRY_KEPT
#if ALONG && !MATRIX
  real du_e[NDOF * LANES];
#endif
  FOR_EACH_LANE {
    OF_PHASE(CELL Geometry g;)
    LOAD_STATE
    UNROLLED for (int i = 0; i < NDOF; ++i) R_E(i) = 0;
#if ALONG && !MATRIX
    UNROLLED for (int i = 0; i < NDOF; ++i) DU_E(i) = CG_DU(cell, i);
#endif
    geometry_load(&g, nodes, cell_nodes, stride, cell);
    KEEP_GEOMETRY
  }
  for (int q = 0; q < NQ; ++q) {
    TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;
    FOR_LANES {
      OF_PHASE(CELL POINT_LOAD_AUX(cell) Geometry g; KEPT_GEOMETRY)
      geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
      CG_STATE(U_E, UT_E)
#if DIAGONAL
      BLOCK_TERMS(POINT_TERMS, WEIGHTS[q] * g.measure, basis, grad, R_E)
#else
      real f0[NC], f1[NC * DIM];
      DIRECTION(DU_E)
      POINT_TERMS
      point_pull_back(&g, WEIGHTS[q] * g.measure, f0, f1);
      UNROLLED for (int i = 0; i < NDOF; ++i) R_E(i) += cg_test(i, basis, grad, f0, f1);
#endif
    }
  }
  FOR_LANES {
    OF_PHASE(const int cell = first + lane;)
    UNROLLED for (int i = 0; i < NDOF; ++i)
      if (cell < num_cells) RESULT(i) = R_E(i);
  }
}
