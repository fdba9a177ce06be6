// Blocks of interior penalty between a cell and those behind its facets, the plain version. After sipg_facet.clh.
// needs: ARGUMENTS NDOF NFACETS NQF PERM
//
// Arrays
//   out  [NFACETS, NDOF test, NDOF trial of the neighbour, stride], which are written. Cell fastest.

// Thread (facet of the cell, trial function of the neighbour, cell), cell fastest.
__kernel void sipg_facet_coupling(ARGUMENTS)
{
  const int cell = get_global_id(0) % stride, trial = get_global_id(0) / stride % NDOF,
            f = get_global_id(0) / stride / NDOF;
  if (cell >= num_cells || f >= NFACETS) return;
  SIPG_CELL
  SIPG_BEHIND
  real column[NDOF];
  for (int i = 0; i < NDOF; ++i) column[i] = 0;
  if (behind >= 0) {
    for (int q = 0; q < NQF; ++q) {
      if (SIPG_VANISHES(place * NQF + PERM[turn * NQF + q])) continue;
      SIPG_POINT
      SIPG_FLUXES_JACOBIAN(NONE, TRIAL)
      for (int i = 0; i < NDOF; ++i) column[i] += SIPG_TEST(i);
    }
  }
  for (int i = 0; i < NDOF; ++i) out[(((size_t)f * NDOF + i) * NDOF + trial) * stride + cell] = column[i];
}
