// Cells solved for given right-hand sides r with the matrices [A C; B G] at given states, a group of threads a cell.
// TRANSPOSED: with their transposes. After condense_sum.clh.
// needs: NI NT NC NQ SIZE THREADS CELLS CHUNK SCRATCH TRANSPOSED
//
// Arrays (see condense_point.clh for the others), for cells first ... first + num_cells - 1 of this rank
//   scratch   [group, entry]  tiles, where they do not live in registers
//   given     [NE, stride]    r
//   residual  [NM, stride]    -B A^-1 r
//   solution  [NE, stride]    A^-1 r

#if TRANSPOSED
#define ADD_POINT(test, op, block) tile_add_point(entry, row0, column0, op, test, block)
#else
#define ADD_POINT(test, op, block) tile_add_point(entry, row0, column0, test, op, block)
#endif
#define ADD_JUMP(jump, block) tile_add_jump(entry, row0, column0, jump, block)

__kernel __attribute__((reqd_work_group_size(THREADS * CELLS, 1, 1)))
void condense_given(CONDENSE_ARGUMENTS, __global real *scratch, __global const real *given, __global real *residual,
                    __global real *solution)
{
  CONDENSE_CELL
  __local real states[CELLS * ND], all_blocks[CELLS * CHUNK * BLOCK], rows[CELLS * 2 * PADDED_COLUMNS];
  __local real columns[CELLS * 2 * (PADDED_ROWS + 1)];
  __local int masks[CELLS];
  __local real *s = states + slot * ND, *blocks = all_blocks + slot * CHUNK * BLOCK;
  for (int k = lane; k < ND; k += THREADS)
    s[k] = condense_gather(interior, trace_owned, trace_tail, n_owned, dofs, stride, cell, k);
  TILE_BARRIER();
  TILE_ENTRIES
  EACH_COLUMN(b) EACH_ROW(a) ENTRY(a, b) = 0;
  CONDENSE_VOLUME(true, s, blocks, ADD_POINT)
#if JUMPS
  real least = REAL_HUGE;
  CONDENSE_JUMPS(true, s, blocks, least, ADD_JUMP)
#endif
#if NATURAL
  CONDENSE_NATURAL(true, s, blocks, masks, ADD_POINT)
#endif
  EACH_COLUMN(b) if (COLUMN(b) == SIZE) EACH_ROW(a) ENTRY(a, b) = ROW(a) < NE ? given[ROW(a) * stride + cell] : 0;
  tile_eliminate(entry, row0, column0, NE, rows + slot * 2 * PADDED_COLUMNS, columns + slot * 2 * (PADDED_ROWS + 1));
  if (!active) return;
  EACH_COLUMN(b) if (COLUMN(b) == SIZE) EACH_ROW(a) {
    const int i = ROW(a);
    if (i < NE) solution[i * stride + cell] = ENTRY(a, b);
    else if (i < SIZE) residual[(i - NE) * stride + cell] = ENTRY(a, b);
  }
}
