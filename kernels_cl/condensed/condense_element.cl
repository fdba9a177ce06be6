// Matrices [A C; B G] of cells with nothing eliminated: of one cell of each shape. After condense_sum.clh.
// needs: ARGUMENTS NI NT NC NQ SIZE THREADS CELLS CHUNK SCRATCH
//
// Arrays (see condense_point.clh for the others)
//   matrices  [ND column, batch, ND row]  of cells first ... first + num_cells - 1
//   status    [stride]                    1, or -1 where tau is not positive

KERNEL(THREADS * CELLS) void condense_element(ARGUMENTS)
{
  CONDENSE_TILE
  for (int k = lane; k < ND; k += THREADS) s[k] = 0;
  TILE_BARRIER();
  CONDENSE_MATRIX(s)
  CONDENSE_NATURAL(true, s, blocks, ADD_POINTS)
  TILE_BARRIER();
  JOIN_LEAST
  if (!active) return;
  if (lane == 0) status[cell] = least > 0 ? 1 : -1;
  EACH_COLUMN(b) EACH_ROW(a) {
    const int i = ROW(a), j = COLUMN(b);
    if (i < SIZE && j < SIZE) matrices[((size_t)j * batch + item) * SIZE + i] = ENTRY(a, b);
  }
}
