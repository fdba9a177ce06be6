// Element vectors of a batch of cells at given interiors, rates and traces, a group of threads a cell: the residual of the
// whole system, of which condense.cl eliminates the interior. After condense_sum.clh.
// needs: ARGUMENTS NI NT NC THREADS CELLS CHUNK NATURAL JUMPS
//
// Arrays (see condense_point.clh for the others), for cells first ... first + num_cells - 1 of this rank
//   scratch   [group, entry]  blocks of points, where they do not live in local memory
//   residual  [NM, stride]  tested by the functions of the trace
//   inner     [NE, stride]  tested by those of the interior
//   status    [stride]      least tau; -1 where it is not positive

KERNEL(THREADS * CELLS) void condense_residual(ARGUMENTS)
{
  CONDENSE_CELL
  __local real s[ND], sums[ND];
  TILE_BLOCKS
  BLOCK_SPACE real *blocks = all_blocks;
  CONDENSE_STATE(s)
  real least = REAL_HUGE;
  RESIDUAL(s)
  JOIN_LEAST
  if (active) {
    if (lane == 0) status[cell] = least > 0 ? least : -1;
    for (int k = lane; k < NE; k += THREADS) inner[k * stride + cell] = sums[k];
    for (int k = lane; k < NM; k += THREADS) residual[k * stride + cell] = sums[NE + k];
  }
}
