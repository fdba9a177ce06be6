// What kernels said of local problems, and the states that these belong to. After krylov_sum.clh.
// needs: GROUP FOR_UNKNOWNS

// Sums [group] of (status where that is positive, 1 where it is not above a limit, 0, 0).
KERNEL(GROUP) void condense_status(int cells, real limit, __global const real *status, __global real4 *sums)
{
  __local real4 scratch[GROUP];
  real4 sum = 0;
  FOR_UNKNOWNS(i, cells) sum += (real4)(fmax(status[i], (real)0), !(status[i] > limit), 0, 0);
  store_sum(sum, scratch, sums);
}

// Sums [group] of ((a - b)², b², 0, 0).
KERNEL(GROUP) void condense_apart(int count, __global const real *a, __global const real *b, __global real4 *sums)
{
  __local real4 scratch[GROUP];
  real4 sum = 0;
  FOR_UNKNOWNS(i, count) sum += (real4)((a[i] - b[i]) * (a[i] - b[i]), b[i] * b[i], 0, 0);
  store_sum(sum, scratch, sums);
}
