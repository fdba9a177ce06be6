// Cells that share the solver of their interior: [A^-1; B A^-1] of a cell's shape is applied to its vector. After
// condense_sum.clh.
// needs: ARGUMENTS NI NT NC NQ THREADS CELLS CHUNK
//
// Arrays (see condense_point.clh for the others)
//   shape     [cell]                      number of each cell's shape
//   solver    [shape, NE column, ND row]  rows of A^-1, then those of B A^-1
//   residual, solution                    as in condense.cl

KERNEL(THREADS * CELLS) void condense_shared(ARGUMENTS)
{
  CONDENSE_CELL
  __local real states[CELLS * ND], all_blocks[CELLS * CHUNK * BLOCK];
  __local real *s = states + slot * ND, *blocks = all_blocks + slot * CHUNK * BLOCK;
  CONDENSE_STATE(s)
  CONDENSE_SUMS(s)
  CONDENSE_VOLUME(false, state, blocks, SUM_POINTS)
  if (some || SIDES) {
    real least = REAL_HUGE;
    CONDENSE_JUMPS(false, state, blocks, least, SUM_JUMPS)
  }
  CONDENSE_NATURAL(false, s, blocks, SUM_POINTS)
  TILE_BARRIER();
  if (!active) return;
  __global const real *own = solver + (size_t)shape[cell] * NE * ND;
  for (int i = lane; i < ND; i += THREADS) {
    real sum = i < NE ? s[i] : sums[i];
    for (int k = 0; k < NE; ++k) sum -= own[k * ND + i] * sums[k];
    if (i < NE) solution[i * stride + cell] = sum;
    else residual[(i - NE) * stride + cell] = sum;
  }
}
