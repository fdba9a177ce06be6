// The superconvergent u* of degree k + 1, a work-group a cell: (grad u*, grad v) = (q, grad v) for all v, and the mean of u
// (Cockburn, Gopalakrishnan and Sayas 2010, section 5). The stiffness matrix and the product of the mean with itself add up
// to a symmetric positive definite matrix, which is eliminated without pivots.
//
// Phases: metric and fluxes at the points; right-hand side and mean; matrix; elimination; back substitution.
// needs: DIM NC NFUN NSTAR NQ NNODES OP STAR STAR_GRAD GEO_GRAD WEIGHTS TABLE SCRATCH SCRATCH_IS_LOCAL THREADS
//
// Sizes
//   NSTAR    scalar functions of u*
//   SCRATCH  address space of a cell's working memory: __local, or __global where it is too large, then taken from `pool`
// Arrays
//   first      the first cell of this launch;  last: one past the last
//   pool       [group, SCRATCH_SIZE]
//   out        [NSTAR, NC, stride]  coefficients of u*, cell fastest; the others as in hdg_recovery.clh and geometry.clh
// Tables
//   OP [NQ, 1 + DIM, NFUN], STAR [NQ, NSTAR], STAR_GRAD [NQ, DIM, NSTAR], GEO_GRAD [NQ, NNODES, DIM], WEIGHTS [NQ]
// Working memory of a cell
//   matrix [NSTAR, NSTAR] upper triangle, right [NC, NSTAR], mean [NSTAR], metric [NQ, DIM, DIM], flux [NQ, NC, DIM],
//   value [NQ, 1 + NC] weights and weighted u, total [1 + NC] volume and integral of u

#define RIGHT (NSTAR * NSTAR)
#define MEAN (RIGHT + NC * NSTAR)
#define METRIC (MEAN + NSTAR)
#define FLUX (METRIC + NQ * DIM * DIM)
#define VALUE (FLUX + NQ * NC * DIM)
#define TOTAL (VALUE + NQ * (1 + NC))
#define SCRATCH_SIZE (TOTAL + 1 + NC)
#define BARRIER_SCRATCH() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define FOR_ITEMS_FROM(index, first, count) \
  for (int index = (first) + (int)get_local_id(0); index < (count); index += (int)get_local_size(0))

// Metric w J^-1 J^-T, and the flux, weights and values of u in it, at point p of a cell.
inline void star_point(int p, const Geometry *g, __global const real *tables, real *u, real *q, SCRATCH real *work)
{
  const real weight = WEIGHTS[p] * g->measure;
  work[VALUE + p * (1 + NC)] = weight;
  for (int c = 0; c < NC; ++c) work[VALUE + p * (1 + NC) + 1 + c] = weight * u[c];
  for (int r = 0; r < DIM; ++r)
    for (int s = 0; s < DIM; ++s) {
      real sum = 0;
      for (int d = 0; d < DIM; ++d) sum += g->inverse[r * DIM + d] * g->inverse[s * DIM + d];
      work[METRIC + (p * DIM + r) * DIM + s] = weight * sum;
    }
  for (int c = 0; c < NC; ++c)
    for (int r = 0; r < DIM; ++r) {
      real sum = 0;
      for (int s = 0; s < DIM; ++s) sum += work[METRIC + (p * DIM + r) * DIM + s] * q[c * DIM + s];
      work[FLUX + (p * NC + c) * DIM + r] = sum;
    }
}

// Mean of function i, and its right-hand side without the mean.
inline void star_right(int i, __global const real *tables, SCRATCH real *work)
{
  real mean = 0, right[NC];
  for (int c = 0; c < NC; ++c) right[c] = 0;
  for (int p = 0; p < NQ; ++p) {
    mean += work[VALUE + p * (1 + NC)] * STAR[p * NSTAR + i];
    for (int c = 0; c < NC; ++c)
      for (int r = 0; r < DIM; ++r)
        right[c] += STAR_GRAD[(p * DIM + r) * NSTAR + i] * work[FLUX + (p * NC + c) * DIM + r];
  }
  work[MEAN + i] = mean;
  for (int c = 0; c < NC; ++c) work[RIGHT + c * NSTAR + i] = right[c];
}

// Upper triangle of the matrix: row i in turn, its columns shared by the work-group.
inline void star_matrix(real scale, __global const real *tables, SCRATCH real *work)
{
  for (int i = 0; i < NSTAR; ++i) {
    SCRATCH real *row = work + i * NSTAR;
    const real mean = scale * work[MEAN + i];
    FOR_ITEMS_FROM(j, i, NSTAR) row[j] = mean * work[MEAN + j];
    for (int p = 0; p < NQ; ++p) {
      real h[DIM];
      for (int r = 0; r < DIM; ++r) {
        h[r] = 0;
        for (int s = 0; s < DIM; ++s)
          h[r] += work[METRIC + (p * DIM + r) * DIM + s] * STAR_GRAD[(p * DIM + s) * NSTAR + i];
      }
      TABLE const real *grad = STAR_GRAD + p * DIM * NSTAR;
      FOR_ITEMS_FROM(j, i, NSTAR) {
        real sum = row[j];
        for (int r = 0; r < DIM; ++r) sum += h[r] * grad[r * NSTAR + j];
        row[j] = sum;
      }
    }
  }
}

// The matrix becomes U of U^T D^-1 U, D its diagonal; the right-hand sides become those of U.
inline void star_eliminate(SCRATCH real *work)
{
  for (int k = 0; k < NSTAR; ++k) {
    BARRIER_SCRATCH();
    SCRATCH const real *pivot = work + k * NSTAR;
    const real inverse = 1 / pivot[k];
    for (int i = k + 1; i < NSTAR; ++i) {
      const real factor = pivot[i] * inverse;
      FOR_ITEMS_FROM(j, i, NSTAR) work[i * NSTAR + j] -= factor * pivot[j];
    }
    for (int c = 0; c < NC; ++c) {
      SCRATCH real *right = work + RIGHT + c * NSTAR;
      const real factor = right[k] * inverse;
      FOR_ITEMS_FROM(i, k + 1, NSTAR) right[i] -= factor * pivot[i];
    }
  }
}

// The right-hand sides become D times the solution.
inline void star_substitute(SCRATCH real *work)
{
  for (int k = NSTAR - 1; k >= 0; --k) {
    BARRIER_SCRATCH();
    for (int c = 0; c < NC; ++c) {
      SCRATCH real *right = work + RIGHT + c * NSTAR;
      const real x = right[k] / work[k * NSTAR + k];
      FOR_ITEMS(i, k) right[i] -= work[i * NSTAR + k] * x;
    }
  }
  BARRIER_SCRATCH();
}

KERNEL(THREADS) void hdg_star(RECOVERY_ARGUMENTS, int first, int last, __global real *pool, __global real *out)
{
#if SCRATCH_IS_LOCAL
  __local real work[SCRATCH_SIZE];
#else
  __global real *work = pool + get_group_id(0) * (size_t)SCRATCH_SIZE;
#endif
  const int cell = first + (int)get_group_id(0);
  if (cell >= last) return;
  FOR_ITEMS(p, NQ) {
    real u[NC], q[NC * DIM];
    Geometry g;
    geometry_load(&g, nodes, cell_nodes, 0, stride, cell);
    geometry_point(&g, GEO_GRAD + p * NNODES * DIM);
    recovery_state(OP + p * (1 + DIM) * NFUN, x_e, stride, cell, u, q);
    star_point(p, &g, tables, u, q, work);
  }
  BARRIER_SCRATCH();
  FOR_ITEMS(i, NSTAR) star_right(i, tables, work);
  FOR_ITEMS(c, 1 + NC) {
    real sum = 0;
    for (int p = 0; p < NQ; ++p) sum += work[VALUE + p * (1 + NC) + c];
    work[TOTAL + c] = sum;
  }
  BARRIER_SCRATCH();
  const real scale = pow(work[TOTAL], -1 - (real)2 / DIM);
  for (int c = 0; c < NC; ++c) {
    const real integral = scale * work[TOTAL + 1 + c];
    FOR_ITEMS(i, NSTAR) work[RIGHT + c * NSTAR + i] += integral * work[MEAN + i];
  }
  star_matrix(scale, tables, work);
  star_eliminate(work);
  star_substitute(work);
  FOR_ITEMS(i, NSTAR)
    for (int c = 0; c < NC; ++c)
      out[(i * NC + c) * (size_t)stride + cell] = work[RIGHT + c * NSTAR + i] / work[i * NSTAR + i];
}
