// Rows of a sparse matrix (CSR) written as slices of SLICE rows with their entries interleaved, as sell.cl reads them.
//
// needs: SLICE STORED ROWS COLUMNS
//
// Sizes
//   STORED   type of the entries of slices: real or float
//   ROWS, COLUMNS  the matrix is given in rows of blocks [ROWS, COLUMNS], 1 and 1 if of numbers
// Arrays
//   row_starts [row of blocks + 1]  first block of a row;  given_columns [block], given [block, ROWS, COLUMNS]
//   starts     [slice + 1]  first entry of a slice, whose rows all have as many as the longest
//   order      [slice, SLICE]  rows of slices, `rows` for none; may be left out: one after the other
//   columns, values [entry of the slice, SLICE]  written, value 0 in column 0 behind a row's own entries

KERNEL(SLICE) void sell_slice(int rows, __global const int *row_starts, __global const int *given_columns,
                              __global const real *given, __global const int *starts, __global const int *order,
                              __global int *columns, __global STORED *values)
{
  const int slot = get_global_id(0), slice = slot / SLICE, row = order ? order[slot] : slot;
  int place = starts[slice] + slot % SLICE;
  if (row < rows)
    for (int k = row_starts[row / ROWS]; k < row_starts[row / ROWS + 1]; ++k)
      for (int j = 0; j < COLUMNS; ++j, place += SLICE) {
        columns[place] = given_columns[k] * COLUMNS + j;
        values[place] = (STORED)given[(k * ROWS + row % ROWS) * COLUMNS + j];
      }
  for (; place < starts[slice + 1]; place += SLICE) columns[place] = 0, values[place] = 0;
}
