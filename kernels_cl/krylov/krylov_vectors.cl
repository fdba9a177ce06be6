// Operations on vectors that all Krylov methods share.
//
// a, b, x, y, z, d [n] real; row [group] sum4, see krylov_sum.clh
//
// needs: GROUP FOR_UNKNOWNS

// Sums of (b·b, a·b, a·a, a).
KERNEL(GROUP) void krylov_sums(int n, __global const real *restrict a, __global const real *restrict b, int row,
                               __global sum4 *sums)
{
  __local sum4 scratch[GROUP];
  sum4 sum = 0;
  FOR_UNKNOWNS(i, n) {
    const real ai = a[i], bi = b[i];
    sum += as_sum((real4)(bi * bi, ai * bi, ai * ai, ai));
  }
  store_sum(sum, scratch, sums + row * get_num_groups(0));
}

// Sums (0, sum of parts, 0, 0), where a product with a has left parts [n] of a·b.
KERNEL(GROUP) void krylov_total(int n, __global const real *restrict parts, int row, __global sum4 *sums)
{
  __local sum4 scratch[GROUP];
  sum4 sum = 0;
  FOR_UNKNOWNS(i, n) sum.y += parts[i];
  store_sum(sum, scratch, sums + row * get_num_groups(0));
}

// From row `first` on, a work-group each: totals [row, rank] sum4 of this rank's sums [row, groups].
KERNEL(GROUP) void krylov_rank_totals(int groups, int first, int ranks, int rank, __global const sum4 *sums,
                                      __global sum4 *totals)
{
  __local sum4 scratch[GROUP];
  const int row = first + (int)get_group_id(0);
  sum4 mine = 0;
  for (int k = (int)get_local_id(0); k < groups; k += GROUP) mine += sums[row * groups + k];
  const sum4 sum = group_sum(mine, scratch);
  if (get_local_id(0) == 0) totals[row * ranks + rank] = sum;
}

// y = b - y
KERNEL(GROUP) void krylov_subtract(int n, __global const real *restrict b, __global real *restrict y)
{
  FOR_UNKNOWNS(i, n) y[i] = b[i] - y[i];
}

// y = d x
KERNEL(GROUP) void krylov_multiply(int n, __global const real *restrict d, __global const real *restrict x,
                                   __global real *restrict y)
{
  FOR_UNKNOWNS(i, n) y[i] = d[i] * x[i];
}

// y = s x + t y, of which nothing is read where t is 0
KERNEL(GROUP) void krylov_combine(int n, real s, __global const real *restrict x, real t, __global real *restrict y)
{
  FOR_UNKNOWNS(i, n) y[i] = s * x[i] + (t == 0 ? 0 : t * y[i]);
}

// y += s
KERNEL(GROUP) void krylov_shift(int n, real s, __global real *y)
{
  FOR_UNKNOWNS(i, n) y[i] += s;
}

// y = s
KERNEL(GROUP) void krylov_set(int n, real s, __global real *y)
{
  FOR_UNKNOWNS(i, n) y[i] = s;
}

// y = numbers between -1.08 and 1.08 by the hash that PETSc takes of the numbers from `first` on
KERNEL(GROUP) void krylov_noise(int n, uint first, __global real *y)
{
  FOR_UNKNOWNS(i, n) {
    uint hash = first + (uint)i;
    for (int turn = 0; turn < 2; ++turn) hash = ((hash >> 16) ^ hash) * 0x45d9f3bu;
    hash = (hash >> 16) ^ hash;
    y[i] = (real)((long)hash - 2147483648l) * (real)5e-10;
  }
}

// y = 1 / y, 1 where y = 0
KERNEL(GROUP) void krylov_invert(int n, __global real *y)
{
  FOR_UNKNOWNS(i, n) y[i] = y[i] == 0 ? 1 : 1 / y[i];
}
