// Integrals of a user's pointwise numbers over boundary facets, one thread a facet; of hybridizable DG those of the trace and of the
// cell's gradient. After cg_facet.clh or hdg_facet.clh.
// needs: ARGUMENTS INTEGRAL FACET_LOAD FACET_POINT NOBJ NQF pw_objective
//
// Macros
//   INTEGRAL  name of the kernel;  NOBJ numbers at a point
// Arrays
//   facets [2 or more, facet_stride]  cell, facet of the reference cell; num_cells is the number of facets here
//   out    [NOBJ, facet_stride]       integrals; facet fastest

__kernel void INTEGRAL(ARGUMENTS)
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
  for (int k = 0; k < NOBJ; ++k) out[k * (size_t)facet_stride + facet] = sum[k];
}
