// Fluxes of interior penalty, the plain version: one thread a cell, or a column of its block, or its diagonal, goes around the cell's facets and adds
// to what the volume kernels wrote. An interior facet is done from both sides, so no sums cross threads. After sipg_facet.clh.
// needs: ARGUMENTS ROLE MATRIX TRIALS DIAGONAL FACET_TERMS NDOF NFACETS NQF
//
// Arrays
//   out       [NDOF, TRIALS, stride] vectors or blocks, which are added to. Cell fastest.

#undef R_E
#define R_E(i) r_e[i]

__kernel void ROLE(sipg_facet)(ARGUMENTS)
{
  const int cell = get_global_id(0) % stride, trial = get_global_id(0) / stride;
  if (cell >= num_cells || trial >= TRIALS) return;
  SIPG_CELL
  real r_e[NDOF];
  for (int i = 0; i < NDOF; ++i) r_e[i] = 0;
  for (int f = 0; f < NFACETS; ++f) {
    SIPG_BEHIND
    if (behind == -1) continue;
    for (int q = 0; q < NQF; ++q) {
      if (MATRIX && SIPG_VANISHES(f * NQF + q)) continue;
      SIPG_POINT
#if DIAGONAL
      BLOCK_TERMS(FACET_TERMS, weight, FACET_BASIS + row * NBASIS, FACET_GRAD + row * NBASIS * DIM, R_E)
#else
      FACET_TERMS
      for (int i = 0; i < NDOF; ++i) r_e[i] += SIPG_TEST(i);
#endif
    }
  }
  for (int i = 0; i < NDOF; ++i) out[((size_t)i * TRIALS + trial) * stride + cell] += r_e[i];
}
