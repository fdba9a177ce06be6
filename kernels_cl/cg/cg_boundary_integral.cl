// Integrals of a user's pointwise numbers over boundary facets, one thread a facet. After cg_facet.clh.
// needs: ARGUMENTS NOBJ DIM NC NQF pw_objective
//
// Macros
//   NOBJ  numbers at a point
// Arrays
//   facets [3, facet_stride]  as in cg_facet.clh; the third row is not read
//   out    [NOBJ, facet_stride] from `first` on; facet fastest

__kernel void cg_boundary_integral(ARGUMENTS)
{
  const int facet = get_global_id(0);
  if (facet >= num_cells) return;
  FACET_LOAD(facet)
  real sum[NOBJ];
  for (int k = 0; k < NOBJ; ++k) sum[k] = 0;
  for (int q = 0; q < NQF; ++q) {
    real obj[NOBJ];
    FACET_POINT
    pw_objective(u, u_x, a, a_x, t, x, n, constants, obj);
    for (int k = 0; k < NOBJ; ++k) sum[k] += weight * obj[k];
  }
  for (int k = 0; k < NOBJ; ++k) out[first + k * facet_stride + facet] = sum[k];
}
