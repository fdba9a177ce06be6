// Cells solved for given right-hand sides r by what `condense` with INVERT left in scratch memory, a group of threads a cell.
// TRANSPOSED: with the transposed matrices. After condense_sum.clh.
// needs: ARGUMENTS NI NT NC SIZE THREADS CHUNK TRANSPOSED
//
// Arrays (see condense_point.clh for the others), for cells first ... first + num_cells - 1 of this rank
//   scratch   [group, entry]  [A^-1, A^-1 C; -B A^-1, G - B A^-1 C] of each cell
//   given     [NE, stride]    r
//   residual  [NM, stride]    -B A^-1 r
//   solution  [NE, stride]    A^-1 r

KERNEL(THREADS * CELLS) void condense_kept(ARGUMENTS)
{
  const int lane = get_local_id(0), row0 = lane % ROW_THREADS, column0 = lane / ROW_THREADS, cell = first + get_group_id(0);
  __local real r[NE], sums[ND];
  TILE_BLOCKS
  TILE_ENTRIES
  for (int k = lane; k < NE; k += THREADS) r[k] = given[k * stride + cell];
  for (int i = lane; i < ND; i += THREADS) sums[i] = 0;
  TILE_BARRIER();
  if (TRANSPOSED)
    for (int i = lane; i < ND; i += THREADS)
      for (int k = 0; k < NE; ++k) sums[i] += (i < NE ? r[k] : -r[k]) * matrix[i * PADDED_ROWS + k];
  else
    for (int k = 0; k < NE; ++k)
      for (int i = lane; i < ND; i += THREADS) sums[i] += r[k] * matrix[k * PADDED_ROWS + i];
  for (int i = lane; i < ND; i += THREADS) {
    if (i < NE) solution[i * stride + cell] = sums[i];
    else residual[(i - NE) * stride + cell] = sums[i];
  }
}
