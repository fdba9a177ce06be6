// The product of a vector by the matrix of polytopes, without the matrix: all points of the base cells and facets of a
// polytope. At each the direction by the polytope's functions, fluxes, and their products with all functions.
// After poly_volume_state.clh, sipg_facet.clh, poly_nested.clh and poly_sum.clh.
// needs: ARGUMENTS DIM NC NQ NQF NFACETS ROWS LANES CHUNK GROUP UNROLL TEST_VALUE TEST_GRADIENT
//
// Sizes
//   TEST_VALUE, TEST_GRADIENT  whether volume terms are tested with functions, with their gradients
// Arrays
//   items   [item, 5]  polytope, first and last base cell, first and last facet;  cells, facets as in poly_matrix_*.cl
//   of_cell [stride]   polytope of a base cell
//   begin   [polytope + 1]  place of its first unknown: component by component; from n_unknowns on in the tail
//   direction, direction_tail, out  vectors of the polytopes' unknowns

// Direction at a point, from the polynomials there and COEFFICIENT(component, function).
#define POLY_DIRECTION(COEFFICIENT, line, slope, direction)                                              \
  for (int c_ = 0; c_ < NC; ++c_) {                                                                      \
    real value_[1 + DIM];                                                                                \
    POLY_VALUES(COEFFICIENT, c_, line, slope, value_);                                                   \
    (direction).u[c_] = value_[0];                                                                       \
    (direction).u_t[c_] = shift * value_[0];                                                             \
    for (int d_ = 0; d_ < DIM; ++d_) (direction).u_x[c_ * DIM + d_] = value_[1 + d_];                     \
  }
#define OWN(c, b) own[(c) * ROWS + (b)]
#define FAR(c, b) ((b) < far_size ? far_du[(c) * far_size + (b)] : 0)

KERNEL(GROUP) void poly_action(ARGUMENTS)
{
  __local real share[CHUNK * (GROUP + 1)], held[GROUP / LANES * NC * ROWS];
  POLY_LANE
  __global const int *mine = items + (size_t)5 * (item < num_items ? item : 0);
  const int polytope = mine[0], first = mine[1], first_facet = mine[3];
  const int size = (begin[polytope + 1] - begin[polytope]) / NC;
  const int points = item < num_items ? (mine[2] - first) * NQ : 0;
  const int facet_points = item < num_items ? (mine[4] - first_facet) * NQF : 0;
  __global const real *box = boxes + polytope * 2 * DIM;
  __local real *own = held + team * NC * ROWS;
  real sum[ROWS], line[DIM * LEVELS], slope[DIM * LEVELS];
  UNROLL for (int b = 0; b < ROWS; ++b) sum[b] = 0;
  for (int k = lane; k < NC * ROWS; k += LANES)
    own[k] = k % ROWS < size ? direction[begin[polytope] + k / ROWS * size + k % ROWS] : 0;
  BARRIER_LOCAL();

  for (int at = lane; at < points; at += LANES) {
    const int cell = cells[first + at / NQ], q = at % NQ;
    POLY_VOLUME_STATE
    SideDirection du;
    real f0[NC], f1[NC * DIM], flux[1 + DIM];
    poly_line_slope(box, x, line, slope);
    POLY_DIRECTION(OWN, line, slope, du)
    pw_jacobian(u, u_t, u_x, du.u, du.u_t, du.u_x, a, a_x, t, shift, x, constants, f0, f1);
    flux[0] = TEST_VALUE ? weight * f0[test] : 0;
    for (int d = 0; d < DIM; ++d) flux[1 + d] = TEST_GRADIENT ? weight * f1[test * DIM + d] : 0;
    poly_products(line, slope, flux, sum);
  }

  for (int at = lane; at < facet_points; at += LANES) {
    const int number = facets[first_facet + at / NQF], q = at % NQF, cell = number / NFACETS, f = number % NFACETS;
    SIPG_CELL
    SIPG_BEHIND
    SIPG_PLACE
    POLY_SIDES
    SideDirection d_own, d_other;
    real f0[NC], f1[NC * DIM], flux[1 + DIM];
    if (behind >= 0) {
      const int far = of_cell[behind], place_far = begin[far], far_size = (begin[far + 1] - place_far) / NC;
      __global const real *far_du = place_far < n_unknowns ? direction + place_far : direction_tail + place_far - n_unknowns;
      poly_line_slope(boxes + far * 2 * DIM, x, line, slope);
      POLY_DIRECTION(FAR, line, slope, d_other)
    }
    poly_line_slope(box, x, line, slope);
    POLY_DIRECTION(OWN, line, slope, d_own)
    SIPG_FLUX(1, &d_own, &d_other, f0, f1)
    flux[0] = weight * f0[test];
    for (int d = 0; d < DIM; ++d) flux[1 + d] = weight * f1[test * DIM + d];
    poly_products(line, slope, flux, sum);
  }
  const int count = item < num_items ? size : 0;
  __global real *result = out + begin[polytope] + test * size;
  POLY_SUM_UP(sum, count, result)
}
