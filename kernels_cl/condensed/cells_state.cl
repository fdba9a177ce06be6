// A state in time of a condensed scheme: PETSc's vector [trace | cell, dof], and arrays [row, stride] of the cells.
// needs: none
//
//   rows [num_dofs]                     row of each degree of freedom of a cell in the array
//   vector [offset + num_cells num_dofs]   array, other [row, stride]

// array = the cells' part of the vector, or 0 without one.
KERNEL(64) void cells_spread(int count, int num_cells, int num_dofs, int offset, int stride,
                             __global const int *restrict rows, __global const real *restrict vector,
                             __global real *restrict array)
{
  const int item = get_global_id(0);
  if (item >= count) return;
  const int k = item / num_cells, cell = item % num_cells;
  array[rows[k] * stride + cell] = vector ? vector[offset + cell * num_dofs + k] : 0;
}

// The cells' part of the vector = array, less another one where it is given.
KERNEL(64) void cells_collect(int count, int num_cells, int num_dofs, int offset, int stride,
                              __global const int *restrict rows, __global const real *restrict array,
                              __global const real *restrict other, __global real *restrict vector)
{
  const int item = get_global_id(0);
  if (item >= count) return;
  const int cell = item / num_dofs, k = item % num_dofs, place = rows[k] * stride + cell;
  vector[offset + item] = other ? array[place] - other[place] : array[place];
}
