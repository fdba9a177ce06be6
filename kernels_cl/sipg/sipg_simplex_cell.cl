// Interior penalty on straight triangles and tetrahedra of low degree in one pass on a GPU, any physics, one work-item a cell:
// values and sums in registers, loops unrolled, zeros of tables left out. After sipg_simplex_cell.clh.
//
// 1. own values and geometry   2. fluxes at the cell's points, tested   3. for each facet the neighbour, fluxes at the facet's
// points, tested   4. rows written   5. the few facets on the boundary, added.
//
// needs: ARGUMENTS ROLE ALONG DIM NC NAUX NB NQ NQF NNODES NFACETS CELLS TIME STATE BASIS GRAD FACET_BASIS FACET_GRAD ORDER
// needs: PERIODIC GEO_ORDER AUX_START UNROLL_FACETS
//
// Sizes
//   CELLS  work-items of a work-group;  UNROLL_FACETS what stands before the loop over facets
// Arrays: arguments PASS of discretizations/sipg/arguments.py.

#undef VALUES
#undef CELL
#if ALONG
#define VALUES DIRECTION_VALUES
#define CELL DIRECTION_CELL
#else
#define VALUES STATE_VALUES
#define CELL STATE_CELL
#endif

KERNEL(CELLS) void ROLE(sipg)(ARGUMENTS)
{
  const int slot = (int)get_global_id(0) / 32, place = (int)get_global_id(0) % 32;
  if (slot >= num_chunks) return;
  const int first = 32 * chunks[slot], width = min(32, num_cells - first), cell = first + place;
  if (place >= width) return;
  __global real *row = out + ((size_t)first * (NC * NB) + place);
  int outside = 0;
  POINT_LOAD_CONSTANTS
  {
    CELL_ARRAYS(own, load_corners, VALUES, cell, 0)
    real sum[NC * NB], f0[NC], f1[NC * DIM];
    UNROLL for (int k = 0; k < NC * NB; ++k) sum[k] = 0;
    UNROLL for (int q = 0; q < NQ; ++q) {
      const Work w = {CELL(own), CELL(own), tables, 0, 0, t, shift};
      volume_fluxes(&w, constants, q, ALONG, f0, f1);
      test_fluxes(f0, f1, BASIS + q * NB, GRAD + q * NB * DIM, ORDER, sum);
    }
    UNROLL_FACETS for (int f = 0; f < NFACETS; ++f) {
      const int behind = neighbour[f * stride + cell], from = behind < 0 ? cell : behind;
      const int vertex = behind < 0 ? f : SIPG_TURN(code[f * stride + cell]);
      __global const int *wall = SIPG_WALL(code[f * stride + cell], kinds);
      CELL_ARRAYS(mine, load_corners, VALUES, cell, f)
      CELL_ARRAYS(other, BEHIND, VALUES, from, vertex)
      PENALTY
      const Work w = {CELL(mine), CELL(other), tables, 0, 0, t, shift};
      real part[NC * NB];
      UNROLL for (int k = 0; k < NC * NB; ++k) part[k] = 0;
      UNROLL for (int q = 0; q < NQF; ++q) {
        interior_fluxes(&w, constants, wall, sigma, q, ALONG, f0, f1);
        test_fluxes(f0, f1, FACET_BASIS + q * NB, FACET_GRAD + q * NB * DIM, ORDER, part);
      }
      outside |= behind < -1;
      UNROLL for (int g = 0; g < NFACETS; ++g)
        if (f == g)
          UNROLL for (int k = 0; k < NC * NB; ++k)
            sum[k / NB * NB + ORDER[g * NB + k % NB]] += behind >= 0 ? part[k] : 0;
    }
    UNROLL for (int k = 0; k < NC * NB; ++k) row[k * width] = sum[k];
  }
  if (outside)
    for (int f = 0; f < NFACETS; ++f) {
      const int behind = neighbour[f * stride + cell];
      if (behind < -1) {
        CELL_ARRAYS(own, load_corners, VALUES, cell, f)
        PENALTY
        const Work w = {CELL(own), CELL(own), tables, 0, 0, t, shift};
        for (int q = 0; q < NQF; ++q) {
          real f0[NC], f1[NC * DIM];
          boundary_fluxes(&w, kinds - (behind + 2) * (NC + 1), constants, sigma, q, ALONG, f0, f1);
          for (int k = 0; k < NC * NB; ++k) {
            const int b = k % NB, c = k / NB;
            real part = f0[c] * FACET_BASIS[q * NB + b];
            for (int r = 0; r < DIM; ++r) part += f1[c * DIM + r] * FACET_GRAD[(q * NB + b) * DIM + r];
            row[(c * NB + ORDER[f * NB + b]) * width] += part;
          }
        }
      }
    }
}
