// How far the element matrices of a tile are from symmetric ones.
// needs: MC ASYMMETRY_CELLS
//
// MC  unknowns of a cell                   ASYMMETRY_CELLS  cells, and threads, of a work-group
// K   [MC, tile_stride, MC]  matrices of `count` cells, rows fastest

// Of each work-group, the largest |K - Kᵀ| of a cell over its largest entry.
__kernel void trace_asymmetry(int count, int tile_stride, __global const real *K, __global real *largest)
{
  __local real found[ASYMMETRY_CELLS];
  const int cell = get_global_id(0), lane = get_local_id(0);
  real difference = 0, size = 0;
  if (cell < count) {
    for (int k = 0; k < MC; ++k)
      for (int i = 0; i <= k; ++i) {
        const real upper = K[((size_t)k * tile_stride + cell) * MC + i];
        const real lower = K[((size_t)i * tile_stride + cell) * MC + k];
        difference = fmax(difference, fabs(upper - lower));
        size = fmax(size, fmax(fabs(upper), fabs(lower)));
      }
  }
  found[lane] = size > 0 ? difference / size : 0;
  BARRIER_LOCAL();
  if (lane) return;
  real most = 0;
  for (int i = 0; i < ASYMMETRY_CELLS; ++i) most = fmax(most, found[i]);
  largest[get_group_id(0)] = most;
}
