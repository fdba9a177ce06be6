// What kernels said of local problems. After krylov_sum.clh.
// needs: GROUP FOR_UNKNOWNS

// Sums [group] of (status where that is positive, 1 where it is not above a limit, 0, 0).
KERNEL(GROUP) void condense_status(int cells, real limit, __global const real *status, __global real4 *sums)
{
  __local real4 scratch[GROUP];
  real4 sum = 0;
  FOR_UNKNOWNS(i, cells) sum += (real4)(fmax(status[i], (real)0), !(status[i] > limit), 0, 0);
  store_sum(sum, scratch, sums);
}
