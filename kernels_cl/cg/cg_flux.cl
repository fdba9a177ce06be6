// Fluxes through facets weighted by the basis functions, one thread a facet: f1·n of the components that are essential
// there, or what a natural condition gives the others; its f1 sums to nothing over them. After cg_facet.clh.
// needs: ARGUMENTS DIM NC NDOF NQF TIME
//
// Arrays
//   facets [3 + NC, facet_stride]  as in cg_facet.clh, condition -1 for f1·n; whether each component is essential
//   out    [NDOF, facet_stride] from `first` on; facet fastest

__kernel void cg_flux(ARGUMENTS)
{
  const int facet = get_global_id(0);
  if (facet >= num_cells) return;
  FACET_LOAD(facet)
  real r_e[NDOF], through[NC], f0[NC], f1[NC * DIM];
  for (int i = 0; i < NDOF; ++i) r_e[i] = 0;
  for (int q = 0; q < NQF; ++q) {
    FACET_POINT
    if (condition < 0) {
      pw_residual(u, u_t, u_x, a, a_x, t, x, constants, f0, f1);
      for (int c = 0; c < NC; ++c) {
        through[c] = 0;
        for (int d = 0; d < DIM; ++d) through[c] += f1[c * DIM + d] * n[d];
      }
    } else {
      pw_boundary(condition, u, u_t, u_x, a, a_x, t, x, n, constants, f0, f1);
      for (int c = 0; c < NC; ++c) through[c] = -f0[c];
    }
    for (int k = 0; k < NC * DIM; ++k) f1[k] = condition < 0 ? 0 : -f1[k];
    for (int c = 0; c < NC; ++c)
      if ((facets[(3 + c) * facet_stride + facet] != 0) != (condition < 0)) through[c] = 0;
    point_pull_back(&g, weight, through, f1);
    for (int i = 0; i < NDOF; ++i) r_e[i] += cg_test(i, basis, grad, through, f1);
  }
  for (int i = 0; i < NDOF; ++i) out[first + i * facet_stride + facet] = r_e[i];
}
