// Static condensation of a batch of cells, a group of threads a cell: sum the element matrix [A C; B G] and residual
// (r, s) over the points, then eliminate the interior.
// King et al. 2014, eq. 7 to 18: K = G - B A^-1 C, U = -A^-1 C, and the local solution and residual of the trace.
// needs: ARGUMENTS NI NT NC NQ SIZE THREADS CELLS CHUNK SCRATCH CONSTANT
// optional: TERMS JUMP_SQUARES
//
// CONSTANT: matrices from condense_constant.clh, the residual from the points
//
// Arrays (see condense_point.clh for the others), for cells first ... first + num_cells - 1 of this rank
//   scratch   [group, entry] tiles, where they do not live in registers
//   schur     [NM column, batch, NM row]  K of each cell, or none
//   recovery  [NM column, batch, NE row]  U of each cell, or none
//   residual  [NM, stride]                s - B A^-1 r
//   solution  [NE, stride]                interior - A^-1 r (the local solution, if the physics is linear)
//   status    [stride]                    least pivot; negative where tau is not positive

#if CONSTANT && JUMPS
#define SQUARES JUMP_SQUARES
#else
#define SQUARES 0
#endif

KERNEL(THREADS * CELLS) void condense(ARGUMENTS)
{
  CONDENSE_TILE
  CONDENSE_STATE(s)
#if CONSTANT
  CONDENSE_SUMS(s)
  CONDENSE_VOLUME(false, state, blocks, SUM_POINTS)
  if (some) {
    CONDENSE_JUMPS(false, state, blocks, least, SUM_JUMPS)
  }
  CONDENSE_CONSTANT(state, blocks, least)
  tile_constant(entry, row0, column0, TERMS, SQUARES, blocks, sums);
  TILE_BARRIER();
#else
  CONDENSE_MATRIX(s)
#endif
  CONDENSE_NATURAL(true, s, blocks, ADD_POINTS)
  const real pivot = TILE_ELIMINATE(NE);
  // Each thread tells its own least tau through local memory; all pivots are known to all.
  TILE_BARRIER();
  JOIN_LEAST
  if (!active) return;
  if (lane == 0) status[cell] = least > 0 ? pivot : -1;
  EACH_COLUMN(b) {
    const int j = COLUMN(b);
    const size_t place = (size_t)(j - NE) * batch + item;
    if (j < NE || j > SIZE) continue;
    if (j == SIZE) {
      EACH_ROW(a) if (ROW(a) < NE) solution[ROW(a) * stride + cell] = s[ROW(a)] - ENTRY(a, b);
      EACH_ROW(a) if (ROW(a) >= NE && ROW(a) < SIZE) residual[(ROW(a) - NE) * stride + cell] = ENTRY(a, b);
      continue;
    }
    if (recovery) EACH_ROW(a) if (ROW(a) < NE) recovery[place * NE + ROW(a)] = -ENTRY(a, b);
    if (schur) EACH_ROW(a) if (ROW(a) >= NE && ROW(a) < SIZE) schur[place * NM + ROW(a) - NE] = ENTRY(a, b);
  }
}
