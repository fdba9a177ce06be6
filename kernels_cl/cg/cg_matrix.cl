// Element matrices: the Jacobian's action on each basis function. A work-item has a column of a cell; on a CPU of a vector's lanes of
// cells. After cell_lanes.clh.
//
// Global size is NDOF * stride / LANES: work-item (j, cells), cell fastest.
// needs: ARGUMENTS LANES UNROLLED NDOF NBASIS NC NA NAUX NQ DIM NNODES TIME BASIS GRAD GEO GEO_GRAD WEIGHTS
//
// Arrays
//   out [NDOF test, NDOF trial, stride] element matrices, cell fastest
// The others as in cg_point.clh, geometry.clh and cg_cell.cl.

#if LANES > 1
#define U_E(i) u_e[AT(i)]
#define UT_E(i) ut_e[AT(i)]
#define KEEP_COLUMN KEEP_STATE
#define COLUMNS_OF_ITEM                                                                          \
  const int first = get_global_id(0) * LANES % stride, j = get_global_id(0) * LANES / stride;    \
  if (first >= num_cells || j >= NDOF) return;                                                   \
  STATE_KEPT
#else  // each column reads the state where it stands
#define U_E(i) CG_U(cell, i)
#define UT_E(i) CG_UT(cell, i)
#define KEEP_COLUMN
#define COLUMNS_OF_ITEM                                                                          \
  const int cell = get_global_id(0) % stride, j = get_global_id(0) / stride, first = cell, lane = 0; \
  if (cell >= num_cells || j >= NDOF) return;
#endif

LANES_KERNEL cg_matrix(ARGUMENTS)
{
  COLUMNS_OF_ITEM
  POINT_LOAD_CONSTANTS
  OF_ITEM(POINT_LOAD_AUX(cell) Geometry g;)
  GEOMETRY_KEPT
  real sum[NDOF * LANES];
  FOR_EACH_LANE {
    OF_PHASE(CELL Geometry g;)
    geometry_load(&g, nodes, cell_nodes, stored_geometry, stride, cell);
    KEEP_GEOMETRY
    KEEP_COLUMN
    UNROLLED for (int i = 0; i < NDOF; ++i) sum[AT(i)] = 0;
  }
  for (int q = 0; q < NQ; ++q) {
    TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;
    FOR_LANES {
      OF_PHASE(CELL POINT_LOAD_AUX(cell) Geometry g; KEPT_GEOMETRY)
      real f0[NC], f1[NC * DIM];
      geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
      CG_STATE(U_E, UT_E)
      CG_TRIAL(j)
      pw_jacobian(u, u_t, u_x, du, du_t, du_x, a, a_x, t, shift, x, constants, f0, f1);
      point_pull_back(&g, WEIGHTS[q] * g.measure, f0, f1);
      UNROLLED for (int i = 0; i < NDOF; ++i) sum[AT(i)] += cg_test(i, basis, grad, f0, f1);
    }
  }
  FOR_LANES {
    OF_PHASE(const int cell = first + lane;)
    UNROLLED for (int i = 0; i < NDOF; ++i)
      if (cell < num_cells) out[((size_t)i * NDOF + j) * stride + cell] = sum[AT(i)];
  }
}
