// Orthonormal bases of GMRES: products with eight vectors at a time, and sums of them.
//
// v0 ... v7, w [n] real, of which the first `used` vectors count; c [vector] real; row [group] sum4, see krylov_sum.clh:
// products with vectors 4 k ... 4 k + 3 stand in row k
//
// needs: GROUP FOR_UNKNOWNS

#define READ_VECTOR(k) __global const real *restrict v##k
#define READ_VECTORS READ_VECTOR(0), READ_VECTOR(1), READ_VECTOR(2), READ_VECTOR(3), \
                     READ_VECTOR(4), READ_VECTOR(5), READ_VECTOR(6), READ_VECTOR(7)

// Products of w with the vectors, or of out = d w where there is a d.
KERNEL(GROUP) void basis_dots(int n, int used, READ_VECTORS, __global const real *restrict w,
                              __global const real *restrict d, __global real *restrict out, int row,
                              __global sum4 *sums)
{
  __local sum4 scratch[GROUP];
  sum4 low = 0, high = 0;
  FOR_UNKNOWNS(i, n) {
    real wi = w[i];
    if (d) {
      wi *= d[i];
      out[i] = wi;
    }
    real4 a = 0, b = 0;
    a.x = v0[i];
    if (used > 1) a.y = v1[i];
    if (used > 2) a.z = v2[i];
    if (used > 3) a.w = v3[i];
    if (used > 4) b.x = v4[i];
    if (used > 5) b.y = v5[i];
    if (used > 6) b.z = v6[i];
    if (used > 7) b.w = v7[i];
    low += as_sum(wi * a);
    high += as_sum(wi * b);
  }
  store_sum(low, scratch, sums + row * get_num_groups(0));
  store_sum(high, scratch, sums + (row + 1) * get_num_groups(0));
}

// Totals [row, 4] of rows, by one group a row.
KERNEL(GROUP) void basis_totals(int count, __global const sum4 *sums, __global sum4 *totals)
{
  __local sum4 scratch[GROUP];
  const int row = (int)get_group_id(0);
  sum4 mine = 0;
  for (int k = (int)get_local_id(0); k < count; k += GROUP) mine += sums[row * count + k];
  const sum4 total = group_sum(mine, scratch);
  if (get_local_id(0) == 0) totals[row] = total;
}

// w += s times the sum of c[first + k] v_k, from zero if `fresh`; and the sum of its squares.
KERNEL(GROUP) void basis_add(int n, int used, READ_VECTORS, real s, __global const real *restrict c, int first, int fresh,
                             __global real *restrict w, int row, __global sum4 *sums)
{
  __local sum4 scratch[GROUP];
  real by[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) by[k] = k < used ? s * c[first + k] : 0;
  sum4 sum = 0;
  FOR_UNKNOWNS(i, n) {
    real wi = (fresh ? 0 : w[i]) + by[0] * v0[i];
    if (used > 1) wi += by[1] * v1[i];
    if (used > 2) wi += by[2] * v2[i];
    if (used > 3) wi += by[3] * v3[i];
    if (used > 4) wi += by[4] * v4[i];
    if (used > 5) wi += by[5] * v5[i];
    if (used > 6) wi += by[6] * v6[i];
    if (used > 7) wi += by[7] * v7[i];
    w[i] = wi;
    sum.x += wi * wi;
  }
  store_sum(sum, scratch, sums + row * get_num_groups(0));
}

// v = w over its norm, whose square the sums in `row` of `given` are; their total goes to that row of `totals`, if
// there are any.
KERNEL(GROUP) void basis_append(int n, int count, int row, __global const sum4 *given, __global sum4 *totals,
                                __global const real *restrict w, __global real *restrict v)
{
  __local sum4 scratch[GROUP];
  sum4 mine = 0;
  for (int k = (int)get_local_id(0); k < count; k += GROUP) mine += given[row * count + k];
  const sum4 total = group_sum(mine, scratch);
  if (totals && get_global_id(0) == 0) totals[row] = total;
  const real by = total.x > 0 ? (real)(1 / sqrt(total.x)) : 0;
  FOR_UNKNOWNS(i, n) v[i] = by * w[i];
}
