// Diagonals of element matrices on quadrilaterals and hexahedra by sums along lines. After cg_tensor_group.clh.
//
// An entry is a sum over points of the Jacobian between a basis function's value and derivatives and these themselves: for each pair of
// them a number at the point times a product of functions on lines, each a square BB of values, a product BG of value and derivative,
// or a square GG of derivatives. Pairs that agree in their products along an axis are summed as soon as that axis is done.
//
// needs: ARGUMENTS DIM NC N NQ1 NLINE NCOL LINE_STEP COLUMN_STEP NNODES G LANES LOOPS STATE UNROLL SET_OF
//
// Arrays
//   out  diagonals [NDOF, stride], cell fastest; without LOOPS [cells, NDOF]; the others as in cg_point.clh
// Local memory
//   v [OTHERS, N, NCOL]  sums over the last axis, by products along the others: of hexahedra (BB, BB), (BG, BB), (BB, BG), (GG, BB),
//                        (BG, BG), (BB, GG), of quadrilaterals BB, BG, GG; those then go to plane [3, NLINE, NQ1]: BB, BG, GG

#define OTHERS (DIM * (DIM + 1) / 2)
#define PAIRS (OTHERS + DIM + 1)
#define BB(set, q, i) (VALUE1(set, q, i) * VALUE1(set, q, i))
#define BG(set, q, i) (VALUE1(set, q, i) * SLOPE1(set, q, i))
#define GG(set, q, i) (SLOPE1(set, q, i) * SLOPE1(set, q, i))

// Component c's pairs [PAIRS] at point q of a column: of value and derivatives along all axes but the last, of each of these with the
// derivative along the last axis, and of that with itself.
INLINE void column_pairs(const Column *w, const real *constants, FRAME const real *frame, int q, int c, real *pair)
{
  Point p;
  real entry[(1 + DIM) * (1 + DIM)];  // [test, trial]
  column_state(w, frame, q, STATE, &p);
  UNROLL for (int trial = 0; trial <= DIM; ++trial) {
    real du[NC], du_x[NC * DIM], du_t[NC], f0[NC], f1[NC * DIM];
    UNROLL for (int k = 0; k < NC; ++k) {
      du[k] = k == c && trial == 0 ? 1 : 0;
      du_t[k] = w->shift * du[k];
      UNROLL for (int d = 0; d < DIM; ++d)
        du_x[k * DIM + d] = k == c && trial > 0 ? p.g.inverse[(trial > 0 ? trial - 1 : 0) * DIM + d] : 0;
    }
    direction_fluxes(w, constants, &p, du, du_x, du_t, f0, f1);
    UNROLL for (int test = 0; test <= DIM; ++test) {
      real found = 0;
      UNROLL for (int k = 0; k < NC; ++k) found = k == c ? (test ? f1[k * DIM + (test ? test - 1 : 0)] : f0[k]) : found;
      entry[test * (1 + DIM) + trial] = found;
    }
  }
  int n = 0;
  UNROLL for (int i = 0; i < DIM; ++i)
    UNROLL for (int j = i; j < DIM; ++j) pair[n++] = entry[i * (1 + DIM) + j] + (j > i ? entry[j * (1 + DIM) + i] : 0);
  UNROLL for (int i = 0; i < DIM; ++i) pair[OTHERS + i] = entry[i * (1 + DIM) + DIM] + entry[DIM * (1 + DIM) + i];
  pair[OTHERS + DIM] = entry[(1 + DIM) * (1 + DIM) - 1];
}

// Add a point's pairs to sum [OTHERS, N].
INLINE void add_pairs(int set, int q, const real *pair, real *sum)
{
  UNROLL for (int k = 0; k < N; ++k) {
    UNROLL for (int j = 0; j < OTHERS; ++j) sum[j * N + k] += BB(set, q, k) * pair[j];
    UNROLL for (int j = 0; j < DIM; ++j) sum[j * N + k] += BG(set, q, k) * pair[OTHERS + j];
    sum[k] += GG(set, q, k) * pair[OTHERS + DIM];
  }
}

// Sum of three rows of products along an axis, at basis function i: BB with x, BG with y, GG with z, each at `step`.
#define PRODUCTS(sum, set, i, x, y, z) \
  UNROLL for (int q = 0; q < NQ1; ++q) sum += BB(set, q, i) * (x) + BG(set, q, i) * (y) + GG(set, q, i) * (z);

#if DIM == 3
// Sums over the second axis.
INLINE void pairs_second_axis(__local const real *v, __local real *plane, int lane, int set, int item)
{
  const int k = item / NQ1, a = item % NQ1;
#define AT_POINT(other) v[COLUMN(other, k, q * NQ1 + a)]
  UNROLL for (int j = 0; j < N; ++j) {
    real values = 0, mixed = 0, slopes = 0;
    PRODUCTS(values, set, j, AT_POINT(0), AT_POINT(2), AT_POINT(5))
    UNROLL for (int q = 0; q < NQ1; ++q) {
      mixed += BB(set, q, j) * AT_POINT(1) + BG(set, q, j) * AT_POINT(4);
      slopes += BB(set, q, j) * AT_POINT(3);
    }
    plane[LINE(0, k * N + j, a)] = values;
    plane[LINE(1, k * N + j, a)] = mixed;
    plane[LINE(2, k * N + j, a)] = slopes;
  }
}
#endif

// Sums over the first axis, for the nodes [N] of a line.
INLINE void pairs_first_axis(__local const real *from, int lane, int set, int line, real *node)
{
  UNROLL for (int i = 0; i < N; ++i) {
    node[i] = 0;
    PRODUCTS(node[i], set, i, from[LINE(0, line, q)], from[LINE(1, line, q)], from[LINE(2, line, q)])
  }
}

TENSOR_KERNEL cg_diagonal(ARGUMENTS)
{
  BEGIN
  LOCAL(corner, NNODES * DIM)
  LOCAL(plane, 3 * NLINE * LINE_STEP)
  LOCAL(v, OTHERS * N * COLUMN_STEP)
#if LOOPS
  LOCAL(frame, DIM * G * DIM)
  LOCAL(pairs, PAIRS * NQ1)
#endif
  CORNERS
#if STATE
  LOCAL(u, NC * DIM * N * COLUMN_STEP)
  FIELD(u, DIM, u)
#else
  __local real *u = v;
#endif
  RATES
  AUXILIARY
  WAIT
  for (int c = 0; c < NC; ++c) {
    SHARED(col, NCOL)
    {
#if LOOPS
      FOR_LANES { column_frame(corner, lane, col, frame); }
      for (int q = 0; q < NQ1; ++q) FOR_LANES
      {
        OF_COLUMN
        real pair[PAIRS];
        column_pairs(&w, constants, frame, q, c, pair);
        UNROLL for (int n = 0; n < PAIRS; ++n) pairs[AT(n * NQ1 + q)] = pair[n];
      }
      FOR_LANES
      {
        real sum[OTHERS * N];
        UNROLL for (int k = 0; k < OTHERS * N; ++k) sum[k] = 0;
        UNROLL for (int q = 0; q < NQ1; ++q) {
          real pair[PAIRS];
          UNROLL for (int n = 0; n < PAIRS; ++n) pair[n] = pairs[AT(n * NQ1 + q)];
          add_pairs(SET_OF[c], q, pair, sum);
        }
        UNROLL for (int k = 0; k < OTHERS * N; ++k) v[COLUMN(0, k, col)] = sum[k];
      }
#else
      OF_COLUMN
      real frame[DIM * G * DIM], sum[OTHERS * N];
      column_frame(corner, lane, col, frame);
      UNROLL for (int k = 0; k < OTHERS * N; ++k) sum[k] = 0;
      ROLLED for (int q = 0; q < NQ1; ++q) {
        real pair[PAIRS];
        column_pairs(&w, constants, frame, q, c, pair);
        add_pairs(SET_OF[c], q, pair, sum);
      }
      UNROLL for (int k = 0; k < OTHERS * N; ++k) v[COLUMN(0, k, col)] = sum[k];
#endif
    }
    WAIT
#if DIM == 3
    SHARED(item, N * NQ1) FOR_LANES { pairs_second_axis(v, plane, lane, SET_OF[c], item); }
    WAIT
#endif
    SHARED(line, NLINE) FOR_LANES
    {
      CELL
      real node[N];
      pairs_first_axis(DIM == 3 ? plane : v, lane, SET_OF[c], line, node);
      NODES_OF_LINE
    }
    WAIT
  }
  WRITE
}
