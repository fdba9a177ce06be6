// Numerical flux f1·n out of cells through some of their facets, one thread a facet: what balances the sources of the cells to
// rounding.
// After cg_point.clh, sipg_flux.clh and sipg_facet.clh.
// needs: ARGUMENTS NDOF NC NAUX NQF DIM NNODES NFACETS NORIENT PERM
//
// Arrays
//   facets [2, facet_stride]  cell, its facet;  out [NC, facet_stride]. The others as in sipg_facet.clh; num_cells: facets.

__kernel void sipg_boundary_flux(ARGUMENTS)
{
  const int item = get_global_id(0);
  if (item >= num_cells) return;
  const int cell = facets[item], f = facets[facet_stride + item];
  SIPG_CELL
  SIPG_BEHIND
  real sum[NC];
  for (int c = 0; c < NC; ++c) sum[c] = 0;
  if (behind != -1)
    for (int q = 0; q < NQF; ++q) {
      SIPG_POINT
      SIPG_FLUXES(0, NONE, NONE)
      for (int c = 0; c < NC; ++c) sum[c] -= f0[c];
    }
  for (int c = 0; c < NC; ++c) out[c * facet_stride + item] = sum[c];
}
