// Local nonlinear problems of a batch of cells, a group of threads a cell: damped Newton for the interior at a given
// trace, then the residual of the trace. Where it fails from the interior that is given, it begins again at the mean of the
// trace's nodes; where it fails from there too, the interior stays as it was.
// needs: ARGUMENTS NI NT NC NQ BOUNDARY_ROWS SIZE THREADS CELLS CHUNK SCRATCH
//
// Arrays (see condense_point.clh for the others), for cells first ... first + num_cells - 1 of this rank
//   interior  [NE, stride]  first guess on entry, solution on return, or the guess without one
//   residual  [NM, stride]  residual of the trace
//   status    [stride]      Newton steps taken; -1 where tau is not positive, -2 where Newton's method failed
// Macros: SIZE is NE, CELLS is 1
//   LEAST_DAMPING  the smallest fraction of a step that is tried
//   SURELY         fraction of the tolerance for the next step, whose size is estimated from the fall of the residual

#define LEAST_DAMPING ((real)1 / 1024)
#define SURELY ((real)0.01)

// Largest absolute value of v [count] in local memory; nan counts as infinite.
static inline real largest(__local const real *v, int count)
{
  real most = 0;
  for (int k = 0; k < count; ++k) most = fabs(v[k]) <= most ? most : v[k] == v[k] ? fabs(v[k]) : REAL_HUGE;
  return most;
}

KERNEL(THREADS * CELLS) void condense_solve(ARGUMENTS)
{
  CONDENSE_CELL
  __local real s[ND], trial[ND], sums[ND], step[NE + 1];
  TILE_EXCHANGE
  TILE_BLOCKS
  BLOCK_SPACE real *blocks = all_blocks;
  for (int k = lane; k < ND; k += THREADS)
    s[k] = trial[k] = condense_gather(interior, trace_owned, trace_tail, n_owned, dofs, stride, cell, k);
  TILE_BARRIER();
  TILE_ENTRIES
  real least = REAL_HUGE, before = REAL_HUGE;
  int steps = 0, done = 0, attempts = 1;
  RESIDUAL(s)
  real norm = largest(sums, NE);
  TILE_BARRIER();
  while (!done) {
    CONDENSE_MATRIX(s)
#if BOUNDARY_ROWS > 1  // f0_bd is tested by the trace alone
    CONDENSE_NATURAL(true, s, blocks, ADD_POINTS)
#endif
    TILE_ELIMINATE(NE);
    EACH_COLUMN(b) if (COLUMN(b) == SIZE) EACH_ROW(a) if (ROW(a) < SIZE) step[ROW(a)] = ENTRY(a, b);
    TILE_BARRIER();
    const real scale = largest(s, ND), size = largest(step, NE);
    real damping = 1, reached = norm;
    for (;;) {
      for (int k = lane; k < NE; k += THREADS) trial[k] = s[k] - damping * step[k];
      TILE_BARRIER();
      RESIDUAL(trial)
      reached = largest(sums, NE);
      TILE_BARRIER();
      const bool at_round_off = size <= sqrt(tolerance) * (scale + size);
      if (reached <= (1 - (real)1e-4 * damping) * norm || at_round_off || damping < LEAST_DAMPING) break;
      damping /= 2;
    }
    for (int k = lane; k < NE; k += THREADS) s[k] = trial[k];
    TILE_BARRIER();
    const real relative = size / (scale + size + (real)1e-30);
    const bool next_is_small = damping == 1 && relative * reached <= SURELY * tolerance * norm;
    const bool stagnates = relative <= sqrt(tolerance) && size >= before / 2;
    norm = reached;
    ++steps;
    if (size == 0 || relative <= tolerance || next_is_small || stagnates) done = 1;
    else if (damping < LEAST_DAMPING || steps >= most_steps || !(size < REAL_HUGE)) done = 2;
    before = size;
    if (done != 2) continue;
    for (int k = lane; k < NE; k += THREADS) {
      real begin = 0;
      if (attempts == 1)
        for (int j = 0; j < NT; ++j) begin += s[NE + j * NC + k % NC] / NT;
      else begin = interior[k * stride + cell];
      s[k] = trial[k] = begin;
    }
    TILE_BARRIER();
    if (attempts++ == 1) {
      RESIDUAL(s)
      norm = largest(sums, NE);
      TILE_BARRIER();
      steps = done = 0;
      before = REAL_HUGE;
    }
  }
  if (done == 2) {
    RESIDUAL(s)
  }
  JOIN_LEAST
  if (active) {
    if (lane == 0) status[cell] = !(least > 0) ? -1 : done == 2 ? -2 : steps;
    for (int k = lane; k < NE; k += THREADS) interior[k * stride + cell] = s[k];
    for (int k = lane; k < NM; k += THREADS) residual[k * stride + cell] = sums[NE + k];
  }
}
