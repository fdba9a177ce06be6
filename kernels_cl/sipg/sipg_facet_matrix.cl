// Fluxes of interior penalty in matrices, the plain version: one thread a column of a cell goes around the cell's facets. An
// interior facet is done from both sides, so no sums cross threads. After sipg_facet.clh.
// needs: ARGUMENTS NDOF NFACETS NQF NBASIS DIM TABLE FACET_BASIS FACET_GRAD PERM
//
// Arrays
//   out       [NDOF test, NDOF trial, stride] blocks, which are added to;
//             [NFACETS, NDOF test, NDOF trial of the neighbour, stride] couplings, which are written. Cell fastest.

// Whether trial function j is zero at a point, with its gradient, as most nodal functions of tensor cells are: all of it that
// follows is zero then. The state is evaluated only at the other points.
static inline int sipg_vanishes(int j, TABLE const real *basis, TABLE const real *grad)
{
  int zero = basis[DOF_BASIS[j]] == 0;
  for (int r = 0; r < DIM; ++r) zero = zero && grad[DOF_BASIS[j] * DIM + r] == 0;
  return zero;
}
#define SIPG_VANISHES(row) sipg_vanishes(trial, FACET_BASIS + (row) * NBASIS, FACET_GRAD + (row) * NBASIS * DIM)

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
      if (SIPG_VANISHES(f * NQF + q)) continue;
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
      if (SIPG_VANISHES(place * NQF + PERM[turn * NQF + q])) continue;
      SIPG_POINT
      SIPG_FLUXES_JACOBIAN(NONE, TRIAL)
      for (int i = 0; i < NDOF; ++i) column[i] += SIPG_TEST(i);
    }
  }
  for (int i = 0; i < NDOF; ++i) out[(((size_t)f * NDOF + i) * NDOF + trial) * stride + cell] = column[i];
}
