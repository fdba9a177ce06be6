// Static condensation of a batch of cells, a group of threads a cell: sum the element matrix [A C; B G] and residual
// (r, s) over the points, then eliminate the interior.
// King et al. 2014, eq. 7 to 18: K = G - B A^-1 C, U = -A^-1 C, and the local solution and residual of the trace.
// needs: NI NT NC NQ SIZE THREADS CELLS CHUNK SCRATCH CONSTANT
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
#define ADD_POINT(test, op, block) tile_add_point(entry, row0, column0, test, op, block)
#define ADD_JUMP(jump, block) tile_add_jump(entry, row0, column0, jump, block)
#define SUM_POINT(test, op, block) sum_point(sums, lane, test, block)
#define SUM_JUMP(jump, block) sum_jump(sums, lane, jump, block)

__kernel __attribute__((reqd_work_group_size(THREADS * CELLS, 1, 1)))
void condense(CONDENSE_ARGUMENTS, int batch, __global real *scratch, __global real *schur, __global real *recovery,
              __global real *residual, __global real *solution, __global real *status)
{
  CONDENSE_CELL
  __local real states[CELLS * ND], all_blocks[CELLS * CHUNK * BLOCK], rows[CELLS * 2 * PADDED_COLUMNS];
  __local real columns[CELLS * 2 * (PADDED_ROWS + 1)];
  __local real *s = states + slot * ND, *blocks = all_blocks + slot * CHUNK * BLOCK;
  for (int k = lane; k < ND; k += THREADS)
    s[k] = condense_gather(interior, trace_owned, trace_tail, n_owned, dofs, stride, cell, k);
  TILE_BARRIER();
  TILE_ENTRIES
  real least = REAL_HUGE;
#if CONSTANT
  __local real all_sums[CELLS * ND];
  __local real *sums = all_sums + slot * ND;
  __local int some;  // whether any cell of the group has a state that is not zero: few have, with linear physics
  if (get_local_id(0) == 0) some = 0;
  TILE_BARRIER();
  for (int i = lane; i < ND; i += THREADS) {
    sums[i] = 0;
    if (s[i] != 0) some = 1;
  }
  TILE_BARRIER();
  __local const real *state = some ? s : 0;
  CONDENSE_VOLUME(false, state, blocks, SUM_POINT)
#if JUMPS
  if (some) {
    CONDENSE_JUMPS(false, state, blocks, least, SUM_JUMP)
  }
#endif
  CONDENSE_CONSTANT(state, blocks, least)
  tile_constant(entry, row0, column0, TERMS, SQUARES, blocks, sums);
  TILE_BARRIER();
#else
  EACH_COLUMN(b) EACH_ROW(a) ENTRY(a, b) = 0;
  CONDENSE_VOLUME(true, s, blocks, ADD_POINT)
#if JUMPS
  CONDENSE_JUMPS(true, s, blocks, least, ADD_JUMP)
#endif
#endif
#if NATURAL
  __local int masks[CELLS];
  CONDENSE_NATURAL(true, s, blocks, masks, ADD_POINT)
#endif
  const real pivot = tile_eliminate(entry, row0, column0, NE, rows + slot * 2 * PADDED_COLUMNS,
                                    columns + slot * 2 * (PADDED_ROWS + 1));
  // Each thread tells its own least tau through local memory; all pivots are known to all.
  TILE_BARRIER();
  if (lane < CHUNK) blocks[lane] = least;
  TILE_BARRIER();
  if (lane == 0 && active) {
    for (int k = 0; k < CHUNK && k < THREADS; ++k) least = fmin(least, blocks[k]);
    status[cell] = least > 0 ? pivot : -1;
  }
  if (!active) return;
  EACH_COLUMN(b) {
    const int j = COLUMN(b);
    EACH_ROW(a) {
      const int i = ROW(a);
      if (i < SIZE && j >= NE && j <= SIZE) {
        const size_t place = (size_t)(j - NE) * batch + item;
        if (j == SIZE) {
          if (i < NE) solution[i * stride + cell] = s[i] - ENTRY(a, b);
          else residual[(i - NE) * stride + cell] = ENTRY(a, b);
        } else if (i < NE) {
          if (recovery) recovery[place * NE + i] = -ENTRY(a, b);
        } else if (schur) {
          schur[place * NM + i - NE] = ENTRY(a, b);
        }
      }
    }
  }
}
