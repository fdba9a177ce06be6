// Interior of a batch of cells from the trace, by the matrices that condensation kept: u = f + U λ (King et al. 2014, 4.3).
// needs: NE NM NDOF
//
// One thread a degree of freedom. Arrays
//   recovery  [NM column, batch, NE row]  U of cells first ... first + num_cells - 1
//   particular, interior  [NE, stride]    f, and the result

__kernel void condense_recover(int num_cells, int first, int stride, int n_owned, __global const int *dofs,
                               __global const real *trace_owned, __global const real *trace_tail, int batch,
                               __global const real *recovery, __global const real *particular, __global real *interior)
{
  const int item = get_global_id(0) / NE, row = get_global_id(0) % NE, cell = first + item;
  if (item >= num_cells) return;
  real sum = particular[row * stride + cell];
  for (int k = 0; k < NM; ++k)
    sum += recovery[((size_t)k * batch + item) * NE + row]
         * gather_dof(trace_owned, trace_tail, n_owned, dofs, stride, cell, k);
  interior[row * stride + cell] = sum;
}
