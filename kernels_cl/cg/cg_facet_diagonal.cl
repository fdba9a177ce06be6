// Diagonals of the matrices of natural (Neumann, Robin) conditions, one thread a facet's column. After cg_facet.clh.
// needs: ARGUMENTS NDOF NC DIM NQF
//
// Arrays
//   out  from `first` on: [NDOF, facet_stride], facet fastest

__kernel void cg_facet_diagonal(ARGUMENTS)
{
  const int facet = get_global_id(0) % facet_stride, j = get_global_id(0) / facet_stride;
  if (facet >= num_cells || j >= NDOF) return;
  FACET_LOAD(facet)
  real sum = 0;
  for (int q = 0; q < NQF; ++q) {
    FACET_POINT
    real f0[NC], f1[NC * DIM];
    CG_TRIAL(j)
    pw_boundary_jacobian(condition, u, u_t, u_x, du, du_t, du_x, a, a_x, t, shift, x, n, constants, f0, f1);
    point_pull_back(&g, weight, f0, f1);
    sum += cg_test(j, basis, grad, f0, f1);
  }
  out[first + j * facet_stride + facet] = sum;
}
