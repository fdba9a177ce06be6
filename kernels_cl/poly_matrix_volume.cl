// Volume terms of polytopic matrices (Dong, Georgoulis and Kappas 2021, eq. 3): for each polytope the sum over quadrature
// points of its base cells of (test functions and gradients) x (derivative of f0, f1) x (trial functions and gradients).
//
// 1. a work-item a point: derivatives of f0, f1 by unit directions, functions of the polytope   2. products, in registers
// 3. each value written once.
// After poly_matrix.clh.
// needs: DIM NC NA NAUX NCONST NQ NNODES NDOF NBASIS TIME DEGREE ROWS PANEL TEAMS SPLIT POINTS SLOTS GROUP UNROLL
// needs: TEST_VALUE TRIAL_VALUE TRIAL_GRADIENT BASIS GRAD GEO GEO_GRAD WEIGHTS
//
// Sizes
//   TEST_VALUE     whether a function itself is tested with;  SLOTS 1 for it and DIM for gradients
//   TRIAL_VALUE, TRIAL_GRADIENT  whether f0, f1 depend on the solution, on its gradient
// Arrays
//   cells   base cells of all items, see `items` in poly_matrix.clh;  the others as in cg_point.clh

#define U_E(i) CG_U(cell, i)
#define UT_E(i) CG_UT(cell, i)

KERNEL(GROUP) void poly_volume(CG_ARGUMENTS, POLY_ARGUMENTS, __global const int *cells)
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
        TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;
        POINT_LOAD_CONSTANTS
        POINT_LOAD_AUX(cell)
        Geometry g;
        geometry_load(&g, nodes, cell_nodes, stored_geometry, stride, cell);
        geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
        CG_STATE(U_E, UT_E)
        const real weight = WEIGHTS[q] * g.measure;
        for (int d = 0; d < DIM; ++d) place[d] = x[d];
        UNROLL for (int l = TRIAL_VALUE ? 0 : 1; l < (TRIAL_GRADIENT ? 1 + DIM : 1); ++l) {
          real du[NC], du_t[NC], du_x[NC * DIM], f0[NC], f1[NC * DIM];
          for (int c = 0; c < NC; ++c) {
            du[c] = l == 0 && c == trial ? 1 : 0;
            du_t[c] = shift * du[c];
            for (int d = 0; d < DIM; ++d) du_x[c * DIM + d] = l == 1 + d && c == trial ? 1 : 0;
          }
          pw_jacobian(u, u_t, u_x, du, du_t, du_x, a, a_x, t, shift, x, constants, f0, f1);
#if TEST_VALUE
          flux[l] = weight * f0[test];
#endif
          for (int d = 0; d < SLOTS - TEST_VALUE; ++d) flux[(TEST_VALUE + d) * (1 + DIM) + l] = weight * f1[test * DIM + d];
        }
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
              product += flux[k * (1 + DIM) + l] * value[l];
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
