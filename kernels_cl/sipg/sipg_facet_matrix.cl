// Fluxes of interior penalty in matrices, the plain version: one thread a column of a cell goes around the cell's facets. An
// interior facet is done from both sides, so no sums cross threads. After sipg_facet.clh.
// needs: ARGUMENTS NDOF NFACETS NQF
//
// Arrays
//   out       [NDOF test, NDOF trial, stride] blocks, which are added to;
//             [NFACETS, NDOF test, NDOF trial of the neighbour, stride] couplings, which are written. Cell fastest.

// Thread (trial function, cell), cell fastest.
__kernel void sipg_facet_block(ARGUMENTS)
{
  const int cell = get_global_id(0) % stride, trial = get_global_id(0) / stride;
  if (cell >= num_cells || trial >= NDOF) return;
  SIPG_CELL
  real column[NDOF];
  for (int i = 0; i < NDOF; ++i) column[i] = 0;
  for (int f = 0; f < NFACETS; ++f) {
    SIPG_BEHIND
    if (behind == -1) continue;
    for (int q = 0; q < NQF; ++q) {
      SIPG_POINT
      SIPG_FLUXES_JACOBIAN(TRIAL, NONE)
      for (int i = 0; i < NDOF; ++i) column[i] += SIPG_TEST(i);
    }
  }
  for (int i = 0; i < NDOF; ++i) out[((size_t)i * NDOF + trial) * stride + cell] += column[i];
}

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
      SIPG_POINT
      SIPG_FLUXES_JACOBIAN(NONE, TRIAL)
      for (int i = 0; i < NDOF; ++i) column[i] += SIPG_TEST(i);
    }
  }
  for (int i = 0; i < NDOF; ++i) out[(((size_t)f * NDOF + i) * NDOF + trial) * stride + cell] = column[i];
}
