// Blocks of interior penalty between cells and those behind some of their facets, the plain version. After sipg_facet.clh.
// needs: ARGUMENTS NDOF NQF PERM
//
// Arrays
//   facets [2, facet_stride]  cell, its facet, behind which there is one;  num_cells: facets
//   out  [NDOF test, NDOF trial of the neighbour, facet_stride], which are written. Facet fastest.

// Thread (trial function of the neighbour, facet), facet fastest.
__kernel void sipg_facet_coupling(ARGUMENTS)
{
  const int item = get_global_id(0) % facet_stride, trial = get_global_id(0) / facet_stride;
  if (item >= num_cells || trial >= NDOF) return;
  const int cell = facets[item], f = facets[facet_stride + item];
  SIPG_CELL
  SIPG_BEHIND
  real column[NDOF];
  for (int i = 0; i < NDOF; ++i) column[i] = 0;
  for (int q = 0; q < NQF; ++q) {
    if (SIPG_VANISHES(place * NQF + PERM[turn * NQF + q])) continue;
    SIPG_POINT
    SIPG_FLUXES(1, NONE, TRIAL)
    for (int i = 0; i < NDOF; ++i) column[i] += SIPG_TEST(i);
  }
  for (int i = 0; i < NDOF; ++i) out[((size_t)i * NDOF + trial) * facet_stride + item] = column[i];
}
