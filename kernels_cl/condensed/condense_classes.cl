// Cells that share matrices, one for each shape: the interior from the trace, and matrices of a tile as if each had its own.
// needs: NE NM NDOF
//
// Arrays
//   shape     [cell]                     number of each cell's shape
//   recovery  [shape, NM column, NE row] U of each shape;  particular, interior [NE, stride] as in condense_recover.cl
//   kept      [NM column, num_shapes, NM row] K of each shape
//   schur     [NM column, batch, NM row] K of cells first ... first + count - 1

__kernel void condense_recover_shared(int num_cells, int stride, int n_owned, __global const int *dofs,
                                      __global const real *trace_owned, __global const real *trace_tail,
                                      __global const int *shape, __global const real *recovery,
                                      __global const real *particular, __global real *interior)
{
  const int cell = get_global_id(0) % num_cells, row = get_global_id(0) / num_cells;
  if (row >= NE) return;
  __global const real *own = recovery + (size_t)shape[cell] * NM * NE + row;
  real sum = particular[row * stride + cell];
  for (int k = 0; k < NM; ++k)
    sum += own[k * NE] * gather_dof(trace_owned, trace_tail, n_owned, dofs, stride, cell, k);
  interior[row * stride + cell] = sum;
}

__kernel void condense_spread(int count, int first, int batch, int num_shapes, __global const int *shape, __global const real *kept,
                              __global real *schur)
{
  const int t = get_global_id(0), row = t % NM, item = t / NM;
  if (item >= count) return;
  __global const real *own = kept + (size_t)shape[first + item] * NM + row;
  for (int k = 0; k < NM; ++k) schur[((size_t)k * batch + item) * NM + row] = own[(size_t)k * num_shapes * NM];
}
