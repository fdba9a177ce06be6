// Boundary integrals of continuous Galerkin: natural (Neumann, Robin) conditions, one thread a facet's vector, column or diagonal.
// After cg_facet.clh.
// needs: ARGUMENTS ROLE TRIALS DIAGONAL DIRECTION BOUNDARY_TERMS NDOF NC DIM NQF
//
// Arrays
//   out  from `first` on: [NDOF, TRIALS, facet_stride], facet fastest

#undef R_E
#define R_E(i) r_e[i]

__kernel void ROLE(cg_facet)(ARGUMENTS)
{
  const int facet = get_global_id(0) % facet_stride, column = get_global_id(0) / facet_stride;
  if (facet >= num_cells || column >= TRIALS) return;
  FACET_LOAD(facet)
  real r_e[NDOF];
  for (int i = 0; i < NDOF; ++i) r_e[i] = 0;
  for (int q = 0; q < NQF; ++q) {
    FACET_POINT
#if DIAGONAL
    BLOCK_TERMS(BOUNDARY_TERMS, weight, basis, grad, R_E)
#else
    real f0[NC], f1[NC * DIM];
    DIRECTION(DU_E)
    BOUNDARY_TERMS
    point_pull_back(&g, weight, f0, f1);
    for (int i = 0; i < NDOF; ++i) r_e[i] += cg_test(i, basis, grad, f0, f1);
#endif
  }
  for (int i = 0; i < NDOF; ++i) out[first + ((size_t)i * TRIALS + column) * facet_stride + facet] = r_e[i];
}
