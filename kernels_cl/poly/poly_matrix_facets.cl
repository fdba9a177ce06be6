// Facet terms of polytopic matrices, polytope by polytope: its facets go interface by interface (all facets with the same
// neighbour). Products with own trial functions add to the diagonal block after the last interface; those with a
// neighbour's are written after its interface.
// After poly_facet_point.clh and poly_matrix.clh.
// needs: ARGUMENTS DIM NC NQF NFACETS STATE DEGREE ROWS PANEL TEAMS SPLIT POINTS SLOTS GROUP UNROLL TRIAL_GRADIENT
//
// Arrays
//   items      entries of an item are interfaces
//   interfaces [interface, 5]  polytope behind or -1, first and last facet, where the block begins (-1: it is not wanted), length
//              of its rows;  facets [facet] cell * NFACETS + facet of the cell

// What a trial function with `value` [1 + DIM] brings to a column of products; turn: sign of its jump.
#if STATE
#define FACET_COLUMN(column, derivative, turn)                                                             \
  for (int k = 0; k < SLOTS; ++k) {                                                                        \
    real product = 0;                                                                                      \
    for (int l = 0; l < (TRIAL_GRADIENT ? 1 + DIM : 1); ++l) product += derivative[k * (1 + DIM) + l] * value[l]; \
    column[b * PITCH + k * POINTS] = product;                                                              \
  }
#else
#define FACET_COLUMN(column, derivative, turn)                                                             \
  {                                                                                                        \
    real product = derivative[0] * value[0];                                                               \
    for (int l = 1; l < (TRIAL_GRADIENT ? 1 + DIM : 1); ++l) product += derivative[l] * value[l];          \
    column[b * PITCH] = product;                                                                           \
    if (SLOTS > 1) column[b * PITCH + POINTS] = turn * value[0];                                           \
  }
#endif

KERNEL(GROUP) void poly_facets(ARGUMENTS)
{
  __local real left[TEAMS * ROW_AREA], right[TEAMS * COLUMN_AREA], across[TEAMS * COLUMN_AREA];
  POLY_TEAM
  const int last = item < num_items ? mine[2] : mine[1], laps = turns[bundle];
  int interface = mine[1], done = 0;
  real sum[SUMS], coupling[SUMS];
  for (int k = 0; k < SUMS; ++k) sum[k] = coupling[k] = 0;

  for (int lap = 0; lap < laps; ++lap) {
    __global const int *here = interfaces + (size_t)ITEM * (interface < last ? interface : 0);
    const int first = here[1], points = interface < last ? (here[2] - first) * NQF : 0;
    const int far = here[0] < 0 ? polytope : here[0];
    for (int p = thread; p < POINTS; p += THREADS) {
      const int at = done + p;
      real flux[DERIVATIVES], flux_far[DERIVATIVES], adjoint[DIM];
      real line[DIM * (DEGREE + 1)], slope[DIM * (DEGREE + 1)], at_point[DIM];
      for (int k = 0; k < DERIVATIVES; ++k) flux[k] = flux_far[k] = 0;
      for (int d = 0; d < DIM; ++d) adjoint[d] = 0;
      for (int d = 0; d < DIM; ++d) at_point[d] = boxes[polytope * 2 * DIM + d];
      if (at < points) {
        const int number = facets[first + at / NQF], q = at % NQF;
        POLY_FACET_POINT
      }
      __local real *rows = left + team * ROW_AREA + p, *columns = right + team * COLUMN_AREA + p;
      __local real *beyond = across + team * COLUMN_AREA + p;
      poly_line_slope(boxes + polytope * 2 * DIM, at_point, line, slope);
      UNROLL for (int b = 0; b < PANEL; ++b) {
        real value[1 + DIM];
        if (first_row + b < ROWS) {
          poly_function(line, slope, first_row + b, value);
#if STATE
          for (int k = 0; k < SLOTS; ++k) rows[b * PITCH + k * POINTS] = value[k];
#else
          rows[b * PITCH] = value[0];
#if SLOTS > 1
          real product = 0;
          for (int d = 0; d < DIM; ++d) product += adjoint[d] * value[1 + d];
          rows[b * PITCH + POINTS] = product;
#endif
#endif
        }
        if (first_column + b < ROWS) {
          poly_function(line, slope, first_column + b, value);
          FACET_COLUMN(columns, flux, 1)
        }
      }
      poly_line_slope(boxes + far * 2 * DIM, at_point, line, slope);
      UNROLL for (int b = 0; b < PANEL; ++b)
        if (first_column + b < ROWS) {
          real value[1 + DIM];
          poly_function(line, slope, first_column + b, value);
          FACET_COLUMN(beyond, flux_far, -1)
        }
    }
    BARRIER_LOCAL();
    poly_multiply(left + team * ROW_AREA, right + team * COLUMN_AREA, tile_row, tile_column, sum);
    poly_multiply(left + team * ROW_AREA, across + team * COLUMN_AREA, tile_row, tile_column, coupling);
    done += POINTS;
    if (interface < last && done >= points) {
      if (here[0] >= 0 && here[3] >= 0)
        poly_write(coupling, first_row + tile_row, first_column + tile_column, min(size, first_row + PANEL),
                   min(sizes[far], first_column + PANEL), here[4], 0,
                   out + here[3] + (size_t)test * size * here[4] + trial * sizes[far]);
      for (int k = 0; k < SUMS; ++k) coupling[k] = 0;
      done = 0;
      ++interface;
    }
    BARRIER_LOCAL();
  }
  POLY_JOIN(sum)
  if (item < num_items && team % SPLIT == 0)
    poly_write(sum, first_row + tile_row, first_column + tile_column, min(size, first_row + PANEL),
               min(size, first_column + PANEL), mine[4], add,
               out + mine[3] + (size_t)test * size * mine[4] + trial * size);
}
