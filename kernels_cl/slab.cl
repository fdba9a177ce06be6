// Space-time functions at one time, and the transpose: dG in time over any space (Dong, Georgoulis and Kappas 2021, eq. 9).
//
// Sizes
//   count  spatial unknowns;  size  functions of a local step, q + 1;  columns  functions of a slab at most
// Arrays
//   start  [count]               place of the first temporal function of a spatial unknown
//   kind   [count]               which local steps it has;  most [count] its highest degree in time
//   steps  [kind]                local steps in the slab
//   table  [row, kind, columns]  temporal functions, or jumps or rates of them, at some time: step by step, degree in each
//   x, out of slab_sums [space-time unknown];  u, f [count]
// needs: none

__kernel void slab_values(int count, int row, int kinds, int size, int columns, __global const int *start,
                          __global const int *kind, __global const int *most, __global const int *steps,
                          __global const real *table, __global const real *x, real scale, real keep, __global real *u)
{
  const int i = (int)get_global_id(0);
  if (i >= count) return;
  const int line = (row * kinds + kind[i]) * columns, width = most[i] + 1, parts = steps[kind[i]];
  real sum = 0;
  for (int part = 0; part < parts; ++part)
    for (int k = 0; k < width; ++k) sum += table[line + part * size + k] * x[start[i] + part * width + k];
  u[i] = keep == 0 ? scale * sum : keep * u[i] + scale * sum;
}

__kernel void slab_sums(int count, int row, int kinds, int size, int columns, __global const int *start,
                        __global const int *kind, __global const int *most, __global const int *steps,
                        __global const real *table, __global const real *f, real scale, __global real *out)
{
  const int i = (int)get_global_id(0);
  if (i >= count) return;
  const int line = (row * kinds + kind[i]) * columns, width = most[i] + 1, parts = steps[kind[i]];
  const real value = scale * f[i];
  for (int part = 0; part < parts; ++part)
    for (int k = 0; k < width; ++k) out[start[i] + part * width + k] += table[line + part * size + k] * value;
}
