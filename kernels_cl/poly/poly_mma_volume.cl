// Volume terms of polytopic matrices as in poly_matrix_volume.cl, by products of warps.
//
// 1. a work-item a point: derivatives of f0, f1 by unit directions, polynomials of the polytope   2. eight points at a time:
// functions and products, in registers   3. each value written once.
// After poly_volume_point.clh and poly_mma.clh.
// needs: ARGUMENTS DIM NC NQ DEGREE ROWS BLOCKS ROW_TILES COLUMN_TILES WARPS POINTS SLOTS GROUP UNROLL TEST_VALUE TRIAL_VALUE
// needs: TRIAL_GRADIENT
//
// Arrays
//   cells   base cells of all items, see `items` in poly_items.clh;  the others as in cg_point.clh

#define FLUXES (SLOTS * (1 + DIM))

KERNEL(GROUP) void poly_volume(ARGUMENTS)
{
  __local real2 store[(LINES + FLUXES) * PAIRS];
  MMA_SCRATCH
  POLY_WARP
  const int first = mine[1], points = (mine[2] - first) * NQ;
  int rows[BLOCKS * DIM], columns[COLUMN_TILES * DIM];
  real sum[SUMS];
  UNROLL for (int i = 0; i < BLOCKS; ++i) poly_places(8 * i + g_row, rows + i * DIM);
  UNROLL for (int j = 0; j < COLUMN_TILES; ++j) poly_places(8 * (first_tile + j) + g_row, columns + j * DIM);
  UNROLL for (int k = 0; k < SUMS; ++k) sum[k] = 0;

  for (int from = 0; from < points; from += POINTS) {
    for (int p = (int)get_local_id(0); p < POINTS; p += GROUP) {
      const int at = from + p;
      real flux[FLUXES], place[DIM];
      UNROLL for (int k = 0; k < FLUXES; ++k) flux[k] = 0;
      for (int d = 0; d < DIM; ++d) place[d] = boxes[polytope * 2 * DIM + d];
      if (at < points) {
        const int cell = cells[first + at / NQ], q = at % NQ;
        POLY_VOLUME_POINT
      }
      __local real *mine_at = (__local real *)store + p;
      poly_lay(boxes + polytope * 2 * DIM, place, mine_at);
      UNROLL for (int k = 0; k < FLUXES; ++k) mine_at[(LINES + k) * 2 * PAIRS] = flux[k];
    }
    BARRIER_LOCAL();
    const int steps = (min(POINTS, points - from) + 7) / 8;
    for (int step = 0; step < steps; ++step) {
      __local const real2 *lines = store + 4 * step + pair, *flux = lines + LINES * PAIRS;
      real2 value[BLOCKS * (1 + DIM)];
      UNROLL for (int i = 0; i < BLOCKS; ++i) poly_two(lines, rows + i * DIM, value + i * (1 + DIM));
#if WARPS == 1
      const real2 *other = value;
#else
      real2 other[COLUMN_TILES * (1 + DIM)];
      UNROLL for (int j = 0; j < COLUMN_TILES; ++j) poly_two(lines, columns + j * DIM, other + j * (1 + DIM));
#endif
      UNROLL for (int k = 0; k < SLOTS; ++k) {
        const real2 *rows_of = value + 1 - TEST_VALUE + k;
        real2 column[COLUMN_TILES + 1];
        UNROLL for (int j = 0; j <= COLUMN_TILES; ++j) column[j] = 0;
        UNROLL for (int l = TRIAL_VALUE ? 0 : 1; l < (TRIAL_GRADIENT ? 1 + DIM : 1); ++l)
          if (POLY_DEPENDS(k, l))
            UNROLL for (int j = 0; j < COLUMN_TILES; ++j)
              column[j] += flux[(k * (1 + DIM) + l) * PAIRS] * other[j * (1 + DIM) + l];
        UNROLL for (int j = 0; j < COLUMN_TILES; ++j) {
          POLY_MMA(sum, j, rows_of, 1 + DIM, column[j])
        }
        UNROLL for (int j = 0; j < COLUMN_TILES; j += 2) {
          POLY_MMA_LAST(sum, j, rows_of[(BLOCKS - 1) * (1 + DIM)], column[j], column[j + 1])
        }
      }
    }
    BARRIER_LOCAL();
  }
  __global real *block = out + mine[3] + (size_t)test * size * mine[4] + trial * size;
  UNROLL for (int j = 0; j < COLUMN_TILES; ++j)
    poly_write_column(sum, j, 8 * (first_tile + j), lane, size, size, mine[4], add, block);
}
