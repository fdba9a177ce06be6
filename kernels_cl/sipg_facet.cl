// Fluxes of interior penalty, the plain version: one thread a cell, or a column of one, goes around the cell's facets and
// adds to what the volume kernels wrote. An interior facet is done from both sides, so no sums cross threads.
// After cg_point.clh and sipg_flux.clh.
// needs: NDOF NBASIS NC NA NAUX NQF DIM NNODES TIME NFACETS NORIENT TABLE FACET_BASIS FACET_GRAD FACET_GEO FACET_GEO_GRAD FACET_WEIGHTS FACET_NORMALS PERM
//
// Arrays
//   neighbour [NFACETS, stride]  cell behind each facet, -1: no term, -2 - k: boundary kind k
//   code      [NFACETS, stride]  facet of the neighbour * NORIENT + orientation
//   sigma     [NC, NFACETS, stride] penalties;  kinds [kind, NC + 1]
//   out       [NDOF, stride] vectors and diagonals; [NDOF test, NDOF trial, stride] blocks; both are added to;
//             [NFACETS, NDOF test, NDOF trial of the neighbour, stride] couplings, which are written. Cell fastest.
// Tables: as in cg_facet.cl; PERM [NORIENT, NQF] point of the neighbour's facet at each point of the own one

#define SIPG_FACET_ARGUMENTS                                                                                      \
  CG_ARGUMENTS, __global const int *neighbour, __global const int *code, __global const real *sigma_,             \
  __global const int *kinds, __global real *out

#define U_OWN(i) CG_U(cell, i)
#define UT_OWN(i) CG_UT(cell, i)
#define DU_OWN(i) CG_DU(cell, i)
#define U_OTHER(i) CG_U(other, i)
#define UT_OTHER(i) CG_UT(other, i)
#define DU_OTHER(i) CG_DU(other, i)
#define TRIAL(i) ((i) == trial ? 1 : 0)
#define NONE(i) 0

// Evaluate one side at the facet point `row` of its tables.
#define SIPG_SIDE(side, g, row, aux_rows, U, UT)                                                                  \
  do {                                                                                                            \
    TABLE const real *basis = FACET_BASIS + (row) * NBASIS, *grad = FACET_GRAD + (row) * NBASIS * DIM;            \
    CG_EVALUATE(U, basis, grad, g, side.u, side.u_x);                                                             \
    SIPG_SIDE_TIME(side, g, UT)                                                                                   \
    point_auxiliary(aux_rows, basis, grad, g, side.a, side.a_x);                                                  \
  } while (0)
#if TIME
#define SIPG_SIDE_TIME(side, g, UT)  \
  real unused_[NC * DIM];            \
  CG_EVALUATE(UT, basis, grad, g, side.u_t, unused_);
#else
#define SIPG_SIDE_TIME(side, g, UT) for (int c_ = 0; c_ < NC; ++c_) side.u_t[c_] = 0;
#endif
#define SIPG_DIRECTION(direction, g, row, DU)                                                                     \
  do {                                                                                                            \
    TABLE const real *basis = FACET_BASIS + (row) * NBASIS, *grad = FACET_GRAD + (row) * NBASIS * DIM;            \
    CG_EVALUATE(DU, basis, grad, g, direction.u, direction.u_x);                                                  \
    for (int c_ = 0; c_ < NC; ++c_) direction.u_t[c_] = shift * direction.u[c_];                                  \
  } while (0)

// Declares own cell: constants, aux_e, g.
#define SIPG_CELL                                                                                                 \
  POINT_LOAD_CONSTANTS                                                                                            \
  POINT_LOAD_AUX(cell)                                                                                            \
  Geometry g;                                                                                                     \
  geometry_load(&g, nodes, cell_nodes, stored_geometry, stride, cell);

// Declares the cell behind facet f: behind, other (itself on the boundary), place, turn, aux_o, h, kind, sigma.
#define SIPG_BEHIND                                                                                               \
  const int behind = neighbour[f * stride + cell], other = behind < 0 ? cell : behind;                            \
  const int place = code[f * stride + cell] / NORIENT, turn = code[f * stride + cell] % NORIENT;                  \
  __global const int *kind = kinds + (behind < -1 ? -2 - behind : 0) * (NC + 1);                                  \
  real aux_o[NAUX > 0 ? NAUX : 1], sigma[NC];                                                                     \
  for (int k = 0; k < NAUX; ++k) aux_o[k] = aux[k * stride + other];                                              \
  for (int c = 0; c < NC; ++c) sigma[c] = sigma_[(c * NFACETS + f) * stride + cell];                              \
  Geometry h;                                                                                                     \
  geometry_load(&h, nodes, cell_nodes, stored_geometry, stride, other);

// Declares point q: row, row_other, n, length, weight, x. Nanson's formula as in cg_facet.cl.
#define SIPG_POINT                                                                                                \
  const int row = f * NQF + q, row_other = behind < 0 ? row : place * NQF + PERM[turn * NQF + q];                 \
  geometry_point(&g, FACET_GEO_GRAD + row * NNODES * DIM);                                                        \
  geometry_point(&h, FACET_GEO_GRAD + row_other * NNODES * DIM);                                                  \
  real n[DIM], x[DIM], length = 0;                                                                                \
  point_gradient(FACET_NORMALS + f * DIM, &g, n);                                                                 \
  for (int d = 0; d < DIM; ++d) length += n[d] * n[d];                                                            \
  length = sqrt(length);                                                                                          \
  for (int d = 0; d < DIM; ++d) n[d] /= length;                                                                   \
  const real weight = FACET_WEIGHTS[row] * g.measure * length;                                                    \
  geometry_x(&g, FACET_GEO + row * NNODES, x);                                                                    \
  Side a_side, b_side;                                                                                            \
  SIPG_SIDE(a_side, &g, row, aux_e, U_OWN, UT_OWN);                                                               \
  if (behind >= 0) SIPG_SIDE(b_side, &h, row_other, aux_o, U_OTHER, UT_OTHER);

// Weighted fluxes f0, f1 of the residual at the point, in the reference frame.
#define SIPG_FLUXES                                                                                               \
  real f0[NC], f1[NC * DIM];                                                                                      \
  if (behind >= 0) sipg_flux(&a_side, &b_side, sigma, n, t, x, constants, f0, f1);                                \
  else sipg_boundary(kind, &a_side, sigma, n, t, x, constants, f0, f1);                                           \
  point_pull_back(&g, weight, f0, f1);

// The same of the Jacobian along DU on the own side and DV on the other.
#define SIPG_FLUXES_JACOBIAN(DU, DV)                                                                              \
  real f0[NC], f1[NC * DIM];                                                                                      \
  SideDirection d_own, d_other;                                                                                   \
  SIPG_DIRECTION(d_own, &g, row, DU);                                                                             \
  if (behind >= 0) {                                                                                              \
    SIPG_DIRECTION(d_other, &h, row_other, DV);                                                                   \
    sipg_flux_jacobian(&a_side, &b_side, &d_own, &d_other, sigma, n, t, shift, x, constants, f0, f1);             \
  } else {                                                                                                        \
    sipg_boundary_jacobian(kind, &a_side, &d_own, sigma, n, t, shift, x, constants, f0, f1);                      \
  }                                                                                                               \
  point_pull_back(&g, weight, f0, f1);

// Test function i at the point.
#define SIPG_TEST(i) sipg_test(i, FACET_BASIS + row * NBASIS, FACET_GRAD + row * NBASIS * DIM, f0, f1)
inline real sipg_test(int i, TABLE const real *basis, TABLE const real *grad, const real *f0, const real *f1)
{
  real sum = f0[DOF_COMP[i]] * basis[DOF_BASIS[i]];
  for (int r = 0; r < DIM; ++r) sum += f1[DOF_COMP[i] * DIM + r] * grad[DOF_BASIS[i] * DIM + r];
  return sum;
}

__kernel void sipg_facet_residual(SIPG_FACET_ARGUMENTS)
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
      SIPG_FLUXES
      for (int i = 0; i < NDOF; ++i) r_e[i] += SIPG_TEST(i);
    }
  }
  for (int i = 0; i < NDOF; ++i) out[i * stride + cell] += r_e[i];
}

__kernel void sipg_facet_action(SIPG_FACET_ARGUMENTS)
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
      SIPG_FLUXES_JACOBIAN(DU_OWN, DU_OTHER)
      for (int i = 0; i < NDOF; ++i) r_e[i] += SIPG_TEST(i);
    }
  }
  for (int i = 0; i < NDOF; ++i) out[i * stride + cell] += r_e[i];
}

// Thread (trial function, cell), cell fastest.
__kernel void sipg_facet_block(SIPG_FACET_ARGUMENTS)
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

__kernel void sipg_facet_diagonal(SIPG_FACET_ARGUMENTS)
{
  const int cell = get_global_id(0) % stride, trial = get_global_id(0) / stride;
  if (cell >= num_cells || trial >= NDOF) return;
  SIPG_CELL
  real sum = 0;
  for (int f = 0; f < NFACETS; ++f) {
    SIPG_BEHIND
    if (behind == -1) continue;
    for (int q = 0; q < NQF; ++q) {
      SIPG_POINT
      SIPG_FLUXES_JACOBIAN(TRIAL, NONE)
      sum += SIPG_TEST(trial);
    }
  }
  out[trial * stride + cell] += sum;
}

// Thread (facet of the cell, trial function of the neighbour, cell), cell fastest.
__kernel void sipg_facet_coupling(SIPG_FACET_ARGUMENTS)
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
