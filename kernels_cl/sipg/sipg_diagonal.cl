// The diagonal of interior penalty's Jacobian, one thread a cell. At a point the Jacobian is a small matrix B for each
// component, between (value, reference gradient) of a trial and a test function: found once, it serves all basis
// functions v by vᵀ B v, so that a cell costs a few products and no column of its own.
// After sipg_facet.clh.
// needs: ARGUMENTS NDOF NBASIS NC NQ NQF DIM NFACETS BASIS GRAD GEO GEO_GRAD WEIGHTS FACET_BASIS FACET_GRAD
//
// Arrays
//   B    [1 + DIM test, 1 + DIM trial] of one component, weighted, in the frame of the reference cell
//   out  [NDOF, stride] element vectors, cell fastest, written

#define BLOCK (1 + DIM)

// Direction k of component c in physical space: its value, or reference gradient k - 1.
static inline void sipg_unit(int c, int k, const Geometry *g, real shift, SideDirection *d)
{
  for (int e = 0; e < NC; ++e) d->u[e] = d->u_t[e] = 0;
  for (int e = 0; e < NC * DIM; ++e) d->u_x[e] = 0;
  if (k == 0) {
    d->u[c] = 1;
    d->u_t[c] = shift;
  } else {
    for (int e = 0; e < DIM; ++e) d->u_x[c * DIM + e] = g->inverse[(k - 1) * DIM + e];
  }
}

// Column k of B, from fluxes that point_pull_back has treated.
static inline void sipg_column(int c, int k, const real *f0, const real *f1, real *B)
{
  B[k] = f0[c];
  for (int r = 0; r < DIM; ++r) B[(1 + r) * BLOCK + k] = f1[c * DIM + r];
}

// sum += vᵀ B v of each basis function of component c.
static inline void sipg_quadratic(int c, const real *B, TABLE const real *basis, TABLE const real *grad, real *sum)
{
  for (int i = 0; i < NDOF; ++i) {
    if (DOF_COMP[i] != c) continue;
    const int b = DOF_BASIS[i];
    real v[BLOCK], some = fabs(basis[b]), product = 0;
    v[0] = basis[b];
    for (int r = 0; r < DIM; ++r) {
      v[1 + r] = grad[b * DIM + r];
      some += fabs(v[1 + r]);
    }
    if (some == 0) continue;   // most basis functions, where the points are nodes
    for (int k = 0; k < BLOCK; ++k)
      for (int l = 0; l < BLOCK; ++l) product += v[k] * B[k * BLOCK + l] * v[l];
    sum[i] += product;
  }
}

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
    for (int c = 0; c < NC; ++c) {
      real B[BLOCK * BLOCK];
      for (int k = 0; k < BLOCK; ++k) {
        SideDirection d;
        real f0[NC], f1[NC * DIM];
        sipg_unit(c, k, &g, shift, &d);
        pw_jacobian(u, u_t, u_x, d.u, d.u_t, d.u_x, a, a_x, t, shift, x, constants, f0, f1);
        point_pull_back(&g, WEIGHTS[q] * g.measure, f0, f1);
        sipg_column(c, k, f0, f1, B);
      }
      sipg_quadratic(c, B, basis, grad, sum);
    }
  }
  for (int f = 0; f < NFACETS; ++f) {
    SIPG_BEHIND
    if (behind == -1) continue;
    for (int q = 0; q < NQF; ++q) {
      SIPG_POINT
      SideDirection d_other;
      for (int e = 0; e < NC; ++e) d_other.u[e] = d_other.u_t[e] = 0;
      for (int e = 0; e < NC * DIM; ++e) d_other.u_x[e] = 0;
      for (int c = 0; c < NC; ++c) {
        real B[BLOCK * BLOCK];
        for (int k = 0; k < BLOCK; ++k) {
          SideDirection d_own;
          real f0[NC], f1[NC * DIM];
          sipg_unit(c, k, &g, shift, &d_own);
          if (behind >= 0)
            sipg_flux_jacobian(&a_side, &b_side, &d_own, &d_other, wall, sigma, n, t, shift, x, constants, f0, f1);
          else
            sipg_boundary_jacobian(kind, &a_side, &d_own, sigma, n, t, shift, x, constants, f0, f1);
          point_pull_back(&g, weight, f0, f1);
          sipg_column(c, k, f0, f1, B);
        }
        sipg_quadratic(c, B, FACET_BASIS + row * NBASIS, FACET_GRAD + row * NBASIS * DIM, sum);
      }
    }
  }
  for (int i = 0; i < NDOF; ++i) out[i * stride + cell] = sum[i];
}
