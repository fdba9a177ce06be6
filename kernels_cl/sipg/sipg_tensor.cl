// Interior penalty on quadrilaterals and hexahedra in one pass, any physics: each cell's residual or Jacobian action is its own
// volume integral and the integrals over its facets (Gorlani 2015, chapter 3, with both fluxes recomputed: nothing is kept
// between kernels). After sipg_tensor_group.clh.
//
// 1. own values and geometry nodes into local memory   2. fluxes at the nodes   3. for each axis its two facets: the neighbours'
// traces and normal derivatives, fluxes added at the facets' nodes   4. test functions: derivatives of all fluxes along lines.
//
// needs: ARGUMENTS ROLE ALONG DIM NC NB N NQF NNODES GEO_FACET LANES TIME STATE GEO_ORDER PLACE
//
// Arrays: arguments TENSOR_PASS of discretizations/sipg/arguments.py.

#undef WORK
#if !ALONG
#define WORK WORK_OF(u, u, trace, trace)
#elif STATE
#define WORK WORK_OF(u, du, trace, d_trace)
#else
#define WORK WORK_OF(du, du, d_trace, d_trace)
#endif

KERNEL(1) WIDE void ROLE(sipg)(ARGUMENTS)
{
#if ALONG
  __local real du[NC * NB * LANES], d_trace[4 * NC * NQF * LANES];
#endif
#if !ALONG || STATE
  __local real u[NC * NB * LANES], trace[4 * NC * NQF * LANES];
#endif
  __local real corner[NNODES * DIM * LANES], inward[2 * DIM * GEO_FACET * DIM * LANES];
  __local real flux[NC * (1 + DIM) * NB * LANES];
  __local real metric[(DIM * DIM + 1) * NB * LANES];
  real sigma_l[2 * DIM * NC * LANES], sums[LANES];
  int other_l[2 * DIM * LANES], code_l[2 * DIM * LANES];
  const int group = get_group_id(0), first = 32 * chunks[group / (32 / LANES)], width = min(32, num_cells - first);
  const int part = group % (32 / LANES) * LANES, lanes = min(LANES, width - part);
  if (lanes <= 0) return;
  FOR_EACH_LANE
  {
    CELL
#if !ALONG || STATE
    LOAD_OWN(u, u_owned)
#endif
#if ALONG
    LOAD_OWN(du, own)
#endif
    SHARED(facet, 2 * DIM)
    {
      other_l[AT(facet)] = neighbour[facet * stride + cell], code_l[AT(facet)] = code[facet * stride + cell];
      SHARED(c, NC) sigma_l[AT(facet * NC + c)] = sigma_[(c * 2 * DIM + facet) * stride + cell];
    }
    UNROLL SHARED(k, NNODES) load_corner(corner, lane, k, stride, cell, nodes, cell_nodes);
  }
  SHARED(node, NB) FOR_LANES
  {
    WORK
    volume_flux(&w, constants, node, ALONG, flux);
  }
  UNROLL for (int axis = 0; axis < DIM; ++axis) {
    SHARED(side, 2) FOR_EACH_LANE
    {
      CELL
      FACET(axis, side)
#if !ALONG || STATE
      LOAD_TRACE(trace, u_owned, u_tail)
#endif
#if ALONG
      LOAD_TRACE(d_trace, du_owned, du_tail)
#endif
      UNROLL SHARED(k, GEO_FACET)
      load_inward(inward, corner, lane, axis, side, k, behind, turn, stride, nodes, cell_nodes);
    }
    SHARED(item, 2 * NQF) FOR_LANES
    {
      WORK
      FACET(axis, item / NQF)
      PENALTY
      interior_flux(&w, constants, axis, item / NQF, item % NQF, behind, place, RATES(behind),
                    SIPG_WALL(code_l[AT(facet)], kinds), sigma, ALONG, -(other >= 0), flux);
    }
    SHARED(side, 2) FOR_EACH_LANE
    {
      WORK
      FACET(axis, side)
      if (other <= -2) {
        PENALTY
        SHARED(q, NQF)
        boundary_flux(&w, constants, axis, side, q, kinds - (other + 2) * (NC + 1), sigma, ALONG, flux);
      }
    }
  }
  SHARED(row, NC * NB)
  {
    FOR_LANES { sums[lane] = test_node(flux, lane, row / NB, row % NB); }
    SHARED(lane, lanes) out[(size_t)first * (NC * NB) + row * width + part + lane] = sums[lane];
  }
}
