// A step of Chebyshev's iteration, 48 bytes an unknown: before = keep before + take x + scale z, z = d (b - q) with q = A x.
//
// b, q, d, x, before [n] real; q may be missing (0), d too (1). Sums (r·r, z·r, z·z, .), r = b - q, go to a row of sums.
//
// needs: GROUP FOR_UNKNOWNS

KERNEL(GROUP) void chebyshev_step(int n, real keep, real take, real scale, __global const real *restrict b,
                                  __global const real *restrict q, __global const real *restrict d,
                                  __global const real *restrict x, __global real *restrict before, int row,
                                  __global real4 *sums)
{
  __local real4 scratch[GROUP];
  real4 sum = 0;
  FOR_UNKNOWNS(i, n) {
    const real r = q ? b[i] - q[i] : b[i], z = d ? d[i] * r : r;
    before[i] = (keep == 0 ? 0 : keep * before[i]) + (take == 0 ? 0 : take * x[i]) + scale * z;
    sum += (real4)(r * r, z * r, z * z, 0);
  }
  store_sum(sum, scratch, sums + row * get_num_groups(0));
}
