// Whole residual of first-order elements without atomics: a work-group sums a patch of cells in local memory.
//
// Neighbouring cells share vertices, so a patch reads each vertex once (then from the cache) and writes each interior
// sum once; sums of vertices on the border of a patch go to a short list that `assemble_rows` adds up. Phases:
//   cells     thread = cell: element vector into slots of local memory
//   vertices  thread = vertex: its slots summed in a fixed order, written
// Only the slots are in local memory: it bounds how many groups a device holds at once, and the caches serve the rest.
// needs: NDOF NBASIS NC NA NAUX NQ DIM NNODES TIME THREADS CELLS BASIS GRAD GEO GEO_GRAD WEIGHTS
//
// Arrays, with patches of CELLS cells in order, `place` counting the vertices of all patches in turn
//   place_start [patch + 1]; interior [patch] number of vertices whose sum is complete in the patch: they come first
//   border_start [patch]     where the patch's border sums begin in `border`
//   place_dofs [NC, places]  compact numbers of the vertex' degrees of freedom;  place_x [DIM, places] coordinates
//   corner [NNODES, stride]  place of each corner within the patch, cell fastest
//   list_start [places + 1 a patch], list [patch, NNODES CELLS]  slots (corner * CELLS + cell) that add to a vertex
//   owned [n_owned]          complete sums;  border  sums to be finished
// Local memory
//   slots_l [NDOF, CELLS]    element vectors of the patch

#define U_E(i) u_e[i]
#define UT_E(i) ut_e[i]
#define DU_E(i) du_e[i]

#define PATCH_ARGUMENTS                                                                                              \
  CG_ARGUMENTS, int places, __global const int *place_start, __global const int *interior,                           \
  __global const int *border_start, __global const int *place_dofs, __global const real *place_x,                    \
  __global const ushort *corner, __global const ushort *list_start, __global const ushort *list,                     \
  __global real *owned, __global real *border

// Coefficient i of the cell whose corners stand at the places at [NNODES], from a vector of owned values and tail.
#define PATCH_VALUE(owned_, tail_, i)                                                                                \
  patch_value(owned_, tail_, n_owned, place_dofs[DOF_COMP[i] * places + at[DOF_BASIS[i]]])

inline real patch_value(__global const real *owned_, __global const real *tail_, int n_owned, int index)
{
  return index < n_owned ? owned_[index] : tail_[index - n_owned];
}

// Geometry of a cell from the coordinates of its corners.
inline void patch_geometry(Geometry *g, __global const real *place_x, int places, const int *at)
{
  for (int n = 0; n < NNODES; ++n)
    for (int d = 0; d < DIM; ++d) g->node[n * DIM + d] = place_x[d * places + at[n]];
#if AFFINE
  real jacobian[DIM * DIM];
  for (int d = 0; d < DIM; ++d)
    for (int r = 0; r < DIM; ++r) jacobian[d * DIM + r] = g->node[(r + 1) * DIM + d] - g->node[d];
  geometry_invert(jacobian, g);
#endif
}

// Begins a patch: its numbers.
#define PATCH_BEGIN                                                                                                  \
  __local real slots_l[NDOF * CELLS];                                                                                \
  const int patch = get_group_id(0), first = place_start[patch], count = place_start[patch + 1] - first,             \
            inside = interior[patch];                                                                                \
  POINT_LOAD_CONSTANTS

// Declares a cell of the patch: its places at [NNODES], geometry g, coefficients, and result r_e [NDOF].
#define PATCH_CELL                                                                                                   \
  int at[NNODES];                                                                                                    \
  for (int n = 0; n < NNODES; ++n) at[n] = first + corner[n * stride + cell];                                        \
  POINT_LOAD_AUX(cell)                                                                                                  \
  Geometry g;                                                                                                        \
  patch_geometry(&g, place_x, places, at);                                                                           \
  real u_e[NDOF], r_e[NDOF];                                                                                         \
  for (int i = 0; i < NDOF; ++i) u_e[i] = PATCH_VALUE(u_owned, u_tail, i);                                           \
  for (int i = 0; i < NDOF; ++i) r_e[i] = 0;                                                                         \
  PATCH_RATE

#if TIME
#define PATCH_RATE  \
  real ut_e[NDOF];  \
  for (int i = 0; i < NDOF; ++i) ut_e[i] = PATCH_VALUE(ut_owned, ut_tail, i);
#else
#define PATCH_RATE
#endif

#define PATCH_STORE                                                                                                  \
  for (int i = 0; i < NDOF; ++i) slots_l[(DOF_COMP[i] * NNODES + DOF_BASIS[i]) * CELLS + c0] = r_e[i];

// Vertex phase: sums in the order of the list.
#define PATCH_SUM                                                                                                    \
  BARRIER_LOCAL();                                                                                                   \
  __global const ushort *entry = list + (size_t)patch * (NNODES * CELLS);                                            \
  FOR_ITEMS(k, count) {                                                                                              \
    const int begin = list_start[first + patch + k], end = list_start[first + patch + k + 1];                        \
    real sum[NC];                                                                                                    \
    for (int c = 0; c < NC; ++c) sum[c] = 0;                                                                         \
    for (int e = begin; e < end; ++e) {                                                                              \
      const int slot = entry[e];                                                                                     \
      for (int c = 0; c < NC; ++c) sum[c] += slots_l[c * NNODES * CELLS + slot];                                     \
    }                                                                                                                \
    for (int c = 0; c < NC; ++c) {                                                                                   \
      if (k < inside) owned[place_dofs[c * places + first + k]] = sum[c];                                            \
      else border[(border_start[patch] + k - inside) * NC + c] = sum[c];                                             \
    }                                                                                                                \
  }

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1)))
void cg_patch_residual(PATCH_ARGUMENTS)
{
  PATCH_BEGIN
  FOR_ITEMS(c0, CELLS) {
    const int cell = patch * CELLS + c0;
    if (cell < num_cells) {
      PATCH_CELL
      for (int q = 0; q < NQ; ++q) {
        TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;
        real f0[NC], f1[NC * DIM];
        geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
        CG_STATE(U_E, UT_E)
        pw_residual(u, u_t, u_x, a, a_x, t, x, constants, f0, f1);
        point_pull_back(&g, WEIGHTS[q] * g.measure, f0, f1);
        for (int i = 0; i < NDOF; ++i) r_e[i] += cg_test(i, basis, grad, f0, f1);
      }
      PATCH_STORE
    }
  }
  PATCH_SUM
}

// Action of the Jacobian at u on du.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1)))
void cg_patch_action(PATCH_ARGUMENTS)
{
  PATCH_BEGIN
  FOR_ITEMS(c0, CELLS) {
    const int cell = patch * CELLS + c0;
    if (cell < num_cells) {
      PATCH_CELL
      real du_e[NDOF];
      for (int i = 0; i < NDOF; ++i) du_e[i] = PATCH_VALUE(du_owned, du_tail, i);
      for (int q = 0; q < NQ; ++q) {
        TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;
        real f0[NC], f1[NC * DIM];
        geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
        CG_STATE(U_E, UT_E)
        CG_DIRECTION(DU_E)
        pw_jacobian(u, u_t, u_x, du, du_t, du_x, a, a_x, t, shift, x, constants, f0, f1);
        point_pull_back(&g, WEIGHTS[q] * g.measure, f0, f1);
        for (int i = 0; i < NDOF; ++i) r_e[i] += cg_test(i, basis, grad, f0, f1);
      }
      PATCH_STORE
    }
  }
  PATCH_SUM
}
