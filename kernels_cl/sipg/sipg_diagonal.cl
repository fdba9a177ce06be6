// The diagonal of interior penalty's Jacobian, one thread a cell, by the matrices of point_block.clh, so that a cell costs a few products
// and no column of its own. After sipg_facet.clh and point_block.clh.
// needs: ARGUMENTS NDOF NBASIS NC NQ NQF DIM NFACETS BASIS GRAD GEO GEO_GRAD WEIGHTS FACET_BASIS FACET_GRAD
//
// Arrays
//   out  [NDOF, stride] element vectors, cell fastest, written

// sum += vᵀ B v of each basis function of component c.
static inline void add_products(int c, const real *B, TABLE const real *basis, TABLE const real *grad, real *sum)
{
  for (int i = 0; i < NDOF; ++i) {
    if (DOF_COMP[i] != c) continue;
    const int b = DOF_BASIS[i];
    real some = fabs(basis[b]);
    for (int r = 0; r < DIM; ++r) some += fabs(grad[b * DIM + r]);
    if (some != 0) sum[i] += block_product(B, basis[b], grad + b * DIM);   // few basis functions, where the points are nodes
  }
}

// Add the products of a point: FLUXES writes f0 and f1 along the direction `d`.
#define ADD_POINT(FLUXES, weight, basis, grad)                          \
  for (int c = 0; c < NC; ++c) {                                        \
    real B[BLOCK * BLOCK];                                              \
    for (int k = 0; k < BLOCK; ++k) {                                   \
      SideDirection d;                                                  \
      real f0[NC], f1[NC * DIM];                                        \
      block_direction(c, k, &g, shift, d.u, d.u_t, d.u_x);              \
      FLUXES                                                            \
      point_pull_back(&g, weight, f0, f1);                              \
      block_column(c, k, f0, f1, B);                                    \
    }                                                                   \
    add_products(c, B, basis, grad, sum);                               \
  }
#define CELL_FLUXES pw_jacobian(u, u_t, u_x, d.u, d.u_t, d.u_x, a, a_x, t, shift, x, constants, f0, f1);
#define FACET_FLUXES SIPG_FLUX(1, &d, &d_other, f0, f1)

__kernel void sipg_diagonal(ARGUMENTS)
{
  const int cell = get_global_id(0);
  if (cell >= num_cells) return;
  SIPG_CELL
  real sum[NDOF];
  for (int i = 0; i < NDOF; ++i) sum[i] = 0;
  for (int q = 0; q < NQ; ++q) {
    TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;
    geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
    CG_STATE(U_OWN, UT_OWN)
    ADD_POINT(CELL_FLUXES, WEIGHTS[q] * g.measure, basis, grad)
  }
  SideDirection d_other;
  for (int e = 0; e < NC; ++e) d_other.u[e] = d_other.u_t[e] = 0;
  for (int e = 0; e < NC * DIM; ++e) d_other.u_x[e] = 0;
  for (int f = 0; f < NFACETS; ++f) {
    SIPG_BEHIND
    if (behind == -1) continue;
    for (int q = 0; q < NQF; ++q) {
      SIPG_POINT
      ADD_POINT(FACET_FLUXES, weight, FACET_BASIS + row * NBASIS, FACET_GRAD + row * NBASIS * DIM)
    }
  }
  for (int i = 0; i < NDOF; ++i) out[i * stride + cell] = sum[i];
}
