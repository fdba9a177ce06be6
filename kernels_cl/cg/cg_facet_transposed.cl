// Transposed Jacobian of natural (Neumann, Robin) conditions, one thread a facet. After cg_facet.clh and
// transposed_point.clh.
// needs: NDOF NC DIM NQF
//
// Arrays
//   out  from `first` on: [NDOF, facet_stride], facet fastest

__kernel void cg_facet_transposed(FACET_ARGUMENTS)
{
  const int facet = get_global_id(0);
  if (facet >= num_cells) return;
  FACET_LOAD(facet)
  real r_e[NDOF];
  for (int i = 0; i < NDOF; ++i) r_e[i] = 0;
  for (int q = 0; q < NQF; ++q) {
    FACET_POINT
    real f0[NC], f1[NC * DIM];
    CG_DIRECTION(DU_E)
    transposed_boundary_jacobian(condition, u, u_t, u_x, du, du_x, a, a_x, t, shift, x, n, constants, f0, f1);
    point_pull_back(&g, weight, f0, f1);
    for (int i = 0; i < NDOF; ++i) r_e[i] += cg_test(i, basis, grad, f0, f1);
  }
  for (int i = 0; i < NDOF; ++i) out[first + i * facet_stride + facet] = r_e[i];
}
