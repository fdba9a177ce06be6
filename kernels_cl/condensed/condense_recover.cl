// Interior of a batch of cells from the trace, by the matrices that condensation kept: u = f + U λ (King et al. 2014, 4.3).
// needs: NE NM NDOF
//
// One thread a degree of freedom. Arrays
//   shape     [cell]                      number of each cell's shape, or none, where each cell has a matrix
//   recovery  [NM column, batch, NE row]  U of cells first ... first + num_cells - 1, or of shapes
//   particular, interior  [NE, stride]    f, and the result

__kernel void condense_recover(int num_cells, int first, int stride, int n_owned, __global const int *dofs,
                               __global const real *trace_owned, __global const real *trace_tail, int batch,
                               __global const int *shape, __global const real *recovery, __global const real *particular,
                               __global real *interior)
{
  // Threads side by side take rows of a cell, which read its matrix side by side, or cells, which share matrices.
  const int t = get_global_id(0), item = shape ? t % num_cells : t / NE, row = shape ? t / num_cells : t % NE;
  const int cell = first + item;
  if (item >= num_cells || row >= NE) return;
  __global const real *own = recovery + (size_t)(shape ? shape[cell] : item) * NE + row;
  real sum = particular[row * stride + cell];
  for (int k = 0; k < NM; ++k)
    sum += own[(size_t)k * batch * NE] * gather_dof(trace_owned, trace_tail, n_owned, dofs, stride, cell, k);
  interior[row * stride + cell] = sum;
}
