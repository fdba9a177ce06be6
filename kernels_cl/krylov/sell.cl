// Products with a sparse matrix in slices, joined with what follows them: y = keep y + mix x + scale d (b - A x). After sell.clh.
//
// needs: GROUP SLICE sell_row
//
// slices, listed [slice]: those of the launch, the first ones where there is no list
// order [slice, SLICE]: rows of slices, `rows` for none; one after the other where there is no order

KERNEL(GROUP) void sell_step(int slices, int rows, int num_owned, int team, __global const int *listed,
                             __global const int *order, __global const int *starts, __global const int *columns,
                             __global const real *values, __global const real *x, __global const real *tail, __global const real *b,
                             __global const real *d, real keep, real mix, real scale, __global real *y)
{
#if GROUP == SLICE
  const int slice = HAS_TAIL(tail) && listed ? listed[get_group_id(0)] : (int)get_group_id(0);
  const int slot = slice * SLICE + (int)get_local_id(0), row = HAS_ORDER(order) ? order[slot] : slot;
  const real sum = sell_row(starts, columns, values, x, tail, num_owned, slice, 1, 0);
  if (row < rows) y[row] = row_step(keep, mix, scale, x, b, d, y, row, sum);
#else
  __local real part[GROUP];
  const int item = get_local_id(0), unit = SLICE * team, nth = (int)get_group_id(0) * (GROUP / unit) + item / unit;
  const int slice = nth < slices ? (listed ? listed[nth] : nth) : -1, slot = slice * SLICE + item % SLICE;
  const int row = order && slice >= 0 ? order[slot] : slot;
  const int writes = slice >= 0 && row < rows && item % unit < SLICE;
  real4 before = 0;
  if (writes) before = row_before(keep, mix, x, b, d, y, row);
  const real sum = sell_row(starts, columns, values, x, tail, num_owned, slice, team, part);
  if (writes) y[row] = row_after(keep, mix, scale, before, sum);
#endif
}

// The same where A x is known: y = keep y + mix x + scale d (b - product), of which product, x, d may be left out.
__kernel void sell_update(int rows, __global const real *product, __global const real *x, __global const real *b,
                          __global const real *d, real keep, real mix, real scale, __global real *y)
{
  const int row = get_global_id(0);
  if (row < rows) y[row] = row_step(keep, mix, scale, x, b, d, y, row, product ? product[row] : 0);
}
