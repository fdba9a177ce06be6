// The superconvergent u* of degree k + 1, a work-group per cell: (grad u*, grad v) = (q, grad v) for all v, and the mean of u
// (Cockburn, Gopalakrishnan and Sayas 2010, section 5). The last coefficient is set to zero, which leaves a symmetric
// positive definite matrix for the others; it is eliminated without pivots. A constant is added then, which gives the mean.
//
// Affine cells need no quadrature: matrix and right-hand sides are sums of reference matrices, with the entries of the metric
// J^-1 J^-T as factors. |det J| cancels.
//
// Phases: matrix and right-hand sides; elimination; back substitution; mean.
// needs: ARGUMENTS DIM NC NFUN NSTAR NQ NNODES AFFINE TABLE SCRATCH SCRATCH_IS_LOCAL THREADS
// optional: STIFFNESS LIFTED MEANS (affine cells), OP STAR STAR_GRAD GEO_GRAD WEIGHTS (others)
//
// Sizes
//   NSTAR    scalar functions of u*;  NFREE: all but the last
//   SCRATCH  address space of a cell's working memory: __local, or __global where it is too large, then taken from `pool`
// Arrays
//   first      the first cell of this launch;  last: one past the last
//   pool       [group, SCRATCH_SIZE]
//   out        [NSTAR, NC, stride]  coefficients of u*, cell fastest; the others as in hdg_recovery.clh and geometry.clh
// Tables of affine cells
//   STIFFNESS [NMETRIC, NFREE, NFREE], LIFTED [NMETRIC, NFUN, NFREE]  products of reference gradients, of u* or lifted ones
//   with those of u*, one matrix per entry r <= s of the metric: the sum of the products (r, s) and (s, r)
//   MEANS [NFREE + NFUN]  means of the functions of u*, then of u
// Tables of other cells
//   OP [NQ, 1 + DIM, NFUN], STAR [NQ, NSTAR], STAR_GRAD [NQ, DIM, NSTAR], GEO_GRAD [NQ, NNODES, DIM], WEIGHTS [NQ]
// Working memory of a cell
//   matrix [NFREE, NFREE] upper triangle, right [NC, NFREE]; of cells that are not affine also metric [NQ, DIM, DIM],
//   flux [NQ, NC, DIM], value [NQ, 1 + NC] weights and weighted u, mean [NFREE]

#define NFREE (NSTAR - 1)
#define NMETRIC (DIM * (DIM + 1) / 2)
#define RIGHT (NFREE * NFREE)
#define METRIC (RIGHT + NC * NFREE)
#define FLUX (METRIC + NQ * DIM * DIM)
#define VALUE (FLUX + NQ * NC * DIM)
#define MEAN (VALUE + NQ * (1 + NC))
#define BARRIER_SCRATCH() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define FOR_ITEMS_FROM(index, first, count) \
  for (int index = (first) + (int)get_local_id(0); index < (count); index += (int)get_local_size(0))

// Matrix, right-hand sides and the mean of u [NC], the same in all threads.
#if AFFINE

#define SCRATCH_SIZE METRIC
#define MEAN_OF(i) MEANS[i]

static inline void star_system(const Geometry *g, int cell, int stride, __global const real *tables, __global const real *x_e,
                               SCRATCH real *work, real *mean)
{
  real metric[NMETRIC];
  for (int r = 0, m = 0; r < DIM; ++r)
    for (int s = r; s < DIM; ++s, ++m) {
      metric[m] = 0;
      for (int d = 0; d < DIM; ++d) metric[m] += g->inverse[r * DIM + d] * g->inverse[s * DIM + d];
    }
  for (int i = 0; i < NFREE; ++i)
    FOR_ITEMS_FROM(j, i, NFREE) {
      real sum = 0;
      for (int m = 0; m < NMETRIC; ++m) sum += metric[m] * STIFFNESS[(m * NFREE + i) * NFREE + j];
      work[i * NFREE + j] = sum;
    }
  for (int c = 0; c < NC; ++c) {
    SCRATCH real *right = work + RIGHT + c * NFREE;
    FOR_ITEMS(i, NFREE) right[i] = 0;
    mean[c] = 0;
    for (int k = 0; k < NFUN; ++k) {
      const real x = x_e[(k * NC + c) * (size_t)stride + cell];
      mean[c] += MEANS[NFREE + k] * x;
      FOR_ITEMS(i, NFREE)
        for (int m = 0; m < NMETRIC; ++m) right[i] += metric[m] * x * LIFTED[(m * NFUN + k) * NFREE + i];
    }
  }
}

#else

#define SCRATCH_SIZE (MEAN + NFREE)
#define MEAN_OF(i) work[MEAN + (i)]

// Metric w J^-1 J^-T, and the flux, weights and values of u in it, at point p of a cell.
static inline void star_point(int p, const Geometry *g, __global const real *tables, real *u, real *q, SCRATCH real *work)
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

static inline void star_system(Geometry *g, int cell, int stride, __global const real *tables, __global const real *x_e,
                               SCRATCH real *work, real *mean)
{
  FOR_ITEMS(p, NQ) {
    real u[NC], q[NC * DIM];
    geometry_point(g, GEO_GRAD + p * NNODES * DIM);
    recovery_state(OP + p * (1 + DIM) * NFUN, x_e, stride, cell, u, q);
    star_point(p, g, tables, u, q, work);
  }
  BARRIER_SCRATCH();
  real volume = 0;
  for (int c = 0; c < NC; ++c) mean[c] = 0;
  for (int p = 0; p < NQ; ++p) {
    volume += work[VALUE + p * (1 + NC)];
    for (int c = 0; c < NC; ++c) mean[c] += work[VALUE + p * (1 + NC) + 1 + c];
  }
  for (int c = 0; c < NC; ++c) mean[c] /= volume;
  FOR_ITEMS(i, NFREE) {
    real sum = 0, right[NC];
    for (int c = 0; c < NC; ++c) right[c] = 0;
    for (int p = 0; p < NQ; ++p) {
      sum += work[VALUE + p * (1 + NC)] * STAR[p * NSTAR + i];
      for (int c = 0; c < NC; ++c)
        for (int r = 0; r < DIM; ++r)
          right[c] += STAR_GRAD[(p * DIM + r) * NSTAR + i] * work[FLUX + (p * NC + c) * DIM + r];
    }
    work[MEAN + i] = sum / volume;
    for (int c = 0; c < NC; ++c) work[RIGHT + c * NFREE + i] = right[c];
  }
  for (int i = 0; i < NFREE; ++i) {
    SCRATCH real *row = work + i * NFREE;
    FOR_ITEMS_FROM(j, i, NFREE) row[j] = 0;
    for (int p = 0; p < NQ; ++p) {
      real h[DIM];
      for (int r = 0; r < DIM; ++r) {
        h[r] = 0;
        for (int s = 0; s < DIM; ++s)
          h[r] += work[METRIC + (p * DIM + r) * DIM + s] * STAR_GRAD[(p * DIM + s) * NSTAR + i];
      }
      TABLE const real *grad = STAR_GRAD + p * DIM * NSTAR;
      FOR_ITEMS_FROM(j, i, NFREE)
        for (int r = 0; r < DIM; ++r) row[j] += h[r] * grad[r * NSTAR + j];
    }
  }
}

#endif

// The matrix becomes U of U^T D^-1 U, D its diagonal; the right-hand sides become those of U.
static inline void star_eliminate(SCRATCH real *work)
{
  for (int k = 0; k < NFREE; ++k) {
    BARRIER_SCRATCH();
    SCRATCH const real *pivot = work + k * NFREE;
    const real inverse = 1 / pivot[k];
    for (int i = k + 1; i < NFREE; ++i) {
      const real factor = pivot[i] * inverse;
      FOR_ITEMS_FROM(j, i, NFREE) work[i * NFREE + j] -= factor * pivot[j];
    }
    for (int c = 0; c < NC; ++c) {
      SCRATCH real *right = work + RIGHT + c * NFREE;
      const real factor = right[k] * inverse;
      FOR_ITEMS_FROM(i, k + 1, NFREE) right[i] -= factor * pivot[i];
    }
  }
}

// The right-hand sides become D times the solution.
static inline void star_substitute(SCRATCH real *work)
{
  for (int k = NFREE - 1; k >= 0; --k) {
    BARRIER_SCRATCH();
    for (int c = 0; c < NC; ++c) {
      SCRATCH real *right = work + RIGHT + c * NFREE;
      const real x = right[k] / work[k * NFREE + k];
      FOR_ITEMS(i, k) right[i] -= work[i * NFREE + k] * x;
    }
  }
  BARRIER_SCRATCH();
}

KERNEL(THREADS) void hdg_star(ARGUMENTS)
{
#if SCRATCH_IS_LOCAL
  __local real work[SCRATCH_SIZE];
#else
  __global real *work = pool + get_group_id(0) * (size_t)SCRATCH_SIZE;
#endif
  const int cell = first + (int)get_group_id(0);
  if (cell >= last) return;
  Geometry g;
  geometry_load(&g, nodes, cell_nodes, stride, cell);
  real shift[NC];  // the mean of u, then the constant that gives u* this mean
  star_system(&g, cell, stride, tables, x_e, work, shift);
  star_eliminate(work);
  star_substitute(work);
  for (int c = 0; c < NC; ++c) {
    SCRATCH const real *x = work + RIGHT + c * NFREE;
    for (int i = 0; i < NFREE; ++i) shift[c] -= MEAN_OF(i) * x[i] / work[i * (NFREE + 1)];
    FOR_ITEMS(i, NSTAR)
      out[(i * NC + c) * (size_t)stride + cell] = shift[c] + (i < NFREE ? x[i] / work[i * (NFREE + 1)] : 0);
  }
}
