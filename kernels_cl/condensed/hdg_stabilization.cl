// Automatic stabilization of each facet of each cell at a state (û, q), one thread a facet of a cell: the largest of its
// points. After condense_point.clh.
// needs: ARGUMENTS DIM NC NI NT NA NFACETS NQF NNODES TAU FACET_OP FACET_GEO FACET_GEO_GRAD FACET_NORMALS FACET_AUX_BASIS FACET_AUX_GRAD
// needs: AUX_NODAL AUX_NODES TABLE
//
// Arrays
//   found [NFACETS, stride, NC]  tau, 0 where there is none; the others as in condense_point.clh

__kernel void hdg_stabilization(ARGUMENTS)
{
  const int cell = get_global_id(0) % stride, f = get_global_id(0) / stride;
  if (cell >= num_cells || f >= NFACETS) return;
  POINT_LOAD_CELL(cell)
  real most[NC];
  for (int c = 0; c < NC; ++c) most[c] = 0;
  for (int p = f * NQF; p < (f + 1) * NQF; ++p) {
    real x[DIM], n[DIM], u[NC], q[NC * DIM], u_t[NC], a[NA + 1], a_x[(NA + 1) * DIM], tau[NC];
    geometry_point(&g, FACET_GEO_GRAD + p * NNODES * DIM);
    geometry_x(&g, FACET_GEO + p * NNODES, x);
    facet_normal(FACET_NORMALS + f * DIM, &g, n);
    for (int c = 0; c < NC; ++c) u[c] = 0;
    for (int c = 0; c < NC * DIM; ++c) q[c] = 0;
    for (int j = 0; j < NF; ++j)
      for (int c = 0; c < NC; ++c) {
        const real value = condense_gather(interior, trace_owned, trace_tail, n_owned, dofs, stride, cell, j * NC + c);
        u[c] += value * FACET_OP[p * NP * NF + j];
        for (int r = 0; r < DIM; ++r) q[c * DIM + r] += value * FACET_OP[(p * NP + 1 + r) * NF + j];
      }
    point_physical(&g, NC, q);
    point_auxiliary(aux_e, AUX_AT(FACET_AUX_BASIS, p, AUX_NODES), AUX_AT(FACET_AUX_GRAD, p, AUX_NODES * DIM), &g, a, a_x);
    for (int c = 0; c < NC; ++c) u_t[c] = RATE_OF(a, c);
    automatic_tau(stabilization, u, q, u_t, t, x, n, a, a_x, constants, tau);
    for (int c = 0; c < NC; ++c)
      if (tau[c] < PETSC_INFINITY) most[c] = fmax(most[c], tau[c]);
  }
  for (int c = 0; c < NC; ++c) found[((size_t)f * stride + cell) * NC + c] = most[c];
}
