// The transposed Jacobian of fluxes: one thread a cell goes around its facets and adds to what the volume kernel wrote. What
// the trial functions of the cell do in the fluxes of both sides, along the vector there. After sipg_facet.clh.
// needs: NDOF NFACETS NQF NC DIM
//
// Arrays
//   out       [NDOF, stride] vectors, which are added to. Cell fastest.

// w . f0 + w_x : f1.
static inline real sipg_along(const SideDirection *w, const real *f0, const real *f1)
{
  real sum = 0;
  for (int c = 0; c < NC; ++c) sum += w->u[c] * f0[c];
  for (int c = 0; c < NC * DIM; ++c) sum += w->u_x[c] * f1[c];
  return sum;
}

__kernel void sipg_facet_transposed(SIPG_FACET_ARGUMENTS)
{
  const int cell = get_global_id(0);
  if (cell >= num_cells) return;
  SIPG_CELL
  real r_e[NDOF];
  for (int i = 0; i < NDOF; ++i) r_e[i] = 0;
  for (int f = 0; f < NFACETS; ++f) {
    SIPG_BEHIND
    if (behind == -1) continue;
    for (int q = 0; q < NQF; ++q) {
      SIPG_POINT
      SideDirection w_own, w_other, none;
      real f0[NC], f1[NC * DIM], f0_e[NC], f1_e[NC * DIM], back[DIM], x_other[DIM];
      SIPG_DIRECTION(w_own, &g, row, DU_OWN);
      if (behind >= 0) SIPG_DIRECTION(w_other, &h, row_other, DU_OTHER);
      for (int c = 0; c < NC; ++c) none.u[c] = none.u_t[c] = 0;
      for (int c = 0; c < NC * DIM; ++c) none.u_x[c] = 0;
      for (int d = 0; d < DIM; ++d) back[d] = -n[d];
      geometry_x(&h, FACET_GEO + row_other * NNODES, x_other);
      for (int j = 0; j < NC * (1 + DIM); ++j) {
        SideDirection e;
        for (int c = 0; c < NC; ++c) e.u[c] = j == c;
        for (int c = 0; c < NC; ++c) e.u_t[c] = shift * e.u[c];
        for (int c = 0; c < NC * DIM; ++c) e.u_x[c] = j == NC + c;
        real sum;
        if (behind >= 0) {
          sipg_flux_jacobian(&a_side, &b_side, &e, &none, wall, sigma, n, t, shift, x, constants, f0_e, f1_e);
          sum = sipg_along(&w_own, f0_e, f1_e);
          sipg_flux_jacobian(&b_side, &a_side, &none, &e, wall ? wall + NC + 1 : wall, sigma, back, t, shift, x_other,
                             constants, f0_e, f1_e);
          sum += sipg_along(&w_other, f0_e, f1_e);
        } else {
          sipg_boundary_jacobian(kind, &a_side, &e, sigma, n, t, shift, x, constants, f0_e, f1_e);
          sum = sipg_along(&w_own, f0_e, f1_e);
        }
        if (j < NC) f0[j] = sum;
        else f1[j - NC] = sum;
      }
      point_pull_back(&g, weight, f0, f1);
      for (int i = 0; i < NDOF; ++i) r_e[i] += SIPG_TEST(i);
    }
  }
  for (int i = 0; i < NDOF; ++i) out[i * stride + cell] += r_e[i];
}
