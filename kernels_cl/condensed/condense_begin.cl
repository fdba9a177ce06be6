// Where local problems begin: at the affine function next to the trace's nodes, between its bounds, a thread a component
// of a cell. Gradients of nonlinear laws begin near theirs: jumps to the trace would turn into large ones; positive
// traces begin positive. After gather_tvector.clh.
// needs: NI NT NC NB NDOF FIT AFFINE
//
// Arrays
//   interior  [NI NC, stride]
//   FIT       [NB, NT] coefficients of 1 and the reference coordinates from the trace; AFFINE [NI, NB] their values

__kernel void condense_begin(int num_cells, int stride, int n_owned, __global const int *dofs,
                             __global const real *trace_owned, __global const real *trace_tail, __global real *interior)
{
  const int cell = get_global_id(0) % num_cells, c = get_global_id(0) / num_cells;
  if (c >= NC) return;
  real fit[NB] = {0}, least = 0, most = 0;
  for (int j = 0; j < NT; ++j) {
    const real value = gather_dof(trace_owned, trace_tail, n_owned, dofs, stride, cell, j * NC + c);
    least = j ? fmin(least, value) : value;
    most = j ? fmax(most, value) : value;
    for (int b = 0; b < NB; ++b) fit[b] += FIT[b * NT + j] * value;
  }
  for (int i = 0; i < NI; ++i) {
    real value = 0;
    for (int b = 0; b < NB; ++b) value += AFFINE[i * NB + b] * fit[b];
    interior[(i * NC + c) * (size_t)stride + cell] = fmin(fmax(value, least), most);
  }
}
