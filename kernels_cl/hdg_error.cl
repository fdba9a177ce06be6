// Squared errors against the exact solution, one thread a cell: of u, of its gradient q, of u*.
// needs: DIM NC NCONST NFUN NSTAR NQ NNODES OP STAR GEO GEO_GRAD WEIGHTS TABLE
//
// Sizes
//   NSTAR  scalar functions of u*; 0 where there is none
// Arrays
//   star  [NSTAR, NC, stride]  coefficients of u*
//   out   [3, NC, stride]  |u - exact|^2, |q - grad exact|^2, |u* - exact|^2 of each component; cell fastest
// The others as in hdg_recovery.clh and geometry.clh.
// Tables
//   OP [NQ, 1 + DIM, NFUN], STAR [NQ, NSTAR], GEO [NQ, NNODES], GEO_GRAD [NQ, NNODES, DIM], WEIGHTS [NQ]

__kernel void hdg_error(RECOVERY_ARGUMENTS, __global const real *star, __global real *out)
{
  const int cell = get_global_id(0);
  if (cell >= num_cells) return;
  POINT_LOAD_CONSTANTS
  real sum[3 * NC];
  for (int k = 0; k < 3 * NC; ++k) sum[k] = 0;
  Geometry g;
  geometry_load(&g, nodes, cell_nodes, 0, stride, cell);
  for (int p = 0; p < NQ; ++p) {
    real x[DIM], u[NC], q[NC * DIM], exact[NC], exact_x[NC * DIM];
    geometry_point(&g, GEO_GRAD + p * NNODES * DIM);
    geometry_x(&g, GEO + p * NNODES, x);
    recovery_state(OP + p * (1 + DIM) * NFUN, x_e, stride, cell, u, q);
    point_physical(&g, NC, q);
    pw_exact(t, x, constants, exact, exact_x);
    const real weight = WEIGHTS[p] * g.measure;
    for (int c = 0; c < NC; ++c) {
      real better = 0;
      for (int j = 0; j < NSTAR; ++j) better += star[(j * NC + c) * (size_t)stride + cell] * STAR[p * NSTAR + j];
      sum[c] += weight * (u[c] - exact[c]) * (u[c] - exact[c]);
      sum[2 * NC + c] += weight * (better - exact[c]) * (better - exact[c]);
      for (int d = 0; d < DIM; ++d) {
        const real difference = q[c * DIM + d] - exact_x[c * DIM + d];
        sum[NC + c] += weight * difference * difference;
      }
    }
  }
  for (int k = 0; k < 3 * NC; ++k) out[k * (size_t)stride + cell] = sum[k];
}
