// Integrals of a user's pointwise numbers over boundary facets, one thread a facet: of the trace and of the cell's gradient.
// After hdg_recovery.clh and facet_normal.clh.
// needs: ARGUMENTS NOBJ READS_AUX DIM NC NA NFUN NQF NNODES FACET_OP FACET_GEO FACET_GEO_GRAD FACET_WEIGHTS FACET_NORMALS TABLE
// needs: pw_objective
// optional: AUX_NODAL AUX_NODES FACET_AUX_BASIS FACET_AUX_GRAD
//
// Macros
//   NOBJ  numbers at a point;  READS_AUX whether they read auxiliary fields;  AUX_NODAL, AUX_NODES as in condense_point.clh
// Arrays
//   facets [2, facet_stride]     cell, facet of the reference cell; num_cells is the number of facets here
//   out    [NOBJ, facet_stride]  integrals; facet fastest
// The others as in hdg_recovery.clh and geometry.clh.
// Tables, with F facets of the reference cell
//   FACET_OP [F, NQF, 1 + DIM, NFUN] values of the trace and reference gradients, FACET_WEIGHTS [F, NQF], FACET_NORMALS [F, DIM],
//   FACET_GEO [F, NQF, NNODES], FACET_GEO_GRAD [F, NQF, NNODES, DIM], FACET_AUX_BASIS [F, NQF, AUX_NODES],
//   FACET_AUX_GRAD [F, NQF, AUX_NODES, DIM] where auxiliary fields are nodal

__kernel void hdg_boundary_integral(ARGUMENTS)
{
  const int facet = get_global_id(0);
  if (facet >= num_cells) return;
  const int cell = facets[facet], local_facet = facets[facet_stride + facet];
  POINT_LOAD_CONSTANTS
#if READS_AUX
  POINT_LOAD_AUX(cell)
#endif
  real sum[NOBJ];
  for (int k = 0; k < NOBJ; ++k) sum[k] = 0;
  Geometry g;
  geometry_load(&g, nodes, cell_nodes, 0, stride, cell);
  for (int p = local_facet * NQF; p < (local_facet + 1) * NQF; ++p) {
    real x[DIM], n[DIM], u[NC], q[NC * DIM], a[NA + 1], a_x[(NA + 1) * DIM], obj[NOBJ];
    geometry_point(&g, FACET_GEO_GRAD + p * NNODES * DIM);
    geometry_x(&g, FACET_GEO + p * NNODES, x);
    const real weight = FACET_WEIGHTS[p] * facet_normal(FACET_NORMALS + local_facet * DIM, &g, n);
    recovery_state(FACET_OP + p * (1 + DIM) * NFUN, x_e, stride, cell, u, q);
    point_physical(&g, NC, q);
#if READS_AUX && AUX_NODAL
    point_auxiliary(aux_e, FACET_AUX_BASIS + p * AUX_NODES, FACET_AUX_GRAD + p * AUX_NODES * DIM, &g, a, a_x);
#elif READS_AUX
    point_auxiliary(aux_e, FACET_AUX_BASIS, FACET_AUX_GRAD, &g, a, a_x);
#endif
    pw_objective(u, q, a, a_x, t, x, n, constants, obj);
    for (int k = 0; k < NOBJ; ++k) sum[k] += weight * obj[k];
  }
  for (int k = 0; k < NOBJ; ++k) out[k * (size_t)facet_stride + facet] = sum[k];
}
