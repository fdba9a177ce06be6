// Order of a sparse matrix' rows in slices (see sell.clh): by their lengths in each window of WINDOW rows, longest first.
//
// needs: SLICE WINDOW
//
// Arrays
//   lengths [row];  order [window, WINDOW] rows, `rows` for none;  longest [slice] length of the first row of each slice

KERNEL(WINDOW) void sell_order(int rows, __global const int *lengths, __global int *order, __global int *longest)
{
  const int i = get_local_id(0), row = get_global_id(0);
  __local int length[WINDOW], sorted[WINDOW];
  length[i] = row < rows ? lengths[row] : -1;
  BARRIER_LOCAL();
  int rank = 0;
  for (int j = 0; j < WINDOW; ++j) rank += length[j] > length[i] || (length[j] == length[i] && j < i);
  order[row - i + rank] = min(row, rows);
  sorted[rank] = length[i];
  BARRIER_LOCAL();
  if (i % SLICE == 0) longest[row / SLICE] = max(sorted[i], 0);
}
