// Facet blocks of a trace matrix: collected column by column, inverted, applied (block Jacobi).
// needs: M BLOCKED STORED_SINGLE
//
// Arrays
//   block    [M, row_stride]  entry (i, k) of facet f at k row_stride + f M + i; only facets of this rank
//   numbers  [M, facet_stride]  see trace_numbers.clh
//   failed   [1]  one more than a facet whose block is singular, 0 if there is none

// Column k of the blocks from a vector of owned values; unit rows and columns where an unknown is essential.
__kernel void trace_block_column(int num_rows, int n_owned, int facet_stride, int row_stride, int column,
                                 __global const int *numbers, __global const real *owned, __global real *block)
{
  const int t = get_global_id(0);
  if (t >= num_rows) return;
  const int f = t / M, i = t % M;
  const int index = trace_number(numbers, facet_stride, f, i);
  const int other = trace_number(numbers, facet_stride, f, column);
  const int free = index < n_owned && other < n_owned;
  block[(size_t)column * row_stride + t] = free ? owned[index] : (real)(i == column);
}

// Gauss-Jordan in place with row pivots, one work-group a block.
__kernel void trace_block_invert(int num_facets, int row_stride, __global real *block, __global int *failed)
{
  const int f = get_group_id(0);
  if (f >= num_facets) return;
  __local int pivots[M];
  __global real *a = block + (size_t)f * M;
#define AT(i, k) a[(size_t)(k) * row_stride + (i)]
  for (int p = 0; p < M; ++p) {
    int pivot = p;
    for (int i = p + 1; i < M; ++i)
      if (fabs(AT(i, p)) > fabs(AT(pivot, p))) pivot = i;
    const real value = AT(pivot, p);
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    const real inverse = 1 / value;
    if (get_local_id(0) == 0) {
      pivots[p] = pivot;
      if (!isfinite(inverse)) *failed = f + 1;
    }
    FOR_ITEMS(k, M) {
      const real upper = AT(pivot, k);
      AT(pivot, k) = AT(p, k);
      AT(p, k) = k == p ? inverse : upper * inverse;
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    FOR_ITEMS(k, M) {
      if (k == p) continue;
      const real upper = AT(p, k);
      for (int i = 0; i < M; ++i)
        if (i != p) AT(i, k) -= AT(i, p) * upper;
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    FOR_ITEMS(i, M) if (i != p) AT(i, p) *= -inverse;
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
  }
  FOR_ITEMS(i, M) {
    for (int p = M - 1; p >= 0; --p) {
      const int pivot = pivots[p];
      const real kept = AT(i, p);
      AT(i, p) = AT(i, pivot);
      AT(i, pivot) = kept;
    }
  }
}

// The inverses as they are stored.
__kernel void trace_block_store(int count, __global const real *block, __global stored *kept)
{
  const int t = get_global_id(0);
  if (t < count) kept[t] = block[t];
}

// y = keep y + mix x + scale block (b - product) on this rank's facets, or with the transposed blocks; product and x may be
// left out.
__kernel void trace_block_apply(int num_rows, int n_owned, int facet_stride, int row_stride, int transposed,
                                __global const int *numbers, __global const stored *block, __global const real *product,
                                __global const real *x, __global const real *b, real keep, real mix, real scale,
                                __global real *y)
{
  const int t = get_global_id(0);
  if (t >= num_rows) return;
  const int f = t / M, i = t % M;
  const int row = trace_number(numbers, facet_stride, f, i);
  if (row >= n_owned) return;
  real sum = 0;
  for (int k = 0; k < M; ++k) {
    const int column = trace_number(numbers, facet_stride, f, k);
    const size_t entry = transposed ? (size_t)i * row_stride + f * M + k : (size_t)k * row_stride + t;
    if (column < n_owned) sum += block[entry] * (product ? b[column] - product[column] : b[column]);
  }
  real out = scale * sum;
  if (x) out += mix * x[row];
  y[row] = keep == 0 ? out : keep * y[row] + out;
}
