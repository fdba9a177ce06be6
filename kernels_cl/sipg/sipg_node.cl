// Interior penalty on quadrilaterals and hexahedra in one pass on a GPU, any physics: a cell's residual or Jacobian action, from
// fluxes of its interior and of its facets at the same nodes (Gorlani 2015, chapter 3, with both fluxes recomputed: nothing
// is kept between kernels). After sipg_node_group.clh.
//
// 1. own values, geometry and links into local memory   2. derivatives, a work-item a line   3. fluxes, a work-item a node   4. test functions, a work-item a line.
//
// needs: ARGUMENTS ROLE ALONG DIM NC NB N NQF NNODES NFACETS GEO_FACET LANES THREADS ROUNDS TIME STATE D1 GEO_ORDER NODE_AT
//
// Tables
//   NODE_AT [ROUNDS, THREADS]  node that a work-item does in a round, or -1
// Arrays: arguments TENSOR_PASS of discretizations/sipg/arguments.py.

#undef STATE_OF
#if ALONG && STATE
#define STATE_OF u
#else
#define STATE_OF v
#endif

KERNEL(LANES * THREADS) void ROLE(sipg)(ARGUMENTS)
{
#if ALONG && STATE
  __local real u[NC * NB * LANES];
#endif
  __local real v[NC * (1 + DIM) * NB * LANES], corner[NNODES * DIM * LANES], inward[NFACETS * GEO_FACET * DIM * LANES];
  __local real sigma[NC * NFACETS * LANES];
  __local int link[NFACETS * LINK * LANES];
  const int group = get_group_id(0), first = 32 * chunks[group / (32 / LANES)], width = min(32, num_cells - first);
  const int part = group % (32 / LANES) * LANES, lane = (int)get_local_id(0) % LANES;
  const int cell = first + min(part + lane, width - 1);
#if ALONG
  LOAD_OWN(v, own)
#if STATE
  SHARED(row, NC * NB) u[AT(row)] = u_owned[(size_t)first * (NC * NB) + row * width + (cell - first)];
#endif
#else
  LOAD_OWN(v, u_owned)
#endif
  SHARED(facet, NFACETS)
  {
    load_link(link, lane, facet, neighbour[facet * stride + cell], SIPG_TURN(code[facet * stride + cell]), cell,
              num_cells, num_ghosts);
    UNROLL for (int c = 0; c < NC; ++c)
      sigma[AT(c * NFACETS + facet)] = sigma_[(c * NFACETS + facet) * stride + cell];
  }
  SHARED(k, NNODES) load_corner(corner, lane, k, stride, cell, nodes, cell_nodes);
  BARRIER_LOCAL();
  SHARED(entry, NFACETS * GEO_FACET)
  {
    const int direction = entry / (2 * GEO_FACET), side = entry / GEO_FACET % 2, facet = FACET_OF(direction, side);
    const int other = neighbour[facet * stride + cell];
    load_inward(inward, corner, lane, direction, side, entry % GEO_FACET, other < 0 ? cell : other,
                SIPG_TURN(code[facet * stride + cell]), stride, nodes, cell_nodes);
  }
  BARRIER_LOCAL();
  SHARED(line, NC * DIM * NQF) differentiate(v, lane, line / (DIM * NQF), line / NQF % DIM, line % NQF);
  BARRIER_LOCAL();
  {
    POINT_LOAD_CONSTANTS
    int outside = 0;
    UNROLL for (int f = 0; f < NFACETS; ++f) outside |= link[LINK_OF(f, OTHER)] < -1;
    WORK
    SHARED(k, ROUNDS * THREADS)
    {
      const int node = NODE_AT[k];
      int at[3] = {node % N, node / N % N, node / (N * N)};
      if (node >= 0) node_to_fluxes(&w, constants, at, ALONG, v);
    }
  }
  for (int r = DIM - 1; r >= 0; --r) {
    BARRIER_LOCAL();
    SHARED(line, NC * NQF) test_line(v, lane, line / NQF, r, line % NQF);
  }
  BARRIER_LOCAL();
  if (part + lane < width)
    SHARED(row, NC * NB) out[(size_t)first * (NC * NB) + row * width + part + lane] = v[V(row / NB, 0, row % NB)];
}
