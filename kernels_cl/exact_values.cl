// The exact solution at given places, one thread each.
// needs: DIM NCOMP NCONST pw_exact
//
// Arrays
//   x [num, DIM] places   values [num, NCOMP]

__kernel void exact_values(int num, real t, __global const real *constants_, __global const real *x_,
                           __global real *values)
{
  const int k = get_global_id(0);
  if (k >= num) return;
  real constants[NCONST > 0 ? NCONST : 1], x[DIM], u[NCOMP], u_x[NCOMP * DIM];
  for (int i = 0; i < NCONST; ++i) constants[i] = constants_[i];
  for (int d = 0; d < DIM; ++d) x[d] = x_[k * DIM + d];
  pw_exact(t, x, constants, u, u_x);
  for (int c = 0; c < NCOMP; ++c) values[k * NCOMP + c] = u[c];
}
