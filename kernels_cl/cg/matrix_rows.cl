// Rows of a sparse matrix as sums of element matrices, each row by one work-item, whose sums have one order only.
//
// needs: GROUP DOFS place_of REAL_BYTES
//
// Sizes
//   DOFS  of an element; elements are `stride` cells, padding among them, then facets
// Arrays
//   first [row + 1], source  entries of elements that belong to a row, and their places in
//   item  [entry]                DOFS times the element, plus the entry's number in it
//   dofs  [element, DOFS]        columns, negative where there is none
//   cells [DOFS, DOFS, stride], facets [DOFS, DOFS, facet_stride]  matrices of elements
//   starts [row + 1], columns [entry of the matrix] ascending in a row;  values [entry of the matrix] written

KERNEL(GROUP) void matrix_rows(int rows, int stride, int facet_stride, __global const int *first,
                               __global const int *source, __global const int *item, __global const int *dofs,
                               __global const real *cells, __global const real *facets, __global const int *starts,
                               __global const int *columns, __global real *values)
{
  const int row = get_global_id(0);
  if (row >= rows) return;
  const int begin = starts[row], end = starts[row + 1];
  for (int k = begin; k < end; ++k) values[k] = 0;
  for (int k = first[row]; k < first[row + 1]; ++k) {
    const int element = item[source[k]] / DOFS, i = item[source[k]] % DOFS, step = element < stride ? stride : facet_stride;
    __global const real *from = element < stride ? cells + element : facets + (element - stride);
    for (int j = 0; j < DOFS; ++j) {
      const int column = dofs[element * DOFS + j];
      if (column >= 0) values[place_of(column, begin, end, columns)] += from[(i * DOFS + j) * step];
    }
  }
}
