// The trace matrix in dense block format: products, diagonals. No atomics.
// Roca, Nguyen and Peraire 2011, sections III and IV; the vector is gathered inside the product, not inflated before.
// needs: M BLOCKED NA ROWS
//
// M             unknowns of a facet
// NA            slots of a facet: itself, others of its first cell, others of its second one
// ROWS          rows of a work-item of a product: 1, or M, the vector that a CPU multiplies at once
//
// Arrays
//   A           [NA, M, row_stride]  entry (row i of facet f, unknown k in slot a) at (a M + k) row_stride + f M + i
//   adjacent    [NA, facet_stride]   facet in each slot; the facet itself where there is none (its block is zero)
//   reverse     [NA, facet_stride]   slot in which that facet has this one, -1 where there is none

#if M <= 32
#define UNROLL_SHORT _Pragma("unroll")
#else
#define UNROLL_SHORT
#endif

// y = A x on this rank's facets, ghosts included.
__kernel void trace_dbf_product(int num_rows, int n_owned, int n_free, int facet_stride, int row_stride,
                                __global const real *restrict A, __global const int *restrict adjacent,
                                __global const int *restrict numbers, __global const real *restrict owned,
                                __global const real *restrict tail, __global real *restrict y_owned,
                                __global real *restrict y_ghost)
{
  const int t = get_global_id(0) * ROWS;
  if (t >= num_rows) return;
  const int f = t / M;
  real sum[ROWS];
  for (int i = 0; i < ROWS; ++i) sum[i] = 0;
#if ROWS == 1 && M <= 8
#pragma unroll
#endif
  for (int a = 0; a < NA; ++a) {
    const int g = adjacent[a * facet_stride + f];
#if ROWS == 1 && M <= 32
#pragma unroll
#endif
    for (int k = 0; k < M; ++k) {
      const real value = trace_value(owned, tail, n_owned, numbers, facet_stride, g, k);
      __global const real *entry = A + (size_t)(a * M + k) * row_stride + t;
      UNROLL_SHORT for (int i = 0; i < ROWS; ++i) sum[i] += entry[i] * value;
    }
  }
  for (int i = 0; i < ROWS; ++i)
    trace_set(y_owned, y_ghost, n_owned, n_free, numbers, facet_stride, f, t % M + i, sum[i]);
}

// y = Aᵀ x on this rank's facets, ghosts included.
__kernel void trace_dbf_transposed(int num_rows, int n_owned, int n_free, int facet_stride, int row_stride,
                                   __global const real *restrict A, __global const int *restrict adjacent,
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
    __global const real *column = A + (size_t)(slot * M + k) * row_stride + g * M;
    for (int i = 0; i < M; ++i) sum += column[i] * trace_value(owned, tail, n_owned, numbers, facet_stride, g, i);
  }
  trace_set(y_owned, y_ghost, n_owned, n_free, numbers, facet_stride, f, k, sum);
}

// Entry (i, column) of each facet's own block; the diagonal if column < 0.
__kernel void trace_dbf_column(int num_rows, int n_owned, int n_free, int facet_stride, int row_stride, int column,
                               __global const real *A, __global const int *numbers, __global real *y_owned,
                               __global real *y_ghost)
{
  const int t = get_global_id(0);
  if (t >= num_rows) return;
  const int i = t % M;
  const real value = A[(size_t)(column < 0 ? i : column) * row_stride + t];
  trace_set(y_owned, y_ghost, n_owned, n_free, numbers, facet_stride, t / M, i, value);
}
