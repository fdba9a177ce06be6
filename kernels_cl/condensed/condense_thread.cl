// Static condensation (see condense.cl), a thread a cell, for matrices whose interior columns fit a thread's registers, of
// physics whose derivatives are the same at all points of an affine cell (see condense_warp.cl). One component, and natural
// conditions without derivatives. After condense_point.clh.
// needs: ARGUMENTS NI NT NC NQ NQF NFACETS JUMPS SIZE NTERMS TERM_ROW TERM_COLUMN TERMS WEIGHTS PTX
// optional: JUMP JUMP_SQUARES FACET_OP FACET_WEIGHTS FACET_GEO FACET_AUX_BASIS FACET_AUX_GRAD
//
// Tables: as in condense_constant.clh; they are known when this is compiled, so that products with zeros are left out
// Arrays: as in condense.cl; there is no scratch.

#define THREADS 32
#define STATE_PITCH (ND | 1)  // odd: without conflicts where each thread reads its own
#define BLOCK_SPACE (BLOCK | 1)
#define MOST_ROWS (NM > NE ? NM : NE)
#if PTX  // loops run over registers, and tables in them are known
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif
#define EACH_ROW(i) UNROLL for (int i = 0; i < SIZE; ++i)
#define REAL_HUGE (REAL_BYTES == 8 ? (real)1e300 : (real)1e37f)
#if PTX >= 70
#define WARP_BARRIER() asm volatile("bar.warp.sync 0xffffffff;" ::: "memory")
#else
#define WARP_BARRIER() BARRIER_LOCAL()
#endif

// Column j of the matrix from the cell's factors [NTERMS], weighted tau [NFACETS].
static inline void thread_column(int j, const real *factors, const real *taus, real *v)
{
  EACH_ROW(i) {
    v[i] = 0;
    UNROLL for (int k = 0; k < NTERMS; ++k)
      if (TERMS[(k * NF + j) * NF + i] != 0) v[i] += factors[k] * TERMS[(k * NF + j) * NF + i];
#if JUMPS
    UNROLL for (int f = 0; f < NFACETS; ++f)
      if (JUMP_SQUARES[(f * NF + j) * NF + i] != 0) v[i] += taus[f] * JUMP_SQUARES[(f * NF + j) * NF + i];
#endif
  }
}

// Meet the pivots on the left of column j: `done` [NE, SIZE] columns of the interior, inverses of their pivots.
static inline void thread_meet(int j, real *v, const real *done, const real *inverses)
{
  UNROLL for (int k = 0; k < NE; ++k)
    if (k < j) {
      const real scaled = v[k] * inverses[k];
      EACH_ROW(i) v[i] -= done[k * SIZE + i] * scaled;
      v[k] = scaled;
    }
}

// Write `rows` reals of each thread side by side: out [item, rows], stage [THREADS, rows].
static inline void thread_write(__global real *out, __local const real *stage, int rows, int lane, int item0, int num_cells)
{
  WARP_BARRIER();
  for (int k = lane; k < THREADS * rows; k += THREADS)
    if (item0 * rows + k < num_cells * rows) out[(size_t)item0 * rows + k] = stage[k];
  WARP_BARRIER();
}

KERNEL(THREADS) void condense(ARGUMENTS)
{
  __local real states[THREADS * STATE_PITCH], blocks[THREADS * BLOCK_SPACE], stage[THREADS * MOST_ROWS];
  const int lane = get_local_id(0), item0 = get_group_id(0) * THREADS, item = item0 + lane;
  const bool active = item < num_cells;
  const int cell = first + (active ? item : num_cells - 1);
  POINT_LOAD_CELL(cell)
  __local real *s = states + lane * STATE_PITCH, *block = blocks + lane * BLOCK_SPACE;
  bool some = false;  // few cells have a state that is not zero, with linear physics
  for (int k = 0; k < ND; ++k) {
    s[k] = condense_gather(interior, trace_owned, trace_tail, n_owned, dofs, stride, cell, k);
    some = some || s[k] != 0;
  }
  __local const real *state = some ? s : 0;
  real sums[SIZE], factors[NTERMS], taus[NFACETS], least = REAL_HUGE;
  EACH_ROW(i) sums[i] = 0;
  for (int q = 0; q < NQ; ++q) {
    real f0[NC], f1[NC * DIM];
    condense_flux(AT_INSIDE(q), state, f0, f1);
    EACH_ROW(i) {
      sums[i] += OP[q * NP * NF + i] * f0[0];
      for (int r = 0; r < DIM; ++r) sums[i] += OP[(q * NP + 1 + r) * NF + i] * f1[r];
    }
  }
  condense_derivatives(0, 1, AT_ALL_INSIDE, 0, block);
  UNROLL for (int k = 0; k < NTERMS; ++k) factors[k] = block[TERM_ROW[k] * BLOCK_PITCH + TERM_COLUMN[k]];
#if JUMPS
  real values[2];
  UNROLL for (int f = 0; f < NFACETS; ++f) {
    least = fmin(least, condense_jump_values(AT_ALL_JUMPS(f), 0, values));
    taus[f] = values[0];
  }
  for (int q = 0; some && q < NFACETS * NQF; ++q) {
    condense_jump_values(AT_JUMP(q), state, values);
    EACH_ROW(i) sums[i] += JUMP[q * NF + i] * values[1];
  }
#endif
#if NATURAL
  for (int f = 0; f < NFACETS; ++f) {
    const int mask = conditions[f * stride + cell];
    for (int q = f * NQF; mask && q < (f + 1) * NQF; ++q) {
      condense_boundary(false, mask, FACET_OP + q * NP * NF, AT_FACET(f, q), t, constants, aux_e, s, block);
      for (int r = 0; r < BOUNDARY_ROWS; ++r)
        EACH_ROW(i) sums[i] += FACET_OP[(q * NP + r) * NF + i] * block[r * BLOCK_PITCH + NR];
    }
  }
#endif
  real done[NE * SIZE], inverses[NE], lowest = REAL_HUGE, highest = 0;
  UNROLL for (int j = 0; j < NE; ++j) {
    thread_column(j, factors, taus, done + j * SIZE);
    thread_meet(j, done + j * SIZE, done, inverses);
    const real inverse = inverses[j] = 1 / done[j * SIZE + j];
    lowest = inverse == inverse ? fmin(lowest, fabs(inverse)) : 0;
    highest = fmax(highest, fabs(inverse));
  }
  thread_meet(NE, sums, done, inverses);
  if (active) {
    const real pivot = highest > 0 && highest < REAL_HUGE ? lowest / highest : 0;
    status[cell] = least > 0 ? pivot : -1;
    EACH_ROW(i) {
      if (i < NE) solution[i * stride + cell] = s[i] - sums[i];
      else residual[(i - NE) * stride + cell] = sums[i];
    }
  }
  UNROLL for (int j = NE; j < SIZE; ++j) {
    real v[SIZE];
    const size_t place = (size_t)(j - NE) * batch;
    thread_column(j, factors, taus, v);
    thread_meet(NE, v, done, inverses);
    if (schur) {
      EACH_ROW(i) if (i >= NE) stage[lane * NM + i - NE] = v[i];
      thread_write(schur + place * NM, stage, NM, lane, item0, num_cells);
    }
    if (recovery) {
      EACH_ROW(i) if (i < NE) stage[lane * NE + i] = -v[i];
      thread_write(recovery + place * NE, stage, NE, lane, item0, num_cells);
    }
  }
}
