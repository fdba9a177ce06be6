// The trace matrix in dense block format: assembly facet by facet, products, diagonals. One thread a row, no atomics.
// Roca, Nguyen and Peraire 2011, sections III and IV; the vector is gathered inside the product, not inflated before.
// needs: M BLOCKED NC NP F NA MC
//
// M = NP NC     unknowns of a facet: nodes, then components        F   facets of a cell
// NA = 2 F - 1  slots of a facet: itself, others of its first cell, others of its second one
// MC = F M      unknowns of a cell
//
// Arrays
//   A           [NA, M, row_stride]  entry (row i of facet f, unknown k in slot a) at (a M + k) row_stride + f M + i
//   adjacent    [NA, facet_stride]   facet in each slot; the facet itself where there is none (its block is zero)
//   reverse     [NA, facet_stride]   slot in which that facet has this one, -1 where there is none
//   K           [MC, tile_stride, MC] matrices of the cells first … first + count - 1, rows fastest
//   list        [num_listed]         facets that have one of these cells
//   cells, place [2, facet_stride]   cells of a facet by ascending number (-1: none), its place in them
//   orientation [cell, F]            row of permutations;  permutations [orientation, NP] node of the cell's facet

// Where unknown i of a facet stands on a cell's facet.
static inline int oriented(__global const int *permutations, int orientation, int i)
{
  return permutations[orientation * NP + i / NC] * NC + i % NC;
}

// Blocks of one tile. Tiles come in ascending order: the first cell of a facet sets its own block, the second adds.
__kernel void trace_dbf_assemble(int num_listed, int first, int count, int tile_stride, int facet_stride,
                                 int row_stride, __global const int *list, __global const int *cells,
                                 __global const int *place, __global const int *orientation,
                                 __global const int *permutations, __global const int *adjacent,
                                 __global const real *K, __global stored *A)
{
  const int t = get_global_id(0);
  if (t >= num_listed * M) return;
  const int f = list[t / M], i = t % M;
  for (int side = 0; side < 2; ++side) {
    const int cell = cells[side * facet_stride + f];
    if (cell < first || cell >= first + count) continue;
    const int here = place[side * facet_stride + f];
    __global const int *turned = orientation + (size_t)cell * F;
    const size_t row = (size_t)(cell - first) * MC + here * M + oriented(permutations, turned[here], i);
    for (int other = 0; other < F; ++other) {
      const int slot = other == here ? 0 : 1 + side * (F - 1) + other - (other > here);
      if (slot && adjacent[slot * facet_stride + f] == f) continue;
      for (int k = 0; k < M; ++k) {
        const int column = other * M + oriented(permutations, turned[other], k);
        const real value = K[(size_t)column * tile_stride * MC + row];
        __global stored *entry = A + (size_t)(slot * M + k) * row_stride + f * M + i;
        *entry = slot == 0 && side == 1 ? *entry + value : value;
      }
    }
  }
}

// y = A x on this rank's facets, ghosts included.
__kernel void trace_dbf_product(int num_rows, int n_owned, int n_free, int facet_stride, int row_stride,
                                __global const stored *restrict A, __global const int *restrict adjacent,
                                __global const int *restrict numbers, __global const real *restrict owned,
                                __global const real *restrict tail, __global real *restrict y_owned,
                                __global real *restrict y_ghost)
{
  const int t = get_global_id(0);
  if (t >= num_rows) return;
  const int f = t / M;
  __global const stored *entry = A + t;
  real sum = 0;
#if M <= 8
#pragma unroll
#endif
  for (int a = 0; a < NA; ++a) {
    const int g = adjacent[a * facet_stride + f];
#if M <= 32
#pragma unroll
#endif
    for (int k = 0; k < M; ++k)
      sum += entry[(size_t)(a * M + k) * row_stride] *
             trace_value(owned, tail, n_owned, numbers, facet_stride, g, k);
  }
  trace_set(y_owned, y_ghost, n_owned, n_free, numbers, facet_stride, f, t % M, sum);
}

// The same, one work-item a facet: the vector of its rows is what a CPU multiplies at once.
__kernel void trace_dbf_product_facet(int num_rows, int n_owned, int n_free, int facet_stride, int row_stride,
                                      __global const stored *restrict A, __global const int *restrict adjacent,
                                      __global const int *restrict numbers, __global const real *restrict owned,
                                      __global const real *restrict tail, __global real *restrict y_owned,
                                      __global real *restrict y_ghost)
{
  const int f = get_global_id(0);
  if (f * M >= num_rows) return;
  real sum[M];
  for (int i = 0; i < M; ++i) sum[i] = 0;
  for (int a = 0; a < NA; ++a) {
    const int g = adjacent[a * facet_stride + f];
    for (int k = 0; k < M; ++k) {
      const real value = trace_value(owned, tail, n_owned, numbers, facet_stride, g, k);
      __global const stored *entry = A + (size_t)(a * M + k) * row_stride + f * M;
#if M <= 32
#pragma unroll
#endif
      for (int i = 0; i < M; ++i) sum[i] += entry[i] * value;
    }
  }
  for (int i = 0; i < M; ++i)
    trace_set(y_owned, y_ghost, n_owned, n_free, numbers, facet_stride, f, i, sum[i]);
}

// y = Aᵀ x on this rank's facets, ghosts included.
__kernel void trace_dbf_transposed(int num_rows, int n_owned, int n_free, int facet_stride, int row_stride,
                                   __global const stored *restrict A, __global const int *restrict adjacent,
                                   __global const int *restrict reverse, __global const int *restrict numbers,
                                   __global const real *restrict owned, __global const real *restrict tail,
                                   __global real *restrict y_owned, __global real *restrict y_ghost)
{
  const int t = get_global_id(0);
  if (t >= num_rows) return;
  const int f = t / M, k = t % M;
  real sum = 0;
  for (int a = 0; a < NA; ++a) {
    const int slot = reverse[a * facet_stride + f];
    if (slot < 0) continue;
    const int g = adjacent[a * facet_stride + f];
    __global const stored *column = A + (size_t)(slot * M + k) * row_stride + g * M;
    for (int i = 0; i < M; ++i) sum += column[i] * trace_value(owned, tail, n_owned, numbers, facet_stride, g, i);
  }
  trace_set(y_owned, y_ghost, n_owned, n_free, numbers, facet_stride, f, k, sum);
}

// Entry (i, column) of each facet's own block; the diagonal if column < 0.
__kernel void trace_dbf_column(int num_rows, int n_owned, int n_free, int facet_stride, int row_stride, int column,
                               __global const stored *A, __global const int *numbers, __global real *y_owned,
                               __global real *y_ghost)
{
  const int t = get_global_id(0);
  if (t >= num_rows) return;
  const int i = t % M;
  const real value = A[(size_t)(column < 0 ? i : column) * row_stride + t];
  trace_set(y_owned, y_ghost, n_owned, n_free, numbers, facet_stride, t / M, i, value);
}
