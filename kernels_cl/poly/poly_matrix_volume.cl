// Volume terms of polytopic matrices (Dong, Georgoulis and Kappas 2021, eq. 3): for each polytope the sum over quadrature
// points of its base cells of (test functions and gradients) x (derivative of f0, f1) x (trial functions and gradients).
//
// 1. a work-item a point: derivatives of f0, f1 by unit directions, functions of the polytope   2. products, in registers
// 3. each value written once.
// After poly_volume_point.clh and poly_matrix.clh.
// needs: ARGUMENTS DIM NC NQ DEGREE ROWS PANEL TEAMS SPLIT POINTS SLOTS GROUP UNROLL TEST_VALUE TRIAL_VALUE TRIAL_GRADIENT
//
// Arrays
//   cells   base cells of all items, see `items` in poly_items.clh;  the others as in cg_point.clh

KERNEL(GROUP) void poly_volume(ARGUMENTS)
{
  __local real left[TEAMS * ROW_AREA], right[TEAMS * COLUMN_AREA];
  POLY_TEAM
  const int first = mine[1], points = item < num_items ? (mine[2] - first) * NQ : 0, laps = turns[bundle];
  real sum[SUMS];
  for (int k = 0; k < SUMS; ++k) sum[k] = 0;

  for (int lap = 0; lap < laps; ++lap) {
    for (int p = thread; p < POINTS; p += THREADS) {
      const int at = lap * POINTS + p;
      real flux[SLOTS * (1 + DIM)], line[DIM * (DEGREE + 1)], slope[DIM * (DEGREE + 1)], place[DIM];
      for (int k = 0; k < SLOTS * (1 + DIM); ++k) flux[k] = 0;
      for (int d = 0; d < DIM; ++d) place[d] = boxes[polytope * 2 * DIM + d];
      if (at < points) {
        const int cell = cells[first + at / NQ], q = at % NQ;
        POLY_VOLUME_POINT
      }
      poly_line_slope(boxes + polytope * 2 * DIM, place, line, slope);
      __local real *here = left + team * ROW_AREA + p, *there = right + team * COLUMN_AREA + p;
      UNROLL for (int b = 0; b < PANEL; ++b) {
        real value[1 + DIM];
        if (first_row + b < ROWS) {
          poly_function(line, slope, first_row + b, value);
          for (int k = 0; k < SLOTS; ++k) here[b * PITCH + k * POINTS] = value[k + 1 - TEST_VALUE];
        }
        if (first_column + b < ROWS) {
          poly_function(line, slope, first_column + b, value);
          for (int k = 0; k < SLOTS; ++k) {
            real product = 0;
            for (int l = TRIAL_VALUE ? 0 : 1; l < (TRIAL_GRADIENT ? 1 + DIM : 1); ++l)
              if (POLY_DEPENDS(k, l)) product += flux[k * (1 + DIM) + l] * value[l];
            there[b * PITCH + k * POINTS] = product;
          }
        }
      }
    }
    BARRIER_LOCAL();
    poly_multiply(left + team * ROW_AREA, right + team * COLUMN_AREA, tile_row, tile_column, sum);
    BARRIER_LOCAL();
  }
  POLY_JOIN(sum)
  if (item < num_items && team % SPLIT == 0)
    poly_write(sum, first_row + tile_row, first_column + tile_column, min(size, first_row + PANEL),
               min(size, first_column + PANEL), mine[4], add,
               out + mine[3] + (size_t)test * size * mine[4] + trial * size);
}
