// Integral of f1·n over facets, one thread a facet. After cg_facet.clh.
// needs: DIM NC NQF TIME
//
// Arrays
//   facets [3, facet_stride]  as in cg_facet.clh; the third row is not read
//   out    [NC, facet_stride] from `first` on; facet fastest

__kernel void cg_flux(FACET_ARGUMENTS)
{
  const int facet = get_global_id(0);
  if (facet >= num_cells) return;
  FACET_LOAD(facet)
  real sum[NC], f0[NC], f1[NC * DIM];
  for (int c = 0; c < NC; ++c) sum[c] = 0;
  for (int q = 0; q < NQF; ++q) {
    FACET_POINT
    pw_residual(u, u_t, u_x, a, a_x, t, x, constants, f0, f1);
    for (int c = 0; c < NC; ++c)
      for (int d = 0; d < DIM; ++d) sum[c] += weight * f1[c * DIM + d] * n[d];
  }
  for (int c = 0; c < NC; ++c) out[first + c * facet_stride + facet] = sum[c];
}
