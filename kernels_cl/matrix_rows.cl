// Rows of a sparse matrix as sums of element matrices. What each entry sums is listed once, in one order.
//
// needs: GROUP DOFS place_of
//
// Sizes
//   DOFS      of an element; elements are those of cells, padding among them, then parts of `stride` others
//   *_step    distances of elements, rows and columns in the matrices of cells;  in_cells  numbers in all of these
// Arrays
//   first [row + 1], source  entries of elements that belong to a row, and their places in
//   item    [entry]                DOFS times the element, plus the entry's number in it
//   numbers [element, DOFS]        columns, negative where there is none
//   cells, others [part, DOFS, DOFS, stride]  matrices of elements
//   starts [row + 1], columns [entry of the matrix] ascending in a row;  values [entry of the matrix]
//   ends    [entry of the matrix]  end of its part of `listed`, which begins where that of the entry before ends
//   listed  [DOFS * entry of elements]  places in `cells`, then in `others`, or NOTHING

#define NOTHING 0xffffffffu

KERNEL(GROUP) void matrix_sources(int rows, int num_cells, int cell_step, int row_step, int column_step, int stride, uint in_cells,
                                  __global const int *first, __global const int *source, __global const int *item,
                                  __global const int *numbers, __global const int *starts, __global const int *columns,
                                  __global uint *ends, __global uint *listed)
{
  const int row = get_global_id(0);
  if (row >= rows) return;
  const int begin = starts[row], end = starts[row + 1];
  for (int k = begin; k < end; ++k) ends[k] = 0;
  for (int k = first[row]; k < first[row + 1]; ++k) {
    __global const int *of = numbers + (size_t)(item[source[k]] / DOFS) * DOFS;
    for (int j = 0; j < DOFS; ++j)
      if (of[j] >= 0) ++ends[place_of(of[j], begin, end, columns)];
  }
  uint place = (uint)first[row] * DOFS;
  for (int k = begin; k < end; ++k) {
    const uint count = ends[k];
    ends[k] = place;
    place += count;
  }
  for (; place < (uint)first[row + 1] * DOFS; ++place) listed[place] = NOTHING;
  for (int k = first[row]; k < first[row + 1]; ++k) {
    const uint element = item[source[k]] / DOFS, i = item[source[k]] % DOFS, other = element - num_cells;
    const bool is_cell = element < (uint)num_cells;
    const uint from = is_cell ? element * cell_step + i * row_step
                              : in_cells + ((other / stride) * DOFS + i) * DOFS * stride + other % stride;
    const uint step = is_cell ? column_step : stride;
    __global const int *of = numbers + (size_t)element * DOFS;
    for (int j = 0; j < DOFS; ++j)
      if (of[j] >= 0) listed[ends[place_of(of[j], begin, end, columns)]++] = from + j * step;
  }
}

KERNEL(GROUP) void matrix_rows(int count, uint in_cells, __global const uint *ends, __global const uint *listed,
                               __global const real *cells, __global const real *others, __global real *values)
{
  const int k = get_global_id(0);
  if (k >= count) return;
  real sum = 0;
  for (uint m = k ? ends[k - 1] : 0; m < ends[k]; ++m) {
    const uint at = listed[m];
    if (at != NOTHING) sum += at < in_cells ? cells[at] : others[at - in_cells];
  }
  values[k] = sum;
}
