// Products of the matrices [A C; B G] of a batch of cells at given states, a group of threads a cell; no matrix is stored.
// TRANSPOSED: of their transposes. After condense_sum.clh.
// needs: ARGUMENTS NI NT NC THREADS CELLS CHUNK NATURAL JUMPS TRANSPOSED
//
// Arrays (see condense_point.clh for the others), for cells first ... first + num_cells - 1 of this rank
//   scratch    [group, entry]  blocks of points, where they do not live in local memory
//   w_interior [NE, stride], w_owned, w_tail  the vector, as the state has interior, trace_owned and trace_tail
//   residual   [NM, stride]  rows of the trace
//   inner      [NE, stride]  rows of the interior

// Add what a point gives the sums: its functions' values and gradients of the vector w, times its block.
#define ADD_PRODUCT(test, op, block)                                                              \
  for (int m = lane; m < NR; m += THREADS) {                                                      \
    real sum = 0;                                                                                 \
    for (int j = 0; j < NF; ++j) sum += (op)[m % NP * NF + j] * w[j * NC + m / NP];               \
    point[m] = sum;                                                                               \
  }                                                                                               \
  TILE_BARRIER();                                                                                 \
  for (int k = lane; k < NR; k += THREADS) {                                                      \
    real sum = 0;                                                                                 \
    for (int m = 0; m < NR; ++m) sum += (block)[k * BLOCK_PITCH + m] * point[m];                  \
    (block)[k * BLOCK_PITCH + NR] = sum;                                                          \
  }                                                                                               \
  TILE_BARRIER();                                                                                 \
  sum_point(sums, lane, test, block);

#if TRANSPOSED
#define PRODUCT_POINTS(test, op, blocks, count) \
  EACH_POINT(count) { ADD_PRODUCT((op) + p * NP * NF, (test) + p * NP * NF, (blocks) + p * BLOCK) }
#else
#define PRODUCT_POINTS(test, op, blocks, count) \
  EACH_POINT(count) { ADD_PRODUCT((test) + p * NP * NF, (op) + p * NP * NF, (blocks) + p * BLOCK) }
#endif

#if SIDES
// The same of a point of a facet.
#define PRODUCT_SIDE(side, block)                                                                            \
  {                                                                                                          \
    for (int m = lane; m < NC * SIDE_NUMBERS; m += THREADS) {                                                \
      real sum = 0;                                                                                          \
      for (int j = 0; j < NF; ++j) sum += SIDE_COLUMN(side, m % SIDE_NUMBERS, j) * w[j * NC + m / SIDE_NUMBERS]; \
      point[m] = sum;                                                                                        \
    }                                                                                                        \
    TILE_BARRIER();                                                                                          \
    for (int k = lane; k < NC * SIDE_ROWS; k += THREADS) {                                                   \
      real sum = 0;                                                                                          \
      for (int m = 0; m < NC * SIDE_NUMBERS; ++m) sum += (block)[SIDE_ENTRY(k, m)] * point[m];               \
      point[POINT + k] = sum;                                                                                \
    }                                                                                                        \
    TILE_BARRIER();                                                                                          \
    for (int i = lane; i < ND; i += THREADS)                                                                 \
      for (int r = 0; r < SIDE_ROWS; ++r)                                                                    \
        sums[i] += SIDE_ROW(side, r, i / NC) * point[POINT + i % NC * SIDE_ROWS + r];                        \
  }
#define PRODUCT_SIDES(q, blocks, count) EACH_POINT(count) PRODUCT_SIDE(FACET_TABLE((q) + p), (blocks) + p * BLOCK)
#define POINT SIDE_COLUMNS
#else
#define POINT NR
#endif

KERNEL(THREADS * CELLS) void condense_product(ARGUMENTS)
{
  CONDENSE_CELL
  __local real s[ND], w[ND], sums[ND], point[2 * POINT];
  TILE_BLOCKS
  BLOCK_SPACE real *blocks = all_blocks;
  for (int k = lane; k < ND; k += THREADS) {
    s[k] = condense_gather(interior, trace_owned, trace_tail, n_owned, dofs, stride, cell, k);
    w[k] = k < NE ? w_interior[k * stride + cell] : gather_dof(w_owned, w_tail, n_owned, dofs, stride, cell, k - NE);
    sums[k] = 0;
  }
  TILE_BARRIER();
  CONDENSE_VOLUME(true, s, blocks, PRODUCT_POINTS)
  CONDENSE_NATURAL(true, s, blocks, PRODUCT_POINTS)
  real least = REAL_HUGE;
#if SIDES
  CONDENSE_JUMPS(true, s, blocks, least, PRODUCT_SIDES)
#else
  CONDENSE_JUMPS(true, w, blocks, least, SUM_JUMPS)
#endif
  TILE_BARRIER();
  if (!active) return;
  for (int k = lane; k < NE; k += THREADS) inner[k * stride + cell] = sums[k];
  for (int k = lane; k < NM; k += THREADS) residual[k * stride + cell] = sums[NE + k];
}
