// Element vectors of continuous Galerkin on quadrilaterals and hexahedra by sums along lines, any physics: N^(DIM+1) operations a
// cell where one point after the other takes N^(2 DIM). After cg_tensor.clh.
//
// A work-group holds LANES cells. Phases:
//   first axis    from a line of nodes, gathered, to its points, values and derivatives   (second axis of hexahedra: the same again)
//   columns       last axis: at each point of a column fields, physics, fluxes, and these against the last axis' test functions
//   first axis    (after the second) against test functions of a line of nodes, written as element vector
// On a GPU a work-item does a line or a column of one cell, THREADS of them a cell; on a CPU (LOOPS) one work-item does all, LANES
// cells at once as vectors.
//
// needs: DIM NC N NQ1 NLINE NCOL NNODES G LANES LOOPS TIME STATE PADDED NODAL UNROLL DOF_AT AUX_AT SET_OF AUX_START NODAL_ROWS GEO_ORDER
//
// Arrays
//   out [NDOF, stride]  element vector, cell fastest; the others as in cg_point.clh
// Tables
//   DOF_AT [NC, N^DIM]  degree of freedom of each node of a component, first axis fastest, or -1;  AUX_AT [N^DIM] row of nodal
//   auxiliary data;  NODAL_ROWS [NODAL] first row of each nodal auxiliary component;  GEO_ORDER [NNODES] row of cell_nodes
// Local memory, all with LANES cells fastest
//   corner [NNODES, DIM]; plane [2, NLINE, NQ1]; columns as in cg_tensor.clh

#if LOOPS
#define SHARED(index, count) for (int index = 0; index < (count); ++index)
#define FOR_LANES _Pragma("clang loop vectorize(assume_safety) vectorize_width(LANES)") for (int lane = 0; lane < LANES; ++lane)
#define TENSOR_KERNEL KERNEL(1) __attribute__((min_vector_width(512))) void
#define WAIT
#define FIRST_CELL const int first = (int)get_global_id(0) * LANES;
#else
#define SHARED(index, count) for (int index = (int)get_local_id(0) / LANES; index < (count); index += THREADS)
#define FOR_LANES
#define TENSOR_KERNEL KERNEL(LANES * THREADS) void
#define WAIT BARRIER_LOCAL();
#define FIRST_CELL \
  const int first = (int)(get_global_id(0) / (LANES * THREADS)) * LANES, lane = (int)get_local_id(0) % LANES;
#endif

// Declares a cell; lanes behind the last one repeat it.
#define CELL const int cell = min(first + lane, num_cells - 1);

#define AUX_NODE(cell, i) aux[(size_t)(i) * stride + (cell)]
#define DOF_OF(c, node) DOF_AT[(c) * (NLINE * N) + (node)]
#define ROW_OF(k, node) (AUX_AT[node] < 0 ? -1 : NODAL_ROWS[k] + AUX_AT[node])

// Columns v [components, kinds, N, NCOL] of what LOAD(cell, row) gives, row being ROW(component, node).
#if DIM == 3
#define EVALUATE(v, components, kinds, SET, ROW, LOAD)                                                                    \
  for (int c = 0; c < (components); ++c) {                                                                               \
    SHARED(line, NLINE) FOR_LANES { LOAD_LINE(ROW, LOAD) first_axis(plane, lane, SET, (kinds) > 1, line, node); }         \
    WAIT                                                                                                                 \
    SHARED(item, N * NQ1) FOR_LANES                                                                                       \
    { second_axis(plane, (v) + c * (kinds) * (N * NCOL * LANES), lane, SET, (kinds) > 1, item); }                          \
    WAIT                                                                                                                 \
  }
#else
#define EVALUATE(v, components, kinds, SET, ROW, LOAD)                                                                    \
  for (int c = 0; c < (components); ++c)                                                                                 \
    SHARED(line, NLINE) FOR_LANES                                                                                         \
    { LOAD_LINE(ROW, LOAD) first_axis((v) + c * (kinds) * (N * NCOL * LANES), lane, SET, (kinds) > 1, line, node); }       \
  WAIT
#endif
#define LOAD_LINE(ROW, LOAD)                                 \
  CELL                                                       \
  real node[N];                                              \
  UNROLL for (int i = 0; i < N; ++i) {                       \
    const int row = ROW(c, line * N + i);                    \
    node[i] = !PADDED || row >= 0 ? LOAD(cell, row) : 0;     \
  }

#if TIME
#define RATES __local real u_t[NC * (COLUMNS / DIM)]; EVALUATE(u_t, NC, 1, SET_OF[c], DOF_OF, CG_UT)
#else
#define RATES __local real *u_t = plane;
#endif
#if NODAL
#define AUXILIARY __local real a[NODAL * COLUMNS]; EVALUATE(a, NODAL, DIM, 0, ROW_OF, AUX_NODE)
#else
#define AUXILIARY __local real *a = plane;
#endif

// What fluxes at the points of the columns give, in place of v.
#define OF_COLUMN                                                                       \
  CELL                                                                                 \
  POINT_LOAD_CONSTANTS                                                                 \
  const Column w = {u, u_t, v, a, aux, lane, cell, stride, col, t, shift};
#if LOOPS
#define COLUMN_PASS(action)                                                                                             \
  SHARED(col, NCOL)                                                                                                     \
  {                                                                                                                     \
    FOR_LANES { column_frame(corner, lane, col, frame); }                                                               \
    for (int q = 0; q < NQ1; ++q) FOR_LANES                                                                             \
    {                                                                                                                   \
      OF_COLUMN                                                                                                         \
      real f0[NC], f1[NC * DIM];                                                                                        \
      column_fluxes(&w, constants, frame, q, action, f0, f1);                                                           \
      UNROLL for (int c = 0; c < NC; ++c) {                                                                             \
        flux[AT(c * (1 + DIM) * NQ1 + q)] = f0[c];                                                                      \
        UNROLL for (int r = 0; r < DIM; ++r) flux[AT((c * (1 + DIM) + 1 + r) * NQ1 + q)] = f1[c * DIM + r];             \
      }                                                                                                                 \
    }                                                                                                                   \
    for (int c = 0; c < NC; ++c) FOR_LANES                                                                              \
    {                                                                                                                   \
      real sum[DIM * N];                                                                                                \
      UNROLL for (int k = 0; k < DIM * N; ++k) sum[k] = 0;                                                              \
      UNROLL for (int q = 0; q < NQ1; ++q) {                                                                            \
        real f1[DIM];                                                                                                   \
        UNROLL for (int r = 0; r < DIM; ++r) f1[r] = flux[AT((c * (1 + DIM) + 1 + r) * NQ1 + q)];                       \
        test_point(SET_OF[c], q, flux[AT(c * (1 + DIM) * NQ1 + q)], f1, sum);                                           \
      }                                                                                                                 \
      UNROLL for (int k = 0; k < DIM * N; ++k) v[c * COLUMNS + COLUMN(0, k, col)] = sum[k];                             \
    }                                                                                                                   \
  }
#define OF_LOOPS __local real frame[DIM * G * DIM * LANES], flux[NC * (1 + DIM) * NQ1 * LANES];
#else
#define COLUMN_PASS(action)                                                                                             \
  SHARED(col, NCOL)                                                                                                     \
  {                                                                                                                     \
    OF_COLUMN                                                                                                           \
    real frame[DIM * G * DIM], sum[NC * DIM * N];                                                                       \
    column_frame(corner, lane, col, frame);                                                                             \
    UNROLL for (int k = 0; k < NC * DIM * N; ++k) sum[k] = 0;                                                           \
    ROLLED for (int q = 0; q < NQ1; ++q) {                                                                              \
      real f0[NC], f1[NC * DIM];                                                                                        \
      column_fluxes(&w, constants, frame, q, action, f0, f1);                                                           \
      UNROLL for (int c = 0; c < NC; ++c) test_point(SET_OF[c], q, f0[c], f1 + c * DIM, sum + c * DIM * N);             \
    }                                                                                                                   \
    UNROLL for (int c = 0; c < NC; ++c)                                                                                 \
      UNROLL for (int k = 0; k < DIM * N; ++k) v[c * COLUMNS + COLUMN(0, k, col)] = sum[c * DIM * N + k];               \
  }                                                                                                                     \
  WAIT
#define OF_LOOPS
#endif

// From columns v to the element vector.
#define WRITE_LINE(from)                                                                            \
  CELL                                                                                              \
  real node[N];                                                                                     \
  test_first_axis(from, lane, SET_OF[c], line, node);                                               \
  UNROLL for (int i = 0; i < N; ++i) {                                                              \
    const int dof = DOF_OF(c, line * N + i);                                                        \
    if (first + lane == cell && (!PADDED || dof >= 0)) out[dof * stride + first + lane] = node[i];  \
  }
#if DIM == 3
#define TEST                                                                                                    \
  for (int c = 0; c < NC; ++c) {                                                                                \
    SHARED(item, N * NQ1) FOR_LANES { test_second_axis(v + c * COLUMNS, plane, lane, SET_OF[c], item); }        \
    WAIT                                                                                                        \
    SHARED(line, NLINE) FOR_LANES { WRITE_LINE(plane) }                                                         \
    WAIT                                                                                                        \
  }
#else
#define TEST \
  for (int c = 0; c < NC; ++c) SHARED(line, NLINE) FOR_LANES { WRITE_LINE(v + c * COLUMNS) }
#endif

#define CORNERS                                                                                                 \
  SHARED(k, NNODES * DIM) FOR_LANES                                                                             \
  {                                                                                                             \
    CELL                                                                                                        \
    corner[AT(k)] = nodes[cell_nodes[GEO_ORDER[k / DIM] * stride + cell] * DIM + k % DIM];                      \
  }

TENSOR_KERNEL cg_residual(CG_ARGUMENTS, __global real *out)
{
  __local real corner[NNODES * DIM * LANES], plane[2 * NLINE * NQ1 * LANES], v[NC * COLUMNS];
  OF_LOOPS
  FIRST_CELL
  CORNERS
  EVALUATE(v, NC, DIM, SET_OF[c], DOF_OF, CG_U)
  __local real *u = v;
  RATES
  AUXILIARY
  COLUMN_PASS(0)
  TEST
}

// Action of the Jacobian at u on du.
TENSOR_KERNEL cg_action(CG_ARGUMENTS, __global real *out)
{
  __local real corner[NNODES * DIM * LANES], plane[2 * NLINE * NQ1 * LANES], v[NC * COLUMNS];
  OF_LOOPS
  FIRST_CELL
  CORNERS
  EVALUATE(v, NC, DIM, SET_OF[c], DOF_OF, CG_DU)
#if STATE
  __local real u[NC * COLUMNS];
  EVALUATE(u, NC, DIM, SET_OF[c], DOF_OF, CG_U)
#else
  __local real *u = v;
#endif
  RATES
  AUXILIARY
  COLUMN_PASS(1)
  TEST
}
