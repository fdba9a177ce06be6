// Products with a small dense matrix: a work-group a row, its items side by side along the columns, summed in a fixed order.
//
//   y = A x
//
// needs: GROUP
//
// Arrays: values [row, column];  x [column], y [row]

KERNEL(GROUP) void dense_product(int columns, __global const real *values, __global const real *x, __global real *y)
{
  const int row = get_group_id(0), item = (int)get_local_id(0);
  __local real part[GROUP];
  real sum = 0;
  for (int k = item; k < columns; k += GROUP) sum += values[row * columns + k] * x[k];
  part[item] = sum;
  for (int width = GROUP / 2; width > 0; width /= 2) {
    BARRIER_LOCAL();
    if (item < width) part[item] += part[item + width];
  }
  if (item == 0) y[row] = part[0];
}
