// Element vectors of continuous Galerkin by thread transposition (Knepley, Rupp and Terrel 2016, section 3).
//
// A work-group of THREADS threads holds CELLS cells at once (a batch) and does BATCHES batches in turn (a chunk). Phases:
//   load        coefficients of the batch into local memory
//   quadrature  thread = (cell, point): fields, physics, weighted fluxes in the reference frame into local memory
//   basis       thread = (cell, basis function): sum over the points, write the element vector
// Between the phases the threads change what they stand for ("transposition"), so that no sum crosses threads.
// With THREADS = N_bl lcm(NDOF, NQ) and CELLS = N_bl lcm / gcd every thread has the same work in both phases, as in the
// paper; other sizes run too. Remainder cells are masked, not left to the host.
// needs: NDOF NBASIS NC NA NAUX NQ DIM NNODES TIME THREADS CELLS BATCHES BASIS GRAD GEO GEO_GRAD WEIGHTS
//
// Arrays
//   out [NDOF, stride]  element vector, cell fastest; the others as in cg_point.clh and geometry.clh
// Local memory
//   u_l [NDOF, CELLS] coefficients (ut_l, du_l alike);  flux_l [NC (1 + DIM), NQ, CELLS] weighted f0, then f1

#define FLUX (NC * (1 + DIM))
#define U_L(i) u_l[(i) * CELLS + c]
#define UT_L(i) ut_l[(i) * CELLS + c]
#define DU_L(i) du_l[(i) * CELLS + c]

// Fluxes of one point into local memory.
static inline void store_flux(__local real *flux_l, int q, int c, const real *f0, const real *f1)
{
  for (int k = 0; k < NC; ++k) flux_l[(k * NQ + q) * CELLS + c] = f0[k];
  for (int k = 0; k < NC * DIM; ++k) flux_l[((NC + k) * NQ + q) * CELLS + c] = f1[k];
}

// Basis phase: coefficient i of cell c of the batch. A macro, since tables may be an argument of the kernel.
#define SUM_POINTS(sum, i, c)                                                                                      \
  const int b = DOF_BASIS[i], field = DOF_COMP[i];                                                                 \
  real sum = 0;                                                                                                    \
  for (int q = 0; q < NQ; ++q) {                                                                                   \
    sum += flux_l[(field * NQ + q) * CELLS + (c)] * BASIS[q * NBASIS + b];                                         \
    for (int r = 0; r < DIM; ++r)                                                                                  \
      sum += flux_l[((NC + field * DIM + r) * NQ + q) * CELLS + (c)] * GRAD[(q * NBASIS + b) * DIM + r];           \
  }

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1)))
void cg_residual(CG_ARGUMENTS, __global real *out)
{
  __local real u_l[NDOF * CELLS], flux_l[FLUX * NQ * CELLS];
#if TIME
  __local real ut_l[NDOF * CELLS];
#endif
  POINT_LOAD_CONSTANTS
  for (int batch = 0; batch < BATCHES; ++batch) {
    const int first = ((int)(get_global_id(0) / THREADS) * BATCHES + batch) * CELLS;
    FOR_ITEMS(k, NDOF * CELLS) {
      const int i = k / CELLS, cell = first + k % CELLS;
      if (cell < num_cells) {
        u_l[k] = CG_U(cell, i);
#if TIME
        ut_l[k] = CG_UT(cell, i);
#endif
      }
    }
    BARRIER_LOCAL();
    FOR_ITEMS(k, NQ * CELLS) {
      const int q = k / CELLS, c = k % CELLS, cell = first + c;
      if (cell < num_cells) {
        TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;
        real f0[NC], f1[NC * DIM];
        Geometry g;
        POINT_LOAD_AUX(cell)
        geometry_load(&g, nodes, cell_nodes, stored_geometry, stride, cell);
        geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
        CG_STATE(U_L, UT_L)
        pw_residual(u, u_t, u_x, a, a_x, t, x, constants, f0, f1);
        point_pull_back(&g, WEIGHTS[q] * g.measure, f0, f1);
        store_flux(flux_l, q, c, f0, f1);
      }
    }
    BARRIER_LOCAL();
    FOR_ITEMS(k, NDOF * CELLS) {
      const int i = k / CELLS, c = k % CELLS;
      if (first + c < num_cells) {
        SUM_POINTS(sum, i, c)
        out[i * stride + first + c] = sum;
      }
    }
    BARRIER_LOCAL();
  }
}

// Action of the Jacobian at u on du.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1)))
void cg_action(CG_ARGUMENTS, __global real *out)
{
  __local real u_l[NDOF * CELLS], du_l[NDOF * CELLS], flux_l[FLUX * NQ * CELLS];
#if TIME
  __local real ut_l[NDOF * CELLS];
#endif
  POINT_LOAD_CONSTANTS
  for (int batch = 0; batch < BATCHES; ++batch) {
    const int first = ((int)(get_global_id(0) / THREADS) * BATCHES + batch) * CELLS;
    FOR_ITEMS(k, NDOF * CELLS) {
      const int i = k / CELLS, cell = first + k % CELLS;
      if (cell < num_cells) {
        u_l[k] = CG_U(cell, i);
        du_l[k] = CG_DU(cell, i);
#if TIME
        ut_l[k] = CG_UT(cell, i);
#endif
      }
    }
    BARRIER_LOCAL();
    FOR_ITEMS(k, NQ * CELLS) {
      const int q = k / CELLS, c = k % CELLS, cell = first + c;
      if (cell < num_cells) {
        TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;
        real f0[NC], f1[NC * DIM];
        Geometry g;
        POINT_LOAD_AUX(cell)
        geometry_load(&g, nodes, cell_nodes, stored_geometry, stride, cell);
        geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
        CG_STATE(U_L, UT_L)
        CG_DIRECTION(DU_L)
        pw_jacobian(u, u_t, u_x, du, du_t, du_x, a, a_x, t, shift, x, constants, f0, f1);
        point_pull_back(&g, WEIGHTS[q] * g.measure, f0, f1);
        store_flux(flux_l, q, c, f0, f1);
      }
    }
    BARRIER_LOCAL();
    FOR_ITEMS(k, NDOF * CELLS) {
      const int i = k / CELLS, c = k % CELLS;
      if (first + c < num_cells) {
        SUM_POINTS(sum, i, c)
        out[i * stride + first + c] = sum;
      }
    }
    BARRIER_LOCAL();
  }
}
