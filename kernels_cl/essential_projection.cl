// Essential (Dirichlet) values of a trace: the L2 projection of g onto each facet, in the facet's frame, a thread a value.
// needs: DIM NCOMP NCONST NA NQF PROJECTION
//
// Arrays
//   condition, component, node, row [num] of each constrained degree of freedom
//   x_        [row, NQF, DIM] quadrature points of facets
//   a_        [row, NQF, NA] auxiliary values there; NA is 0 where no condition reads them
//   tail      its values are written from `first` on
// Tables
//   PROJECTION [node, NQF]

__kernel void essential_projections(int num, int first, real t, __global const real *constants_,
                                    __global const int *condition, __global const int *component,
                                    __global const int *node, __global const int *row, __global const real *x_,
                                    __global const real *a_, __global real *tail)
{
  const int k = get_global_id(0);
  if (k >= num) return;
  real constants[NCONST > 0 ? NCONST : 1], x[DIM], a[NA > 0 ? NA : 1], g[NCOMP], sum = 0;
  for (int i = 0; i < NCONST; ++i) constants[i] = constants_[i];
  for (int q = 0; q < NQF; ++q) {
    for (int d = 0; d < DIM; ++d) x[d] = x_[(row[k] * NQF + q) * DIM + d];
    for (int i = 0; i < NA; ++i) a[i] = a_[(row[k] * NQF + q) * NA + i];
    for (int c = 0; c < NCOMP; ++c) g[c] = 0;
    pw_dirichlet(condition[k], a, t, x, constants, g);
    sum += PROJECTION[node[k] * NQF + q] * g[component[k]];
  }
  tail[first + k] = sum;
}
