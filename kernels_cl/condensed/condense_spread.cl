// Matrices of a tile of cells that share those of their shapes, as if each had its own.
// needs: NM
//
// Arrays
//   shape     [cell]                     number of each cell's shape
//   kept      [NM column, num_shapes, NM row] K of each shape
//   schur     [NM column, batch, NM row] K of cells first ... first + count - 1

__kernel void condense_spread(int count, int first, int batch, int num_shapes, __global const int *shape,
                              __global const real *kept, __global real *schur)
{
  const int t = get_global_id(0), row = t % NM, item = t / NM;
  if (item >= count) return;
  __global const real *own = kept + (size_t)shape[first + item] * NM + row;
  for (int k = 0; k < NM; ++k) schur[((size_t)k * batch + item) * NM + row] = own[(size_t)k * num_shapes * NM];
}
