// A pointwise function of a solution at given points, one thread each.
// needs: DIM NCOMP NAUX NCONST NOBJ BOUNDARY pw_objective
//
// Arrays
//   rows [num, u | u_x | a | a_x | x | n]   values [num, NOBJ]

#define WIDTH ((NCOMP + NAUX) * (1 + DIM) + 2 * DIM)

__kernel void pointwise(int num, real t, __global const real *constants_, __global const real *rows,
                        __global real *values)
{
  const int k = get_global_id(0);
  if (k >= num) return;
  real constants[NCONST > 0 ? NCONST : 1], row[WIDTH], obj[NOBJ];
  for (int i = 0; i < NCONST; ++i) constants[i] = constants_[i];
  for (int i = 0; i < WIDTH; ++i) row[i] = rows[(size_t)k * WIDTH + i];
  const real *u = row, *u_x = u + NCOMP, *a = u_x + NCOMP * DIM, *a_x = a + NAUX, *x = a_x + NAUX * DIM;
#if BOUNDARY
  pw_objective(u, u_x, a, a_x, t, x, x + DIM, constants, obj);
#else
  pw_objective(u, u_x, a, a_x, t, x, constants, obj);
#endif
  for (int c = 0; c < NOBJ; ++c) values[(size_t)k * NOBJ + c] = obj[c];
}
