// Whole residual of first-order elements without atomics: a work-group sums a patch of cells in local memory.
//
// Neighbouring cells share vertices, so a patch reads each vertex once and writes each interior sum once; sums of
// vertices on the border of a patch go to a short list that `assemble_rows` adds up. Phases:
//   load      coordinates, coefficients and lists of the patch's vertices into local memory, corners into registers
//   cells     thread = cell: element vector into slots of local memory
//   vertices  thread = vertex: its slots summed in a fixed order, written
// needs: NDOF NBASIS NC NA NAUX NQ DIM NNODES TIME THREADS CELLS BASIS GRAD GEO GEO_GRAD WEIGHTS
//
// Arrays, with patches of CELLS cells in order, `place` counting the vertices of all patches in turn
//   place_start [patch + 1]; interior [patch] number of vertices whose sum is complete in the patch: they come first
//   border_start [patch]     where the patch's border sums begin in `border`
//   place_dofs [NC, places]  compact numbers of the vertex' degrees of freedom;  place_x [DIM, places] coordinates
//   corner [NNODES, stride]  place of each corner within the patch, cell fastest
//   list_start [places + 1 a patch], list [patch, NNODES CELLS]  slots (corner * CELLS + cell) that add to a vertex
//   owned [n_owned]          complete sums;  border  sums to be finished
// Local memory, laid end to end in `block` (one argument: drivers differ in how they align several)
//   x_l [DIM, size], u_l [NC, size] (ut_l, du_l alike), slots_l [NDOF, CELLS], list_l [NNODES CELLS], start_l [size + 1];
//   size = places of the largest patch. THREADS divides CELLS; each thread has PER_THREAD cells.

#define U_E(i) u_l[DOF_COMP[i] * size + at[DOF_BASIS[i]]]
#define UT_E(i) ut_l[DOF_COMP[i] * size + at[DOF_BASIS[i]]]
#define DU_E(i) du_l[DOF_COMP[i] * size + at[DOF_BASIS[i]]]

#define PATCH_ARGUMENTS                                                                                              \
  CG_ARGUMENTS, int places, int size, __global const int *place_start, __global const int *interior,                 \
  __global const int *border_start, __global const int *place_dofs, __global const real *place_x,                    \
  __global const ushort *corner, __global const ushort *list_start, __global const ushort *list,                     \
  __global real *owned, __global real *border, __local real *block

// Value of a compact number in a vector of owned values and tail.
inline real patch_value(__global const real *owned_, __global const real *tail, int n_owned, int index)
{
  return index < n_owned ? owned_[index] : tail[index - n_owned];
}

// Geometry of a cell whose corners stand at the places at [NNODES].
inline void patch_geometry(Geometry *g, __local const real *x_l, int size, const int *at)
{
  for (int n = 0; n < NNODES; ++n)
    for (int d = 0; d < DIM; ++d) g->node[n * DIM + d] = x_l[d * size + at[n]];
#if AFFINE
  real jacobian[DIM * DIM];
  for (int d = 0; d < DIM; ++d)
    for (int r = 0; r < DIM; ++r) jacobian[d * DIM + r] = g->node[(r + 1) * DIM + d] - g->node[d];
  geometry_invert(jacobian, g);
#endif
}

// Load phase for one vector.
#define PATCH_LOAD(vector_l, owned_, tail)                                                                           \
  FOR_ITEMS(k, count)                                                                                                \
    for (int c = 0; c < NC; ++c)                                                                                     \
      vector_l[c * size + k] = patch_value(owned_, tail, n_owned, place_dofs[c * places + first + k]);

// Vertex phase: sums in the order of the list.
#define PATCH_SUM                                                                                                    \
  BARRIER_LOCAL();                                                                                                   \
  FOR_ITEMS(k, count) {                                                                                              \
    const int begin = start_l[k], end = start_l[k + 1];                                                              \
    real sum[NC];                                                                                                    \
    for (int c = 0; c < NC; ++c) sum[c] = 0;                                                                         \
    for (int e = begin; e < end; ++e) {                                                                              \
      const int slot = list_l[e];                                                                                    \
      for (int c = 0; c < NC; ++c) sum[c] += slots_l[c * NNODES * CELLS + slot];                                     \
    }                                                                                                                \
    for (int c = 0; c < NC; ++c) {                                                                                   \
      if (k < inside) owned[place_dofs[c * places + first + k]] = sum[c];                                            \
      else border[(border_start[patch] + k - inside) * NC + c] = sum[c];                                             \
    }                                                                                                                \
  }

#define PER_THREAD (CELLS / THREADS)

// Begins a patch (ACTION: 1 with a direction, else 0): declares its numbers, divides local memory, loads corners [PER_THREAD, NNODES], coordinates and lists.
#define PATCH_BEGIN(ACTION)                                                                                                  \
  const int patch = get_group_id(0), first = place_start[patch], count = place_start[patch + 1] - first,             \
            inside = interior[patch];                                                                                \
  __local real *x_l = block, *slots_l = x_l + DIM * size, *u_l = slots_l + NDOF * CELLS,                              \
               *du_l = u_l + NC * size, *ut_l = du_l + NC * size * ACTION;                                           \
  __local ushort *list_l = (__local ushort *)(ut_l + NC * size * TIME), *start_l = list_l + NNODES * CELLS;          \
  CG_LOAD_CONSTANTS                                                                                                  \
  ushort corners[PER_THREAD * NNODES];                                                                               \
  for (int m = 0; m < PER_THREAD; ++m)                                                                               \
    for (int n = 0; n < NNODES; ++n) {                                                                               \
      const int cell = patch * CELLS + m * THREADS + (int)get_local_id(0);                                           \
      corners[m * NNODES + n] = cell < num_cells ? corner[n * stride + cell] : 0;                                    \
    }                                                                                                                \
  FOR_ITEMS(k, count)                                                                                                \
    for (int d = 0; d < DIM; ++d) x_l[d * size + k] = place_x[d * places + first + k];                               \
  FOR_ITEMS(k, count + 1) start_l[k] = list_start[first + patch + k];                                                \
  {                                                                                                                  \
    __global const uint *pairs = (__global const uint *)(list + (size_t)patch * (NNODES * CELLS));                   \
    FOR_ITEMS(k, NNODES * CELLS / 2)((__local uint *)list_l)[k] = pairs[k];                                          \
  }

// The loop over this thread's cells: declares cell, c0 (its place in the patch), corners, geometry, result.
#define PATCH_CELL                                                                                                   \
  const int c0 = m * THREADS + (int)get_local_id(0), cell = patch * CELLS + c0;                                      \
  if (cell >= num_cells) break;                                                                                      \
  int at[NNODES];                                                                                                    \
  for (int n = 0; n < NNODES; ++n) at[n] = corners[m * NNODES + n];                                                  \
  CG_LOAD_AUX(cell)                                                                                                  \
  Geometry g;                                                                                                        \
  patch_geometry(&g, x_l, size, at);                                                                                 \
  real r_e[NDOF];                                                                                                    \
  for (int i = 0; i < NDOF; ++i) r_e[i] = 0;

#define PATCH_STORE                                                                                                  \
  for (int i = 0; i < NDOF; ++i) slots_l[(DOF_COMP[i] * NNODES + DOF_BASIS[i]) * CELLS + c0] = r_e[i];

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1)))
void cg_patch_residual(PATCH_ARGUMENTS)
{
  PATCH_BEGIN(0)
  PATCH_LOAD(u_l, u_owned, u_tail)
#if TIME
  PATCH_LOAD(ut_l, ut_owned, ut_tail)
#endif
  BARRIER_LOCAL();
  for (int m = 0; m < PER_THREAD; ++m) {
    PATCH_CELL
    for (int q = 0; q < NQ; ++q) {
      TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;
      real f0[NC], f1[NC * DIM];
      geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
      CG_STATE(U_E, UT_E)
      pw_residual(u, u_t, u_x, a, a_x, t, x, constants, f0, f1);
      cg_pull_back(&g, WEIGHTS[q] * g.measure, f0, f1);
      for (int i = 0; i < NDOF; ++i) r_e[i] += cg_test(i, basis, grad, f0, f1);
    }
    PATCH_STORE
  }
  PATCH_SUM
}

// Action of the Jacobian at u on du.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1)))
void cg_patch_action(PATCH_ARGUMENTS)
{
  PATCH_BEGIN(1)
  PATCH_LOAD(u_l, u_owned, u_tail)
  PATCH_LOAD(du_l, du_owned, du_tail)
#if TIME
  PATCH_LOAD(ut_l, ut_owned, ut_tail)
#endif
  BARRIER_LOCAL();
  for (int m = 0; m < PER_THREAD; ++m) {
    PATCH_CELL
    for (int q = 0; q < NQ; ++q) {
      TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;
      real f0[NC], f1[NC * DIM];
      geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
      CG_STATE(U_E, UT_E)
      CG_DIRECTION(DU_E)
      pw_jacobian(u, u_t, u_x, du, du_t, du_x, a, a_x, t, shift, x, constants, f0, f1);
      cg_pull_back(&g, WEIGHTS[q] * g.measure, f0, f1);
      for (int i = 0; i < NDOF; ++i) r_e[i] += cg_test(i, basis, grad, f0, f1);
    }
    PATCH_STORE
  }
  PATCH_SUM
}
