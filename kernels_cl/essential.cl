// Essential (Dirichlet) values at the constrained degrees of freedom, one thread each.
// needs: DIM NCOMP NCONST
//
// Arrays
//   condition [num], component [num], x [num, DIM] of each constrained degree of freedom
//   tail      its values are written from `first` on

__kernel void essential_values(int num, int first, real t, __global const real *constants_, __global const int *condition,
                               __global const int *component, __global const real *x_, __global real *tail)
{
  const int k = get_global_id(0);
  if (k >= num) return;
  real constants[NCONST > 0 ? NCONST : 1], x[DIM], g[NCOMP];
  for (int i = 0; i < NCONST; ++i) constants[i] = constants_[i];
  for (int d = 0; d < DIM; ++d) x[d] = x_[k * DIM + d];
  for (int c = 0; c < NCOMP; ++c) g[c] = 0;
  pw_dirichlet(condition[k], t, x, constants, g);
  tail[first + k] = g[component[k]];
}
