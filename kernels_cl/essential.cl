// Essential (Dirichlet) values, or their rates in time, at the constrained degrees of freedom, one thread each.
// needs: DIM NCOMP NCONST NA
//
// Arrays
//   condition [num], component [num], x [num, DIM], a [num, NA] of each constrained degree of freedom; NA is 0 where
//             no condition reads auxiliary fields
//   tail      its values are written from `first` on

#define ESSENTIAL_ARGUMENTS                                                                                        \
  int num, int first, real t, __global const real *constants_, __global const int *condition,                     \
  __global const int *component, __global const real *x_, __global const real *a_, __global real *tail

// Declares constants, coordinates and auxiliary values of thread k.
#define ESSENTIAL_LOAD                                                                                             \
  const int k = get_global_id(0);                                                                                  \
  if (k >= num) return;                                                                                            \
  real constants[NCONST > 0 ? NCONST : 1], x[DIM], a[NA > 0 ? NA : 1];                                         \
  for (int i = 0; i < NCONST; ++i) constants[i] = constants_[i];                                                   \
  for (int d = 0; d < DIM; ++d) x[d] = x_[k * DIM + d];                                                            \
  for (int i = 0; i < NA; ++i) a[i] = a_[k * NA + i];

// One component of g.
static inline real essential_value(int condition, int component, const real *a, real t, const real *x,
                                   const real *constants)
{
  real g[NCOMP];
  for (int c = 0; c < NCOMP; ++c) g[c] = 0;
  pw_dirichlet(condition, a, t, x, constants, g);
  return g[component];
}

__kernel void essential_values(ESSENTIAL_ARGUMENTS)
{
  ESSENTIAL_LOAD
  tail[first + k] = essential_value(condition[k], component[k], a, t, x, constants);
}

// Central differences of fourth order: with steps of the fifth root of the round-off, truncation and round-off are alike.
__kernel void essential_rates(ESSENTIAL_ARGUMENTS)
{
  ESSENTIAL_LOAD
  const real h = (sizeof(real) == 8 ? (real)1e-3 : (real)4e-2) * (1 + fabs(t));
  real rate = 0;
  for (int side = -1; side <= 1; side += 2) {
    const real near = essential_value(condition[k], component[k], a, t + side * h, x, constants);
    const real far = essential_value(condition[k], component[k], a, t + side * 2 * h, x, constants);
    rate += side * (8 * near - far);
  }
  tail[first + k] = rate / (12 * h);
}
