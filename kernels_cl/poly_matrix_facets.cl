// Facet terms of polytopic matrices, polytope by polytope: its facets go interface by interface (all facets with the same
// neighbour). Products with own trial functions add to the diagonal block after the last interface; those with a
// neighbour's are written after its interface. Fluxes as in sipg_flux.clh, by unit directions.
//
// Where physics is linear, what multiplies the gradients of test functions depends on the jump alone: their combination is
// formed first, and a point has two products instead of 1 + DIM.
// After sipg_facet.clh and poly_matrix.clh.
// needs: DIM NC NQF NFACETS STATE DEGREE ROWS PANEL TEAMS SPLIT POINTS SLOTS GROUP UNROLL TRIAL_GRADIENT
//
// Arrays
//   items      entries of an item are interfaces
//   interfaces [interface, 5]  polytope behind or -1, first and last facet, where the block begins (-1: it is not wanted), length
//              of its rows;  facets [facet] cell * NFACETS + facet of the cell

#if STATE
#define DERIVATIVES ((1 + DIM) * (1 + DIM))   // of (f0, f1) by (u, u_x)
#else
#define DERIVATIVES (1 + DIM)                 // of f0
#endif

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

KERNEL(GROUP) void poly_facets(CG_ARGUMENTS, __global const int *neighbour, __global const int *code,
                               __global const real *sigma_, __global const int *kinds, POLY_ARGUMENTS,
                               __global const int *interfaces, __global const int *facets)
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
        const int number = facets[first + at / NQF], cell = number / NFACETS, f = number % NFACETS, q = at % NQF;
        SIPG_CELL
        SIPG_BEHIND
        SIPG_POINT
        for (int d = 0; d < DIM; ++d) at_point[d] = x[d];
        UNROLL for (int l = 0; l < 2 * (1 + DIM); ++l) {
          const int other_side = l > DIM, k = l - other_side * (1 + DIM);
          if (k > (TRIAL_GRADIENT ? DIM : 0) || (other_side && behind < 0)) continue;
          SideDirection d_own, d_other;
          real f0[NC], f1[NC * DIM];
          for (int c = 0; c < NC; ++c) {
            d_own.u[c] = !other_side && k == 0 && c == trial ? 1 : 0;
            d_other.u[c] = other_side && k == 0 && c == trial ? 1 : 0;
            d_own.u_t[c] = shift * d_own.u[c];
            d_other.u_t[c] = shift * d_other.u[c];
            for (int d = 0; d < DIM; ++d) {
              d_own.u_x[c * DIM + d] = !other_side && k == 1 + d && c == trial ? 1 : 0;
              d_other.u_x[c * DIM + d] = other_side && k == 1 + d && c == trial ? 1 : 0;
            }
          }
          if (behind >= 0) sipg_flux_jacobian(&a_side, &b_side, &d_own, &d_other, sigma, n, t, shift, x, constants, f0, f1);
          else sipg_boundary_jacobian(kind, &a_side, &d_own, sigma, n, t, shift, x, constants, f0, f1);
          if (other_side) flux_far[k] = weight * f0[test];
          else flux[k] = weight * f0[test];
#if STATE
          for (int d = 0; d < DIM; ++d) {
            if (other_side) flux_far[(1 + d) * (1 + DIM) + k] = weight * f1[test * DIM + d];
            else flux[(1 + d) * (1 + DIM) + k] = weight * f1[test * DIM + d];
          }
#else
          if (l == 0)
            for (int d = 0; d < DIM; ++d) adjoint[d] = weight * f1[test * DIM + d];
#endif
        }
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
                   min(sizes[far], first_column + PANEL), here[4], ATOMIC ? add : 0,
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
