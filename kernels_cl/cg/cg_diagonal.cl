// Diagonals of element matrices: on a GPU one thread a cell; on a CPU a vector's lanes of cells. After cell_lanes.clh and
// point_block.clh.
// needs: ARGUMENTS LANES UNROLLED NDOF NBASIS NC NA NAUX NQ DIM NNODES TIME BASIS GRAD GEO GEO_GRAD WEIGHTS
//
// Arrays
//   out [NDOF, stride] element vectors, cell fastest, or [cell, NDOF] after gather_cells.clh
// The others as in cg_point.clh, geometry.clh and cg_cell.cl.

#define U_E(i) u_e[AT(i)]
#define UT_E(i) ut_e[AT(i)]

LANES_KERNEL cg_diagonal(ARGUMENTS)
{
  CELLS_OF_ITEM(1)
  POINT_LOAD_CONSTANTS
  OF_ITEM(POINT_LOAD_AUX(cell) Geometry g;)
  STATE_KEPT
  real sum[NDOF * LANES];
  GEOMETRY_KEPT
  FOR_EACH_LANE {
    OF_PHASE(CELL Geometry g;)
    KEEP_STATE
    UNROLLED for (int i = 0; i < NDOF; ++i) sum[AT(i)] = 0;
    geometry_load(&g, nodes, cell_nodes, stored_geometry, stride, cell);
    KEEP_GEOMETRY
  }
  for (int q = 0; q < NQ; ++q) {
    TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;
    FOR_LANES {
      OF_PHASE(CELL POINT_LOAD_AUX(cell) Geometry g; KEPT_GEOMETRY)
      geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
      CG_STATE(U_E, UT_E)
      UNROLLED for (int c = 0; c < NC; ++c) {
        real B[BLOCK * BLOCK];
        UNROLLED for (int k = 0; k < BLOCK; ++k) {
          real du[NC], du_t[NC], du_x[NC * DIM], f0[NC], f1[NC * DIM];
          block_direction(c, k, &g, shift, du, du_t, du_x);
          pw_jacobian(u, u_t, u_x, du, du_t, du_x, a, a_x, t, shift, x, constants, f0, f1);
          point_pull_back(&g, WEIGHTS[q] * g.measure, f0, f1);
          block_column(c, k, f0, f1, B);
        }
        UNROLLED for (int i = 0; i < NDOF; ++i)
          if (DOF_COMP[i] == c) sum[AT(i)] += block_product(B, basis[DOF_BASIS[i]], grad + DOF_BASIS[i] * DIM);
      }
    }
  }
  FOR_LANES {
    OF_PHASE(const int cell = first + lane;)
    UNROLLED for (int i = 0; i < NDOF; ++i)
      if (cell < num_cells) out[ELEMENT_ENTRY(i, cell)] = sum[AT(i)];
  }
}
