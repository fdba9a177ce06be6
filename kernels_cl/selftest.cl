// The smallest kernels that show a device works: a sum of vectors, and a reversal through local memory.
//
// a, b, sum [count]; SHIFT is a table of one value that is added to each sum
//
// needs: GROUP SHIFT

KERNEL(GROUP) void selftest_add(__global const real *a, __global const real *b, __global real *sum, int count)
{
  const int i = (int)get_global_id(0);
  if (i < count) sum[i] = a[i] + b[i] + SHIFT[0];
}

KERNEL(GROUP) void selftest_reverse(__global const real *a, __global real *reversed, int count)
{
  __local real shared[GROUP];
  const int i = (int)get_global_id(0), l = (int)get_local_id(0);
  shared[l] = i < count ? a[i] : 0;
  BARRIER_LOCAL();
  if (i < count) reversed[i] = shared[GROUP - 1 - l];
}
