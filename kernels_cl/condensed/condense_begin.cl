// Where local problems begin: at the mean of the trace's nodes, a thread a component of a cell. After gather_tvector.clh.
// needs: NI NT NC NDOF
//
// Arrays
//   interior  [NI NC, stride]

__kernel void condense_begin(int num_cells, int stride, int n_owned, __global const int *dofs,
                             __global const real *trace_owned, __global const real *trace_tail, __global real *interior)
{
  const int cell = get_global_id(0) % num_cells, c = get_global_id(0) / num_cells;
  if (c >= NC) return;
  real mean = 0;
  for (int j = 0; j < NT; ++j) mean += gather_dof(trace_owned, trace_tail, n_owned, dofs, stride, cell, j * NC + c) / NT;
  for (int i = 0; i < NI; ++i) interior[(i * NC + c) * (size_t)stride + cell] = mean;
}
