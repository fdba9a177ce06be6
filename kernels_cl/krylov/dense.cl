// Products with a small dense matrix, y = A x, a work-group per row. After dense.clh.
//
// needs: GROUP dense_row
//
// Arrays: values [row, column];  x [column], y [row]

KERNEL(GROUP) void dense_product(int columns, __global const real *values, __global const real *x, __global real *y)
{
  __local real part[GROUP];
  const int row = get_group_id(0);
  const real sum = dense_row(values + row * columns, columns, x, get_local_id(0), GROUP, part);
  if (get_local_id(0) == 0) y[row] = sum;
}
