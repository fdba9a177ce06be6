// Cells solved for given right-hand sides r with the matrices [A C; B G] at given states, a group of threads a cell.
// TRANSPOSED: with their transposes. After condense_sum.clh.
// needs: ARGUMENTS NI NT NC NQ SIZE THREADS CELLS CHUNK SCRATCH TRANSPOSED
//
// Arrays (see condense_point.clh for the others), for cells first ... first + num_cells - 1 of this rank
//   scratch   [group, entry]  tiles, where they do not live in registers
//   given     [NE, stride]    r
//   residual  [NM, stride]    -B A^-1 r
//   solution  [NE, stride]    A^-1 r

KERNEL(THREADS * CELLS) void condense_given(ARGUMENTS)
{
  CONDENSE_TILE
  CONDENSE_STATE(s)
  CONDENSE_MATRIX(s)
  CONDENSE_NATURAL(true, s, blocks, ADD_POINTS)
  EACH_COLUMN(b) if (COLUMN(b) == SIZE) EACH_ROW(a) ENTRY(a, b) = ROW(a) < NE ? given[ROW(a) * stride + cell] : 0;
  TILE_ELIMINATE(NE);
  if (!active) return;
  EACH_COLUMN(b) if (COLUMN(b) == SIZE) EACH_ROW(a) {
    const int i = ROW(a);
    if (i < NE) solution[i * stride + cell] = ENTRY(a, b);
    else if (i < SIZE) residual[(i - NE) * stride + cell] = ENTRY(a, b);
  }
}
