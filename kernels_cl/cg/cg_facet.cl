// Boundary integrals of continuous Galerkin: natural (Neumann, Robin) conditions, one thread a facet, or a facet's column.
//
// needs: NDOF NBASIS NC NA NAUX NQF DIM NNODES TIME FACET_BASIS FACET_GRAD FACET_GEO FACET_GEO_GRAD FACET_WEIGHTS FACET_NORMALS
//
// Arrays
//   facets [3, facet_stride]  cell, facet of the reference cell, index of the condition
//   out    from `first` on: [NDOF, facet_stride] vectors and diagonals, [NDOF, NDOF, facet_stride] matrices; facet fastest
// The others as in cg_point.clh and geometry.clh; num_cells there is the number of facets here.
// Tables, with F facets of the reference cell
//   FACET_BASIS [F, NQF, NBASIS], FACET_GRAD [F, NQF, NBASIS, DIM], FACET_GEO [F, NQF, NNODES],
//   FACET_GEO_GRAD [F, NQF, NNODES, DIM], FACET_WEIGHTS [F, NQF] measured on the reference cell, FACET_NORMALS [F, DIM]

#define U_E(i) CG_U(cell, i)
#define UT_E(i) CG_UT(cell, i)
#define DU_E(i) CG_DU(cell, i)

#define FACET_ARGUMENTS CG_ARGUMENTS, int facet_stride, int first, __global const int *facets, __global real *out

// Declares and loads a facet: cell, local (its number in the cell), condition, constants, aux_e, g.
#define FACET_LOAD(facet)                                                                                         \
  const int cell = facets[facet], local_facet = facets[facet_stride + (facet)],                                   \
            condition = facets[2 * facet_stride + (facet)];                                                       \
  POINT_LOAD_CONSTANTS                                                                                               \
  POINT_LOAD_AUX(cell)                                                                                               \
  Geometry g;                                                                                                     \
  geometry_load(&g, nodes, cell_nodes, stored_geometry, stride, cell);

// Declares the tables and the state at point q of the facet, the outward normal n [DIM] and the weight.
// Nanson's formula: the surface element is |det J| |J^-T N| times the one on the reference cell.
#define FACET_POINT                                                                                               \
  const int row = local_facet * NQF + q;                                                                          \
  TABLE const real *basis = FACET_BASIS + row * NBASIS, *grad = FACET_GRAD + row * NBASIS * DIM,             \
                        *geo = FACET_GEO + row * NNODES;                                                          \
  geometry_point(&g, FACET_GEO_GRAD + row * NNODES * DIM);                                                        \
  real n[DIM], f0[NC], length = 0;                                                                                \
  point_gradient(FACET_NORMALS + local_facet * DIM, &g, n);                                                          \
  for (int d = 0; d < DIM; ++d) length += n[d] * n[d];                                                            \
  length = sqrt(length);                                                                                          \
  for (int d = 0; d < DIM; ++d) n[d] /= length;                                                                   \
  const real weight = FACET_WEIGHTS[row] * g.measure * length;                                                    \
  CG_STATE(U_E, UT_E)

// Contribution of a point to coefficient i.
inline real facet_test(int i, TABLE const real *basis, const real *f0)
{
  return f0[DOF_COMP[i]] * basis[DOF_BASIS[i]];
}

__kernel void cg_facet_residual(FACET_ARGUMENTS)
{
  const int facet = get_global_id(0);
  if (facet >= num_cells) return;
  FACET_LOAD(facet)
  real r_e[NDOF];
  for (int i = 0; i < NDOF; ++i) r_e[i] = 0;
  for (int q = 0; q < NQF; ++q) {
    FACET_POINT
    pw_boundary(condition, u, u_t, u_x, a, a_x, t, x, n, constants, f0);
    for (int i = 0; i < NDOF; ++i) r_e[i] += weight * facet_test(i, basis, f0);
  }
  for (int i = 0; i < NDOF; ++i) out[first + i * facet_stride + facet] = r_e[i];
}

__kernel void cg_facet_action(FACET_ARGUMENTS)
{
  const int facet = get_global_id(0);
  if (facet >= num_cells) return;
  FACET_LOAD(facet)
  real r_e[NDOF];
  for (int i = 0; i < NDOF; ++i) r_e[i] = 0;
  for (int q = 0; q < NQF; ++q) {
    FACET_POINT
    CG_DIRECTION(DU_E)
    pw_boundary_jacobian(condition, u, u_t, u_x, du, du_t, du_x, a, a_x, t, shift, x, n, constants, f0);
    for (int i = 0; i < NDOF; ++i) r_e[i] += weight * facet_test(i, basis, f0);
  }
  for (int i = 0; i < NDOF; ++i) out[first + i * facet_stride + facet] = r_e[i];
}

__kernel void cg_facet_matrix(FACET_ARGUMENTS)
{
  const int facet = get_global_id(0) % facet_stride, j = get_global_id(0) / facet_stride;
  if (facet >= num_cells || j >= NDOF) return;
  FACET_LOAD(facet)
  real column[NDOF];
  for (int i = 0; i < NDOF; ++i) column[i] = 0;
  for (int q = 0; q < NQF; ++q) {
    FACET_POINT
    CG_TRIAL(j)
    pw_boundary_jacobian(condition, u, u_t, u_x, du, du_t, du_x, a, a_x, t, shift, x, n, constants, f0);
    for (int i = 0; i < NDOF; ++i) column[i] += weight * facet_test(i, basis, f0);
  }
  for (int i = 0; i < NDOF; ++i) out[first + ((size_t)i * NDOF + j) * facet_stride + facet] = column[i];
}

__kernel void cg_facet_diagonal(FACET_ARGUMENTS)
{
  const int facet = get_global_id(0) % facet_stride, j = get_global_id(0) / facet_stride;
  if (facet >= num_cells || j >= NDOF) return;
  FACET_LOAD(facet)
  real sum = 0;
  for (int q = 0; q < NQF; ++q) {
    FACET_POINT
    CG_TRIAL(j)
    pw_boundary_jacobian(condition, u, u_t, u_x, du, du_t, du_x, a, a_x, t, shift, x, n, constants, f0);
    sum += weight * facet_test(j, basis, f0);
  }
  out[first + j * facet_stride + facet] = sum;
}
