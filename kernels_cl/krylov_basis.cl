// Orthonormal bases of GMRES, in parts of PART vectors: products with all vectors of a part, and sums of them.
//
// basis [vector, n], of which the first `used` count; w, v [n] real; c [vector] real; row [group] real4, see
// krylov_sum.clh: products with vectors 4 k ... 4 k + 3 stand in row first + k
//
// needs: GROUP FOR_UNKNOWNS PART

// Products of w with the vectors of a part.
KERNEL(GROUP) void basis_dots(int n, int used, __global const real *restrict basis, __global const real *restrict w,
                              int first, __global real4 *sums)
{
  __local real4 scratch[GROUP];
  real4 low = 0, high = 0;
  const size_t stride = n;
  FOR_UNKNOWNS(i, n) {
    const real wi = w[i];
    __global const real *v = basis + i;
    real4 a = 0, b = 0;
    a.x = v[0];
    if (used > 1) a.y = v[stride];
    if (used > 2) a.z = v[2 * stride];
    if (used > 3) a.w = v[3 * stride];
    if (used > 4) b.x = v[4 * stride];
    if (used > 5) b.y = v[5 * stride];
    if (used > 6) b.z = v[6 * stride];
    if (used > 7) b.w = v[7 * stride];
    low += wi * a;
    high += wi * b;
  }
  store_sum(low, scratch, sums + first * get_num_groups(0));
  store_sum(high, scratch, sums + (first + 1) * get_num_groups(0));
}

// Totals [row, 4] of rows, by one group a row.
KERNEL(GROUP) void basis_totals(int count, __global const real4 *sums, __global real4 *totals)
{
  __local real4 scratch[GROUP];
  const int row = (int)get_group_id(0);
  real4 mine = 0;
  for (int k = (int)get_local_id(0); k < count; k += GROUP) mine += sums[row * count + k];
  const real4 total = group_sum(mine, scratch);
  if (get_local_id(0) == 0) totals[row] = total;
}

// w += s (c of the part) . basis, from zero if `fresh`, and the sum of its squares.
KERNEL(GROUP) void basis_add(int n, int used, int fresh, real s, __global const real *restrict basis,
                             __global const real *restrict c, int offset, __global real *restrict w, int row,
                             __global real4 *sums)
{
  __local real4 scratch[GROUP];
  const size_t stride = n;
  real by[PART];
  for (int j = 0; j < PART; ++j) by[j] = j < used ? s * c[offset + j] : 0;
  real4 sum = 0;
  FOR_UNKNOWNS(i, n) {
    __global const real *v = basis + i;
    real wi = (fresh ? 0 : w[i]) + by[0] * v[0];
    if (used > 1) wi += by[1] * v[stride];
    if (used > 2) wi += by[2] * v[2 * stride];
    if (used > 3) wi += by[3] * v[3 * stride];
    if (used > 4) wi += by[4] * v[4 * stride];
    if (used > 5) wi += by[5] * v[5 * stride];
    if (used > 6) wi += by[6] * v[6 * stride];
    if (used > 7) wi += by[7] * v[7 * stride];
    w[i] = wi;
    sum.x += wi * wi;
  }
  store_sum(sum, scratch, sums + row * get_num_groups(0));
}

// Vector `place` of a part is w over its norm, whose square the row's first sums give.
KERNEL(GROUP) void basis_append(int n, int count, int row, __global const real4 *given, __global const real *restrict w,
                                int place, __global real *restrict basis)
{
  __local real4 scratch[GROUP];
  real4 mine = 0;
  for (int k = (int)get_local_id(0); k < count; k += GROUP) mine += given[row * count + k];
  const real square = group_sum(mine, scratch).x;
  const real by = square > 0 ? 1 / sqrt(square) : 0;
  __global real *v = basis + (size_t)place * n;
  FOR_UNKNOWNS(i, n) v[i] = by * w[i];
}
