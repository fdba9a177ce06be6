// Interior penalty on quadrilaterals of low degree in one pass on a GPU, any physics, one work-item a cell: values and sums in
// registers, all loops unrolled. After sipg_cell.clh.
//
// 1. own values, geometry and links   2. at each node the fluxes of the interior and of its facets to other cells, tested
// 3. rows written   4. the few facets on the boundary, added.
//
// needs: ARGUMENTS ROLE ALONG DIM NC NB N NQF NNODES NFACETS GEO_FACET CELLS TIME STATE FLUX_F1 D1 GEO_ORDER
//
// Sizes
//   CELLS  work-items of a work-group
// Arrays: arguments TENSOR_PASS of discretizations/sipg/arguments.py.

#undef STATE_OF
#undef LOAD
#if ALONG && STATE
#define STATE_OF u
#define LOAD VALUES(v, own) VALUES(u, u_owned)
#elif ALONG
#define STATE_OF v
#define LOAD VALUES(v, own)
#else
#define STATE_OF v
#define LOAD VALUES(v, u_owned)
#endif

KERNEL(CELLS) void ROLE(sipg)(ARGUMENTS)
{
  const int slot = (int)get_global_id(0) / 32, place = (int)get_global_id(0) % 32, lane = 0;
  if (slot >= num_chunks) return;
  const int first = 32 * chunks[slot], width = min(32, num_cells - first), cell = first + place;
  if (place >= width) return;
  __global real *row = ROWS_OF(out);
  POINT_LOAD_CONSTANTS
  int outside = 0;
  {
    LOAD
    SURROUNDINGS
    real sum[NC * NB];
    UNROLL for (int k = 0; k < NC * NB; ++k) sum[k] = 0;
    UNROLL for (int node = 0; node < NB; ++node) {
      const int at[3] = {node % N, node / N % N, node / (N * N)};
      const Work w = WORK(v, STATE_OF);
      real f0[NC], f1[NC * DIM];
      node_flux(&w, constants, at, ALONG, f0, f1);
      test_fluxes(at, f0, f1, sum);
    }
    UNROLL for (int k = 0; k < NC * NB; ++k) row[k * width] = sum[k];
    UNROLL for (int f = 0; f < NFACETS; ++f) outside |= link[LINK_OF(f, OTHER)] < -1;
  }
  if (outside) {
    LOAD
    SURROUNDINGS
    const Work w = WORK(v, STATE_OF);
    for (int item = 0; item < NFACETS * NQF; ++item) {
      const int direction = item / (2 * NQF), side = item / NQF % 2;
      if (link[LINK_OF(FACET_OF(direction, side), OTHER)] < -1)
        boundary_point(&w, constants, direction, side, item % NQF, ALONG, row, width);
    }
  }
}
