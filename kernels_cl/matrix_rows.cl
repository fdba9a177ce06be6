// Rows of a sparse matrix as sums of element matrices, each row by one work-item, whose sums have one order only.
//
// needs: GROUP DOFS place_of REAL_BYTES
//
// Sizes
//   DOFS      of an element; elements are those of cells, padding among them, then parts of `stride` others
//   *_step    distances of elements, rows and columns in the matrices of cells
// Arrays
//   first [row + 1], source  entries of elements that belong to a row, and their places in
//   item    [entry]                DOFS times the element, plus the entry's number in it
//   numbers [element, DOFS]        columns, negative where there is none
//   cells, others [part, DOFS, DOFS, stride]  matrices of elements
//   starts [row + 1], columns [entry of the matrix] ascending in a row;  values [entry of the matrix] written

KERNEL(GROUP) void matrix_rows(int rows, int num_cells, int cell_step, int row_step, int column_step, int stride,
                               __global const int *first, __global const int *source, __global const int *item,
                               __global const int *numbers, __global const real *cells, __global const real *others,
                               __global const int *starts, __global const int *columns, __global real *values)
{
  const int row = get_global_id(0);
  if (row >= rows) return;
  const int begin = starts[row], end = starts[row + 1];
  for (int k = begin; k < end; ++k) values[k] = 0;
  for (int k = first[row]; k < first[row + 1]; ++k) {
    const int element = item[source[k]] / DOFS, i = item[source[k]] % DOFS, other = element - num_cells;
    __global const real *from =
        other < 0 ? cells + (long)element * cell_step + (long)i * row_step
                  : others + ((long)(other / stride) * DOFS + i) * DOFS * stride + other % stride;
    const long step = other < 0 ? column_step : stride;
    for (int j = 0; j < DOFS; ++j) {
      const int column = numbers[(long)element * DOFS + j];
      if (column >= 0) values[place_of(column, begin, end, columns)] += from[j * step];
    }
  }
}
