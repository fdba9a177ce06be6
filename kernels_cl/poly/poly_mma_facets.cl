// Facet terms of polytopic matrices as in poly_matrix_facets.cl, by products of warps: columns of own functions, then of
// those of the neighbour. Points of several interfaces are done together; each interface begins with a new eight.
// After poly_facet_point.clh and poly_mma.clh.
// needs: ARGUMENTS DIM NC NQF NFACETS STATE DEGREE ROWS BLOCKS ROW_TILES COLUMN_TILES WARPS POINTS SLOTS GROUP UNROLL
// needs: TRIAL_GRADIENT
//
// Arrays
//   items      entries of an item are interfaces;  interfaces, facets as in poly_matrix_facets.cl
//   steps      [step, 4] of eight points of an interface: its first facet, the first of the points, how many points the
//              interface has, polytope behind or -1;  step_first [interface + 1]

#define OWN_FLUX (2 * LINES)   // rows of local memory: lines of both sides, fluxes of both sides, adjoint
#define FAR_FLUX (OWN_FLUX + DERIVATIVES)
#define ADJOINT (FAR_FLUX + DERIVATIVES)

// What functions of column j bring to products, `column` [SLOTS], and the products with pairs of blocks of rows.
#define FACET_COLUMN(j, column)                                                                          \
  {                                                                                                      \
    const int far_side_ = first_tile + (j) >= BLOCKS;                                                    \
    __local const real2 *flux_ = at_pair + (far_side_ ? FAR_FLUX : OWN_FLUX) * PAIRS;                    \
    poly_two(at_pair + (far_side_ ? LINES * PAIRS : 0), columns + (j) * DIM, value);                     \
    UNROLL for (int k_ = 0; k_ < SLOTS; ++k_) {                                                          \
      column[k_] = 0;                                                                                    \
      if (STATE || k_ == 0)                                                                              \
        UNROLL for (int l_ = 0; l_ < (TRIAL_GRADIENT ? 1 + DIM : 1); ++l_)                               \
          column[k_] += flux_[(k_ * (1 + DIM) + l_) * PAIRS] * value[l_];                                \
      else column[k_] = far_side_ ? -value[0] : value[0];                                                \
      POLY_MMA(sum, j, row + k_, SLOTS, column[k_])                                                      \
    }                                                                                                    \
  }

KERNEL(GROUP) void poly_facets(ARGUMENTS)
{
  __local real2 store[(ADJOINT + DIM) * PAIRS];
  MMA_SCRATCH
  POLY_WARP
  const int end = step_first[mine[2]];
  int rows[BLOCKS * DIM], columns[COLUMN_TILES * DIM], interface = mine[1];
  real sum[SUMS];
  UNROLL for (int i = 0; i < BLOCKS; ++i) poly_places(8 * i + g_row, rows + i * DIM);
  UNROLL for (int j = 0; j < COLUMN_TILES; ++j) poly_places(8 * ((first_tile + j) % BLOCKS) + g_row, columns + j * DIM);
  UNROLL for (int k = 0; k < SUMS; ++k) sum[k] = 0;

  for (int from = step_first[interface]; from < end; from += POINTS / 8) {
    for (int p = (int)get_local_id(0); p < POINTS; p += GROUP) {
      const int4 here = steps[min(from + p / 8, end - 1)];
      const int at = here.y + p % 8;
      real flux[DERIVATIVES], flux_far[DERIVATIVES], adjoint[DIM], at_point[DIM];
      int far = polytope;
      UNROLL for (int k = 0; k < DERIVATIVES; ++k) flux[k] = flux_far[k] = 0;
      for (int d = 0; d < DIM; ++d) adjoint[d] = 0;
      for (int d = 0; d < DIM; ++d) at_point[d] = boxes[polytope * 2 * DIM + d];
      if (from + p / 8 < end && at < here.z) {
        const int number = facets[here.x + at / NQF], q = at % NQF;
        POLY_FACET_POINT
        if (here.w >= 0) far = here.w;
      }
      __local real *mine_at = (__local real *)store + p;
      poly_lay(boxes + polytope * 2 * DIM, at_point, mine_at);
      poly_lay(boxes + far * 2 * DIM, at_point, mine_at + LINES * 2 * PAIRS);
      UNROLL for (int k = 0; k < DERIVATIVES; ++k) {
        mine_at[(OWN_FLUX + k) * 2 * PAIRS] = flux[k];
        mine_at[(FAR_FLUX + k) * 2 * PAIRS] = flux_far[k];
      }
      for (int d = 0; d < DIM; ++d) mine_at[(ADJOINT + d) * 2 * PAIRS] = adjoint[d];
    }
    BARRIER_LOCAL();
    const int count = min(POINTS / 8, end - from);
    for (int step = 0; step < count; ++step) {
      __local const real2 *at_pair = store + 4 * step + pair;
      real2 row[BLOCKS * SLOTS], value[1 + DIM];
      UNROLL for (int i = 0; i < BLOCKS; ++i) {
        poly_two(at_pair, rows + i * DIM, value);
#if STATE
        UNROLL for (int k = 0; k < SLOTS; ++k) row[i * SLOTS + k] = value[k];
#else
        row[i * SLOTS] = value[0];
#if SLOTS > 1
        row[i * SLOTS + 1] = 0;
        for (int d = 0; d < DIM; ++d) row[i * SLOTS + 1] += at_pair[(ADJOINT + d) * PAIRS] * value[1 + d];
#endif
#endif
      }
      real2 one[SLOTS], two[SLOTS];
      UNROLL for (int j = 0; j + 1 < COLUMN_TILES; j += 2) {
        FACET_COLUMN(j, one)
        FACET_COLUMN(j + 1, two)
        UNROLL for (int k = 0; k < SLOTS; ++k) {
          POLY_MMA_LAST(sum, j, row[(BLOCKS - 1) * SLOTS + k], one[k], two[k])
        }
      }
#if COLUMN_TILES % 2
      FACET_COLUMN(COLUMN_TILES - 1, one)
      UNROLL for (int k = 0; k < SLOTS; ++k) {
        POLY_MMA_LAST(sum, COLUMN_TILES - 1, row[(BLOCKS - 1) * SLOTS + k], one[k], (real2)(0))
      }
#endif
      const int4 now = steps[from + step];
      if (now.y + 8 >= now.z) {
        __global const int *here = interfaces + (size_t)ITEM * interface;
        const int wanted = here[0] >= 0 && here[3] >= 0, far = wanted ? here[0] : polytope;
        __global real *block = out + here[3] + (size_t)test * size * here[4] + trial * sizes[far];
        UNROLL for (int j = 0; j < COLUMN_TILES; ++j)
          if (first_tile + j >= BLOCKS) {
            if (wanted)
              poly_write_column(sum, j, 8 * (first_tile + j - BLOCKS), lane, size, sizes[far], here[4], 0, block);
            UNROLL for (int e = 0; e < 4 * ROW_TILES; ++e) sum[4 * ROW_TILES * j + e] = 0;
            UNROLL for (int e = 0; e < 2 * ODD; ++e) sum[LAST + 2 * j + e] = 0;
          }
        ++interface;
      }
    }
    BARRIER_LOCAL();
  }
  __global real *block = out + mine[3] + (size_t)test * size * mine[4] + trial * size;
  UNROLL for (int j = 0; j < COLUMN_TILES; ++j)
    if (first_tile + j < BLOCKS)
      poly_write_column(sum, j, 8 * (first_tile + j), lane, size, size, mine[4], add, block);
}
