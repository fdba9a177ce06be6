// Where local problems begin: at a smooth function next to the trace's nodes, between its bounds, a thread per component of
// a cell. Gradients of nonlinear laws begin near theirs: jumps to the trace would turn into large ones; positive traces
// begin positive.
// After gather_tvector.clh.
// needs: NI NT NC NDOF EXTENSION
//
// Arrays
//   interior   [NI NC, stride]
//   EXTENSION  [NI, NT]         the function of least energy next to values at the trace's nodes; keeps affine ones

__kernel void condense_begin(int num_cells, int stride, int n_owned, __global const int *dofs,
                             __global const real *trace_owned, __global const real *trace_tail, __global real *interior)
{
  const int cell = get_global_id(0) % num_cells, c = get_global_id(0) / num_cells;
  if (c >= NC) return;
  real trace[NT], least, most;
  for (int j = 0; j < NT; ++j) {
    trace[j] = gather_dof(trace_owned, trace_tail, n_owned, dofs, stride, cell, j * NC + c);
    least = fmin(j ? least : trace[j], trace[j]);
    most = fmax(j ? most : trace[j], trace[j]);
  }
  for (int i = 0; i < NI; ++i) {
    real value = 0;
    for (int j = 0; j < NT; ++j) value += EXTENSION[i * NT + j] * trace[j];
    interior[(i * NC + c) * (size_t)stride + cell] = fmin(fmax(value, least), most);
  }
}
