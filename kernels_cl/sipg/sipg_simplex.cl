// Interior penalty on triangles and tetrahedra in one pass, any physics, straight and curved cells: each cell's residual or
// Jacobian action is its own volume integral and the integrals over its facets; each value of the own cell is read once and
// each result written once. After sipg_simplex_point.clh.
//
// 1. own cell into local memory   2. fluxes at the cell's points, tested   3. for each facet: the neighbour into local memory,
// fluxes at the facet's points, tested   4. rows written.
//
// needs: ARGUMENTS DIM NC NAUX NB NQ NQF NNODES NFACETS LANES THREADS TIME STATE BASIS GRAD FACET_BASIS FACET_GRAD ORDER GEO_ORDER
//
// A loop that the work-items of a cell share: where a cell has one work-item only, a barrier ends each turn, and the compilers
// of CPUs then run all lanes through a turn at once, as vectors.
// Arrays: arguments PASS of discretizations/sipg/arguments.py.

#if THREADS > 1
#define LANE ((int)get_local_id(0) % LANES)
#define THREAD ((int)get_local_id(0) / LANES)
#define SHARED(index, count) for (int index = thread; index < (count); index += THREADS)
#define END_OF_TURN
#else
#define LANE ((int)get_local_id(0))
#define THREAD 0
#define SHARED(index, count) for (int index = 0; index < (count); ++index)
#define END_OF_TURN BARRIER_LOCAL();
#endif

#define POINTS (NQ > NQF ? NQ : NQF)
#define WIDTH (NC * (1 + DIM))   // numbers of a flux

INLINE void store_flux(__local real *flux, int lane, int q, const real *f0, const real *f1)
{
  UNROLL for (int c = 0; c < NC; ++c) {
    flux[AT(q * WIDTH + c * (1 + DIM))] = f0[c];
    UNROLL for (int r = 0; r < DIM; ++r) flux[AT(q * WIDTH + c * (1 + DIM) + 1 + r)] = f1[c * DIM + r];
  }
}

// Sum over points of flux [count, NC, 1 + DIM] tested with function b of component c.
INLINE real tested(__local const real *flux, int lane, int count, TABLE const real *basis, TABLE const real *grad, int b, int c)
{
  real sum = 0;
  UNROLL for (int q = 0; q < count; ++q) {
    __local const real *at = flux + (q * WIDTH + c * (1 + DIM)) * LANES + lane;
    sum += at[0] * basis[q * NB + b];
    UNROLL for (int r = 0; r < DIM; ++r) sum += at[(1 + r) * LANES] * grad[(q * NB + b) * DIM + r];
  }
  return sum;
}

INLINE void volume_flux(const Work *w, const real *constants, int q, int action, __local real *flux)
{
  real f0[NC], f1[NC * DIM];
  volume_fluxes(w, constants, q, action, f0, f1);
  store_flux(flux, w->lane, q, f0, f1);
}

// Zero where there is no neighbour.
INLINE void interior_flux(const Work *w, const real *constants, __global const int *wall, const real *sigma, int q, int action,
                          int inside, __local real *flux)
{
  real f0[NC], f1[NC * DIM];
  interior_fluxes(w, constants, wall, sigma, q, action, f0, f1);
  UNROLL for (int c = 0; c < NC; ++c) f0[c] = inside ? f0[c] : 0;
  UNROLL for (int k = 0; k < NC * DIM; ++k) f1[k] = inside ? f1[k] : 0;
  store_flux(flux, w->lane, q, f0, f1);
}

INLINE void boundary_flux(const Work *w, __global const int *kind, const real *constants, const real *sigma, int q, int action,
                          __local real *flux)
{
  real f0[NC], f1[NC * DIM];
  boundary_fluxes(w, kind, constants, sigma, q, action, f0, f1);
  store_flux(flux, w->lane, q, f0, f1);
}

// A work-item's lane and cell (a lane past the last cell does that again, and writes nothing).
#define LANE_AND_CELL                                            \
  const int lane = LANE, cell = min(first + part + lane, num_cells - 1);

// Rows k of a cell into local memory.
#define LOAD_ROWS(target, owned, tail, from, order)                                                                  \
  target[AT(k)] = row_value(owned, tail, rows_of(num_cells, num_ghosts, from), k / NB * NB + (order).node[k % NB]);
#if TIME
#define LOAD_RATES(target, from, order) LOAD_ROWS(target, ut_owned, ut_tail, from, order)
#else
#define LOAD_RATES(target, from, order)
#endif
#define LOAD_STATE(into, from, order)                              \
  LOAD_ROWS(into.u, u_owned, u_tail, from, order)                  \
  LOAD_RATES(into.ut, from, order)
#if STATE
#define LOAD_DIRECTION(into, from, order) LOAD_STATE(into, from, order) LOAD_ROWS(into.du, du_owned, du_tail, from, order)
#else
#define LOAD_DIRECTION(into, from, order) LOAD_ROWS(into.du, du_owned, du_tail, from, order)
#endif

// The cell `from` into local memory: its vectors by LOAD, geometry, auxiliary rows. CELLS declares `from`, `order`, `into`.
#define LOAD_CELL(LOAD, CELLS)                                                              \
  SHARED(k, NC * NB)                                                                        \
  {                                                                                         \
    LANE_AND_CELL                                                                           \
    CELLS                                                                                   \
    LOAD(into, from, order)                                                                 \
    END_OF_TURN                                                                             \
  }                                                                                         \
  SHARED(k, NNODES * DIM)                                                                   \
  {                                                                                         \
    LANE_AND_CELL                                                                           \
    CELLS                                                                                   \
    into.corner[AT(k)] = corner_value(nodes, cell_nodes, stride, from, order, k);           \
    END_OF_TURN                                                                             \
  }                                                                                         \
  SHARED(k, NAUX)                                                                           \
  {                                                                                         \
    LANE_AND_CELL                                                                           \
    CELLS                                                                                   \
    into.aux[AT(k)] = aux_value(aux, stride, from, order, k);                               \
    END_OF_TURN                                                                             \
  }

// Cell 0 (own) or 1 (other) of the group's arrays: declared in each turn, so that nothing lives across barriers.
#define CELL(k) CELL_OF(k, U, UT, DU)
#define CELL_OF(k, u, ut, du)                                                                                        \
  {corner + (k) * NNODES * DIM * LANES, auxiliary + (k) * (NAUX + 1) * LANES, (u) + (k) * NC * NB * LANES,           \
   (ut) + (k) * NC * NB * LANES, (du) + (k) * NC * NB * LANES}

#define OWN_CELL                                             \
  const int from = cell;                                     \
  const Order order = {ORDER, GEO_ORDER};                    \
  const Cell into = CELL(0);

#define OTHER_CELL                                                                                    \
  const int behind = neighbour[f * stride + cell], from = behind < 0 ? cell : behind,                 \
            vertex = behind < 0 ? 0 : SIPG_TURN(code[f * stride + cell]);                             \
  const Order order = {ORDER + vertex * NB, GEO_ORDER + vertex * NNODES};                             \
  const Cell into = CELL(1);

// Declares constants, the Work w, and sigma [NC] of facet f.
#define WORK                                                 \
  POINT_LOAD_CONSTANTS                                       \
  const Work w = {CELL(0), CELL(1), tables, lane, f, t, shift};
#define PENALTY_OF_FACET                                                                               \
  real sigma[NC];                                                                                      \
  for (int c = 0; c < NC; ++c) sigma[c] = sigma_[(c * NFACETS + f) * stride + cell];

#define SIMPLEX_PASS(action, LOAD)                                                                                   \
  const int thread = THREAD, group = get_group_id(0);                                          \
  const int first = 32 * chunks[group / (32 / LANES)], width = min(32, num_cells - first);                           \
  const int part = group % (32 / LANES) * LANES;                                                                     \
  LOAD_CELL(LOAD, OWN_CELL)                                                                                          \
  BARRIER_LOCAL();                                                                                                   \
  SHARED(q, NQ)                                                                                                      \
  {                                                                                                                  \
    const int lane = LANE, f = 0;                                                            \
    WORK                                                                                                             \
    volume_flux(&w, constants, q, action, flux);                                                                     \
    END_OF_TURN                                                                                                      \
  }                                                                                                                  \
  BARRIER_LOCAL();                                                                                                   \
  SHARED(k, NC * NB)                                                                                                 \
  {                                                                                                                  \
    const int lane = LANE;                                                                   \
    result[AT(k)] = tested(flux, lane, NQ, BASIS, GRAD, k % NB, k / NB);                                             \
    END_OF_TURN                                                                                                      \
  }                                                                                                                  \
  for (int f = 0; f < NFACETS; ++f) {                                                                                \
    LOAD_CELL(LOAD, OTHER_CELL)                                                                                      \
    BARRIER_LOCAL();                                                                                                 \
    SHARED(q, NQF)                                                                                                   \
    {                                                                                                                \
      LANE_AND_CELL                                                                                                  \
      WORK                                                                                                           \
      PENALTY_OF_FACET                                                                                               \
      interior_flux(&w, constants, SIPG_WALL(code[f * stride + cell], kinds), sigma, q, action,                      \
                    neighbour[f * stride + cell] >= 0, flux);                                                        \
      END_OF_TURN                                                                                                    \
    }                                                                                                                \
    {                                                                                                                \
      LANE_AND_CELL                                                                                                  \
      const int behind = neighbour[f * stride + cell];                                                               \
      if (behind <= -2) {                                                                                            \
        WORK                                                                                                         \
        PENALTY_OF_FACET                                                                                             \
        for (int q = thread; q < NQF; q += THREADS)                                                                  \
          boundary_flux(&w, kinds - (behind + 2) * (NC + 1), constants, sigma, q, action, flux);                     \
      }                                                                                                              \
    }                                                                                                                \
    BARRIER_LOCAL();                                                                                                 \
    SHARED(k, NC * NB)                                                                                               \
    {                                                                                                                \
      const int lane = LANE;                                                                 \
      result[AT(k / NB * NB + ORDER[f * NB + k % NB])] +=                                                            \
          tested(flux, lane, NQF, FACET_BASIS, FACET_GRAD, k % NB, k / NB);                                          \
      END_OF_TURN                                                                                                    \
    }                                                                                                                \
  }                                                                                                                  \
  BARRIER_LOCAL();                                                                                                   \
  SHARED(k, NC * NB)                                                                                                 \
  {                                                                                                                  \
    const int lane = LANE;                                                                   \
    if (part + lane < width) out[first * (NC * NB) + k * width + part + lane] = result[AT(k)];                       \
    END_OF_TURN                                                                                                      \
  }

#define LOCAL_CELLS                                                                  \
  __local real corner[2 * NNODES * DIM * LANES], auxiliary[2 * (NAUX + 1) * LANES];  \
  __local real flux[POINTS * WIDTH * LANES], result[NC * NB * LANES];
#if TIME
#define RATES ut
#define LOCAL_RATES __local real ut[2 * NC * NB * LANES];
#else
#define RATES u
#define LOCAL_RATES
#endif

#define U u
#define UT RATES
#define DU u
KERNEL(LANES * THREADS) void sipg_residual(ARGUMENTS)
{
  LOCAL_CELLS
  LOCAL_RATES
  __local real u[2 * NC * NB * LANES];
  SIMPLEX_PASS(0, LOAD_STATE)
}

#undef DU
#define DU du
#if !STATE
#undef U
#undef UT
#define U du
#define UT du
#endif
KERNEL(LANES * THREADS) void sipg_action(ARGUMENTS)
{
  LOCAL_CELLS
#if STATE
  LOCAL_RATES
  __local real u[2 * NC * NB * LANES];
#endif
  __local real du[2 * NC * NB * LANES];
  SIMPLEX_PASS(1, LOAD_DIRECTION)
}
