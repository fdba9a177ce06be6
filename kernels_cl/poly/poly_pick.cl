// Values of a matrix at given places: its diagonal.
// needs: none
//
// Arrays: places, out [value]

__kernel void poly_pick(int count, __global const int *places, __global const real *values, __global real *out)
{
  const int k = get_global_id(0);
  if (k < count) out[k] = values[places[k]];
}
