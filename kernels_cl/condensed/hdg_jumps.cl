// How far the interior of each cell is from its trace, in the frame of the reference cell, a thread a component of a cell.
// needs: NI NT NC NPOINTS
//
// Arrays
//   x_e   [NI + NT, NC, stride]  coefficients of u, then of û
//   jump  [NI + NT, NPOINTS]     u - û at the points of all facets;  weights [NPOINTS];  mean [NI] of u
//   out   [2, NC, stride]        ∮ (u - û)² and ∮ û² + ū², with the mean ū of u in the cell

__kernel void hdg_jumps(int num_cells, int stride, __global const real *jump, __global const real *weights,
                        __global const real *mean, __global const real *x_e, __global real *out)
{
  const int cell = get_global_id(0) % num_cells, c = get_global_id(0) / num_cells;
  if (c >= NC) return;
  real apart = 0, size = 0, average = 0;
  for (int i = 0; i < NI; ++i) average += mean[i] * x_e[(i * NC + c) * (size_t)stride + cell];
  for (int p = 0; p < NPOINTS; ++p) {
    real inside = 0, trace = 0;
    for (int j = 0; j < NI; ++j) inside += jump[j * NPOINTS + p] * x_e[(j * NC + c) * (size_t)stride + cell];
    for (int j = NI; j < NI + NT; ++j) trace -= jump[j * NPOINTS + p] * x_e[(j * NC + c) * (size_t)stride + cell];
    apart += weights[p] * (inside - trace) * (inside - trace);
    size += weights[p] * (trace * trace + average * average);
  }
  out[c * (size_t)stride + cell] = apart;
  out[(NC + c) * (size_t)stride + cell] = size;
}
