// The gradient q of u at points of each cell, one thread a point of a cell: the lifted gradient times J^-T
// (King et al. 2014, section 2.3, recovers q from u and the trace as well).
// needs: ARGUMENTS DIM NC NFUN NPOINTS NNODES OP GEO_GRAD
//
// Arrays
//   out  [NPOINTS, NC, DIM, stride]  physical gradients, cell fastest; the others as in hdg_recovery.clh and geometry.clh
// Tables
//   OP [NPOINTS, 1 + DIM, NFUN], GEO_GRAD [NPOINTS, NNODES, DIM]

__kernel void hdg_gradient(ARGUMENTS)
{
  const int cell = get_global_id(0) % stride, point = get_global_id(0) / stride;
  if (cell >= num_cells || point >= NPOINTS) return;
  real u[NC], q[NC * DIM];
  Geometry g;
  geometry_load(&g, nodes, cell_nodes, stride, cell);
  geometry_point(&g, GEO_GRAD + point * NNODES * DIM);
  recovery_state(OP + point * (1 + DIM) * NFUN, x_e, stride, cell, u, q);
  point_physical(&g, NC, q);
  for (int k = 0; k < NC * DIM; ++k) out[(point * NC * DIM + k) * (size_t)stride + cell] = q[k];
}
