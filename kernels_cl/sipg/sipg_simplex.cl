// Interior penalty on triangles and tetrahedra in one pass, any physics, straight and curved cells: each cell's residual or
// Jacobian action is its own volume integral and the integrals over its facets; each value of the own cell is read once and
// each result written once. After sipg_simplex_group.clh.
//
// 1. own cell into local memory   2. fluxes at the cell's points, tested   3. for each facet: the neighbour into local memory,
// fluxes at the facet's points, tested   4. rows written.
//
// needs: ARGUMENTS ROLE ALONG DIM NC NAUX NDOF NBASIS NQ NQF NNODES NFACETS LANES THREADS TIME STATE BASIS GRAD FACET_BASIS FACET_GRAD
// needs: ORDER GEO_ORDER
//
// Arrays: arguments PASS of discretizations/sipg/arguments.py.

#undef U
#undef UT
#undef DU
#undef LOAD
#if ALONG
#define DU du
#define LOAD LOAD_DIRECTION
#else
#define DU u
#define LOAD LOAD_STATE
#endif
#if ALONG && !STATE
#define U du
#define UT du
#else
#define U u
#define UT RATES
#endif

KERNEL(LANES * THREADS) void ROLE(sipg)(ARGUMENTS)
{
  LOCAL_CELLS
#if !ALONG || STATE
  LOCAL_RATES
  __local real u[2 * NDOF * LANES];
#endif
#if ALONG
  __local real du[2 * NDOF * LANES];
#endif
  const int thread = THREAD, group = get_group_id(0);
  const int first = 32 * chunks[group / (32 / LANES)], width = min(32, num_cells - first);
  const int part = group % (32 / LANES) * LANES;
  LOAD_CELL(LOAD, OWN_CELL)
  BARRIER_LOCAL();
  SHARED(q, NQ)
  {
    const int lane = LANE, f = 0;
    WORK
    real f0[NC], f1[NC * DIM];
    volume_fluxes(&w, constants, q, ALONG, f0, f1);
    store_flux(flux, lane, q, f0, f1);
    END_OF_TURN
  }
  BARRIER_LOCAL();
  SHARED(k, NDOF)
  {
    const int lane = LANE;
    result[AT(k)] = tested(flux, lane, NQ, BASIS, GRAD, k);
    END_OF_TURN
  }
  for (int f = 0; f < NFACETS; ++f) {
    LOAD_CELL(LOAD, OTHER_CELL)
    BARRIER_LOCAL();
    SHARED(q, NQF)
    {
      LANE_AND_CELL
      WORK
      PENALTY_OF_FACET
      interior_flux(&w, constants, SIPG_WALL(code[f * stride + cell], kinds), sigma, q, ALONG,
                    neighbour[f * stride + cell] >= 0, flux);
      END_OF_TURN
    }
    {
      LANE_AND_CELL
      const int behind = neighbour[f * stride + cell];
      if (behind <= -2) {
        WORK
        PENALTY_OF_FACET
        for (int q = thread; q < NQF; q += THREADS) {
          real f0[NC], f1[NC * DIM];
          boundary_fluxes(&w, kinds - (behind + 2) * (NC + 1), constants, sigma, q, ALONG, f0, f1);
          store_flux(flux, lane, q, f0, f1);
        }
      }
    }
    BARRIER_LOCAL();
    SHARED(k, NDOF)
    {
      const int lane = LANE;
      result[AT(ordered_row(k, ORDER + f * NBASIS))] += tested(flux, lane, NQF, FACET_BASIS, FACET_GRAD, k);
      END_OF_TURN
    }
  }
  BARRIER_LOCAL();
  SHARED(k, NDOF)
  {
    const int lane = LANE;
    if (part + lane < width) out[first * NDOF + k * width + part + lane] = result[AT(k)];
    END_OF_TURN
  }
}
