// Element vectors of continuous Galerkin by thread transposition (Knepley, Rupp and Terrel 2016, section 3).
//
// A work-group of THREADS threads holds CELLS cells at once (a batch) and does BATCHES batches in turn (a chunk). Phases:
//   load        coefficients of the batch into local memory
//   quadrature  thread = (cell, point): fields, physics, weighted fluxes in the reference frame into local memory
//   basis       thread = (cell, basis function): sum over the points, write the element vector
// Between the phases the threads change what they stand for ("transposition"), so that no sum crosses threads.
// With THREADS = N_bl lcm(NDOF, NQ) and CELLS = N_bl lcm / gcd every thread has the same work in both phases, as in the
// paper; other sizes run too. Remainder cells are masked, not left to the host.
// After cg_transpose.clh.
// needs: ARGUMENTS ROLE ALONG DIRECTION POINT_TERMS NDOF NBASIS NC NA NAUX NQ DIM NNODES TIME THREADS CELLS BATCHES BASIS GRAD GEO
// needs: GEO_GRAD WEIGHTS
//
// Arrays
//   out [NDOF, stride]  element vector, cell fastest; the others as in cg_point.clh and geometry.clh
// Local memory
//   u_l [NDOF, CELLS] coefficients (ut_l, du_l alike);  flux_l [NC (1 + DIM), NQ, CELLS] weighted f0, then f1

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1)))
void ROLE(cg)(ARGUMENTS)
{
  __local real u_l[NDOF * CELLS], flux_l[FLUX * NQ * CELLS];
#if ALONG
  __local real du_l[NDOF * CELLS];
#endif
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
#if ALONG
        du_l[k] = CG_DU(cell, i);
#endif
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
        geometry_load(&g, nodes, cell_nodes, stride, cell);
        geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
        CG_STATE(U_L, UT_L)
        DIRECTION(DU_L)
        POINT_TERMS
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
