// Element vectors of continuous Galerkin on quadrilaterals and hexahedra by sums along lines, any physics: N^(DIM+1) operations a
// cell where one point after the other takes N^(2 DIM). After cg_tensor_group.clh.
//
// Phases:
//   first axis    from a line of nodes, gathered, to its points, values and derivatives   (second axis of hexahedra: the same again)
//   columns       last axis: at each point of a column fields, physics, fluxes, and these against the last axis' test functions
//   first axis    (after the second) against test functions of a line of nodes, written as element vector
//
// needs: ARGUMENTS ROLE ALONG DIM NC N NQ1 NLINE NCOL LINE_STEP COLUMN_STEP NNODES G LANES LOOPS POINTS STATE UNROLL SET_OF
//
// POINTS: pragma of the loop over a column's points, which are many instructions
//
// Arrays
//   out  element vectors [NDOF, stride], cell fastest; without LOOPS [cells, NDOF]; the others as in cg_point.clh

#undef TEST_LINE
// From columns v to the element vector.
#define TEST_LINE(from)                                                                             \
  CELL                                                                                              \
  real node[N];                                                                                     \
  test_first_axis(from, lane, SET_OF[c], line, node);                                               \
  NODES_OF_LINE

TENSOR_KERNEL ROLE(cg)(ARGUMENTS)
{
  BEGIN
  LOCAL(corner, NNODES * DIM) LOCAL(plane, 2 * NLINE * LINE_STEP) LOCAL(v, NC * DIM * N * COLUMN_STEP)
#if LOOPS
  LOCAL(frame, DIM * G * DIM) LOCAL(flux, NC * (1 + DIM) * NQ1)
#endif
  CORNERS
#if ALONG
  FIELD(v, DIM, du)
#else
  FIELD(v, DIM, u)
#endif
#if ALONG && STATE
  LOCAL(u, NC * DIM * N * COLUMN_STEP)
  FIELD(u, DIM, u)
#else
  __local real *u = v;
#endif
  RATES
  AUXILIARY
  // What fluxes at the points of the columns give, in place of v.
#if LOOPS
  SHARED(col, NCOL)
  {
    FOR_LANES { column_frame(corner, lane, col, frame); }
    for (int q = 0; q < NQ1; ++q) FOR_LANES
    {
      OF_COLUMN
      real f0[NC], f1[NC * DIM];
      column_fluxes(&w, constants, frame, q, ALONG, f0, f1);
      UNROLL for (int c = 0; c < NC; ++c) {
        flux[AT(c * (1 + DIM) * NQ1 + q)] = f0[c];
        UNROLL for (int r = 0; r < DIM; ++r) flux[AT((c * (1 + DIM) + 1 + r) * NQ1 + q)] = f1[c * DIM + r];
      }
    }
    for (int c = 0; c < NC; ++c) FOR_LANES
    {
      real sum[DIM * N];
      UNROLL for (int k = 0; k < DIM * N; ++k) sum[k] = 0;
      UNROLL for (int q = 0; q < NQ1; ++q) {
        real f1[DIM];
        UNROLL for (int r = 0; r < DIM; ++r) f1[r] = flux[AT((c * (1 + DIM) + 1 + r) * NQ1 + q)];
        test_point(SET_OF[c], q, flux[AT(c * (1 + DIM) * NQ1 + q)], f1, sum);
      }
      UNROLL for (int k = 0; k < DIM * N; ++k) v[c * COLUMNS + COLUMN(0, k, col)] = sum[k];
    }
  }
#else
  SHARED(col, NCOL)
  {
    OF_COLUMN
    real frame[DIM * G * DIM], sum[NC * DIM * N];
    column_frame(corner, lane, col, frame);
    UNROLL for (int k = 0; k < NC * DIM * N; ++k) sum[k] = 0;
    POINTS for (int q = 0; q < NQ1; ++q) {
      real f0[NC], f1[NC * DIM];
      column_fluxes(&w, constants, frame, q, ALONG, f0, f1);
      UNROLL for (int c = 0; c < NC; ++c) test_point(SET_OF[c], q, f0[c], f1 + c * DIM, sum + c * DIM * N);
    }
    UNROLL for (int c = 0; c < NC; ++c)
      UNROLL for (int k = 0; k < DIM * N; ++k) v[c * COLUMNS + COLUMN(0, k, col)] = sum[c * DIM * N + k];
  }
  WAIT
#endif
#if DIM == 3
  for (int c = 0; c < NC; ++c) {
    SHARED(item, N * NQ1) FOR_LANES { test_second_axis(v + c * COLUMNS, plane, lane, SET_OF[c], item); }
    WAIT
    SHARED(line, NLINE) FOR_LANES { TEST_LINE(plane) }
    WAIT
  }
#else
  for (int c = 0; c < NC; ++c) SHARED(line, NLINE) FOR_LANES { TEST_LINE(v + c * COLUMNS) }
#endif
  WRITE
}
