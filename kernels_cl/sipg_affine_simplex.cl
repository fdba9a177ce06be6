// Interior penalty for one scalar field with symmetric constant coefficients on straight simplices: one thread a cell, all
// values in registers, each own value read once, no atomics.
//
// With barycentric gradients g_i of a cell K and the coefficient A, all geometry is in the metric m_ij = |K| g_i·A g_j, whose
// rows add up to zero. |F| A∇u·n = -DIM Σ_j m_fj ∂_j u on the facet opposite vertex f, so with h_j = Σ_i m_ij ∂_i u at the
// nodes of degree p - 1, where gradients are exact:
//   cell    Σ_j ∂_j φ · (mean over K of h_j)
//   facet   φ · mean over F of DIM (own h_f - other's h_f) / 2 + penalty jump;   ∂_j φ · m_fj DIM θ/2 mean of jump
// A derivative at a node goes along edges from a vertex of the node's own edge or face, which makes the tables sparse.
// A neighbour is read in the order of vertices that begins with the one opposite the facet: one table serves all facets.
// needs: DIM NB NF NG NFG CLASSES REACTION AUTOMATIC ROLLED THETA GROUP GRADIENT GAUGE GRADIENT_MASS ORDER GRADIENT_ORDER
// needs: FACET_NODES FACET_GRADIENTS LIFT_OF FACET_MASS MIXED_MASS PAIR NEIGHBOUR_PAIR
// optional: MASS
//
// Sizes
//   NB, NG    nodes of degree p and p - 1 of a cell (p = 1: the centroid);  NF, NFG those on a facet
//   CLASSES   whether cells share data by classes of congruent cells with congruent neighbours
//   REACTION  whether there is a term of order zero
//   ROLLED    whether facets are done one after the other by the same instructions, with sums in local memory
//   AUTOMATIC whether the penalty is a multiple of the larger m_ff of both sides; else stored ones are read
// Tables
//   GRADIENT [NG, DIM + 1, NB]   derivative along the edge from vertex GAUGE [NG] to another, zero for GAUGE itself
//   ORDER [DIM + 1, NB], GRADIENT_ORDER [DIM + 1, NG]  the cell's number of each node if vertex f comes first, the others
//            ascending;  PAIR, NEIGHBOUR_PAIR [DIM + 1, DIM + 1] row of the metric: i, j; vertex f, another in that order
//   FACET_NODES [NF], FACET_GRADIENTS [NFG]  in such an order, those on the facet opposite the first vertex
//   LIFT_OF [DIM + 1, NG]        which of the facet's NFG nodes a node is, or -1
//   FACET_MASS [NF, NF], MIXED_MASS [NFG, NF], GRADIENT_MASS [NG, NG], MASS [NB, NB]  means of products of basis functions
// Arrays, cell fastest
//   behind   [DIM + 1, stride]  4 neighbour + its facet;  -1 Dirichlet, -2 natural condition
//   class_of [stride]           class of a cell
//   data     [PAIRS + 1, stride] metric of all extended cells, reaction times the measure of cells; or, of classes,
//            [ROWS, data_stride]: metric, reaction, then of each facet the neighbour's m_fj [DIM] in its order
//   penalty  [DIM + 1, stride]  penalty times the facet's measure
//   u_owned, u_tail, out        chunks of 32 cells, interleaved;   parts [num_cells] of the sum u·out, or none

#define INLINE __attribute__((always_inline)) inline
#define CHUNK 32
#define NV (DIM + 1)
#define PAIRS (DIM * (DIM + 1) / 2)

// Sums that live across the facets: in registers, or where these are short in local memory, a column for each work-item.
#if ROLLED
#define KEPT __local real
#define KEPT_SIZE GROUP
#define AT(entry) ((entry) * GROUP + (int)get_local_id(0))
#else
#define KEPT real
#define KEPT_SIZE 1
#define AT(entry) (entry)
#endif

// Entry k of row f of a table [NV, count], without a load.
INLINE int simplex_chosen(__constant const int *table, int count, int k, int f)
{
  int chosen = table[k];
  #pragma unroll
  for (int i = 1; i < NV; ++i) chosen = f == i ? table[i * count + k] : chosen;
  return chosen;
}

// Values of a cell: the first of them, and the distance between rows.
INLINE __global const real *simplex_values(__global const real *values, int cell, int num_cells, int *distance)
{
  const int first = cell & ~(CHUNK - 1);
  *distance = min(CHUNK, num_cells - first);
  return values + (size_t)first * NB + (cell - first);
}

// Metric m [NV, NV] of a cell from that of pairs of vertices.
INLINE void simplex_metric(__global const real *data, int stride, int column, real *m)
{
  #pragma unroll
  for (int i = 0; i < NV; ++i) m[i * NV + i] = 0;
  #pragma unroll
  for (int i = 0; i < NV; ++i)
    #pragma unroll
    for (int j = i + 1; j < NV; ++j) {
      const real value = data[PAIR[i * NV + j] * stride + column];
      m[i * NV + j] = value;
      m[j * NV + i] = value;
      m[i * NV + i] -= value;
      m[j * NV + j] -= value;
    }
}

// h [NG, NV] of values u [NB].
INLINE void simplex_slopes(const real *u, const real *m, real *h)
{
  #pragma unroll
  for (int a = 0; a < NG; ++a) {
    real slope[NV];
    #pragma unroll
    for (int i = 0; i < NV; ++i) {
      slope[i] = 0;
      #pragma unroll
      for (int b = 0; b < NB; ++b)
        if (GRADIENT[(a * NV + i) * NB + b] != 0) slope[i] += GRADIENT[(a * NV + i) * NB + b] * u[b];
    }
    h[a * NV] = 0;
    #pragma unroll
    for (int j = 1; j < NV; ++j) {
      h[a * NV + j] = 0;
      #pragma unroll
      for (int i = 0; i < NV; ++i)
        if (i != GAUGE[a]) h[a * NV + j] += m[j * NV + i] * slope[i];
      h[a * NV] -= h[a * NV + j];
    }
  }
}

// Subtract a side's trace times `value` from jump [NF], and its h_f, with the metric's row n [NV], times `slope` from
// flux [NFG]. rows, distance, code: the side's values, and its facet.
INLINE void simplex_side(__global const real *rows, int distance, int code, real value, real slope, const real *n, real *jump,
                         real *flux)
{
  real along[NFG * NV];
  #pragma unroll
  for (int k = 0; k < NFG * NV; ++k) along[k] = 0;
  #pragma unroll
  for (int b = 0; b < NB; ++b) {
    const real u = rows[simplex_chosen(ORDER, NB, b, code) * distance];
    #pragma unroll
    for (int k = 0; k < NFG; ++k)
      #pragma unroll
      for (int i = 0; i < NV; ++i) {
        const real entry = GRADIENT[(FACET_GRADIENTS[k] * NV + i) * NB + b];
        if (entry != 0) along[k * NV + i] += entry * u;
      }
    #pragma unroll
    for (int k = 0; k < NF; ++k)
      if (FACET_NODES[k] == b) jump[k] -= value * u;
  }
  #pragma unroll
  for (int k = 0; k < NFG; ++k) {
    real sum = 0;
    #pragma unroll
    for (int i = 0; i < NV; ++i)
      if (i != GAUGE[FACET_GRADIENTS[k]]) sum += n[i] * along[k * NV + i];
    flux[k] -= slope * sum;
  }
}

// Add a facet's terms: DIM flux [NFG] and sigma jump [NF], tested with the functions on facet f, to r [NB]; and
// lift [NV, NFG] of the facet, scaled.
INLINE void simplex_facet_terms(int f, const real *jump, const real *flux, real sigma, real scale, KEPT *r, KEPT *lift)
{
  #pragma unroll
  for (int k = 0; k < NF; ++k) {
    real of_jump = 0, of_flux = 0;
    #pragma unroll
    for (int l = 0; l < NF; ++l) of_jump += FACET_MASS[k * NF + l] * jump[l];
    #pragma unroll
    for (int l = 0; l < NFG; ++l) of_flux += MIXED_MASS[l * NF + k] * flux[l];
    r[AT(ORDER[f * NB + FACET_NODES[k]])] += sigma * of_jump + DIM * of_flux;
  }
  #pragma unroll
  for (int l = 0; l < NFG; ++l) {
    real sum = 0;
    #pragma unroll
    for (int k = 0; k < NF; ++k) sum += MIXED_MASS[l * NF + k] * jump[k];
    lift[AT(f * NFG + l)] = scale * sum;
  }
}

// out [NB], `distance` apart: r [NB] and what h [NG, NV], and lift [NV, NFG] of the facets, give with the derivatives of the
// test functions. Returns u·out.
INLINE real simplex_test(const real *h, const KEPT *lift, const real *m, const KEPT *r, const real *u, __global real *out,
                         int distance)
{
  real sum[NB];
  #pragma unroll
  for (int b = 0; b < NB; ++b) sum[b] = r[AT(b)];
  #pragma unroll
  for (int a = 0; a < NG; ++a) {
    real test[NV];
    test[0] = 0;
    #pragma unroll
    for (int j = 1; j < NV; ++j) {
      test[j] = 0;
      #pragma unroll
      for (int b = 0; b < NG; ++b) test[j] += GRADIENT_MASS[a * NG + b] * h[b * NV + j];
      #pragma unroll
      for (int f = 0; f < NV; ++f)
        if (LIFT_OF[f * NG + a] >= 0) test[j] += m[j * NV + f] * lift[AT(f * NFG + LIFT_OF[f * NG + a])];
      test[0] -= test[j];
    }
    #pragma unroll
    for (int i = 0; i < NV; ++i)
      #pragma unroll
      for (int b = 0; b < NB; ++b)
        if (GRADIENT[(a * NV + i) * NB + b] != 0) sum[b] += GRADIENT[(a * NV + i) * NB + b] * test[i];
  }
  #pragma unroll
  for (int b = 0; b < NB; ++b) out[b * distance] = sum[b];
  real product = 0;
  #pragma unroll
  for (int b = 0; b < NB; ++b) product += u[b] * sum[b];
  return product;
}

// Row n [NV] of the metric of a cell's facet, in the order that begins with the vertex opposite.
INLINE void simplex_row(__global const real *data, int stride, int column, int facet, real *n)
{
  n[0] = 0;
  #pragma unroll
  for (int j = 1; j < NV; ++j) {
    n[j] = data[simplex_chosen(NEIGHBOUR_PAIR, NV, j, facet) * stride + column];
    n[0] -= n[j];
  }
}

KERNEL(GROUP) void sipg_affine_simplex(int num_chunks, int num_cells, int num_ghosts, int stride, int data_stride, real factor,
                                       __global const int *restrict behind, __global const ushort *restrict class_of,
                                       __global const real *restrict data, __global const real *restrict penalty,
                                       __global const int *restrict chunks, __global const real *restrict u_owned,
                                       __global const real *restrict u_tail, __global real *restrict out,
                                       __global real *restrict parts)
{
  KEPT r[NB * KEPT_SIZE], lift[NV * NFG * KEPT_SIZE];
  const int slot = get_global_id(0) / CHUNK;
  if (slot >= num_chunks) return;
  const int cell = chunks[slot] * CHUNK + get_global_id(0) % CHUNK;
  if (cell >= num_cells) return;
  const int column = CLASSES ? class_of[cell] : cell;
  int own_distance;
  __global const real *own = simplex_values(u_owned, cell, num_cells, &own_distance);
  real u[NB], m[NV * NV], h[NG * NV];
#if ROLLED
  #pragma unroll
  for (int b = 0; b < NB; ++b) r[AT(b)] = 0;
  #pragma unroll 1
#else
  #pragma unroll
  for (int b = 0; b < NB; ++b) u[b] = own[b * own_distance], r[b] = 0;
  simplex_metric(data, data_stride, column, m);
  simplex_slopes(u, m, h);
  #pragma unroll
#endif
  for (int f = 0; f < NV; ++f) {
    const int link = behind[f * stride + cell], next = link >= 0 ? link >> 2 : cell, code = link & 3;
    const real inside = link >= 0 ? 1 : 0, share = link >= 0 ? (real)0.5 : link == -1 ? 1 : 0;
    int distance;
    __global const real *other = next < num_cells
                                     ? simplex_values(u_owned, next, num_cells, &distance)
                                     : simplex_values(u_tail, next - num_cells, num_ghosts, &distance);
    real n[NV], jump[NF], flux[NFG];
#if CLASSES
    n[0] = 0;
    #pragma unroll
    for (int j = 1; j < NV; ++j) {
      n[j] = data[(PAIRS + f * DIM + j) * data_stride + column];
      n[0] -= n[j];
    }
#else
    simplex_row(data, data_stride, next, code, n);
#endif
#if ROLLED
    real own_n[NV];
    simplex_row(data, data_stride, column, f, own_n);
    const real diagonal = own_n[0];
#else
    const real diagonal = m[f * NV + f];
#endif
#if AUTOMATIC
    const real sigma = factor * (link >= 0 ? fmax(diagonal, n[0]) : 2 * share * diagonal);
#else
    const real sigma = penalty[f * stride + cell];
#endif
#if ROLLED
    #pragma unroll
    for (int k = 0; k < NF; ++k) jump[k] = 0;
    #pragma unroll
    for (int k = 0; k < NFG; ++k) flux[k] = 0;
    simplex_side(own, own_distance, f, -1, -share, own_n, jump, flux);
#else
    #pragma unroll
    for (int k = 0; k < NF; ++k) jump[k] = u[ORDER[f * NB + FACET_NODES[k]]];
    #pragma unroll
    for (int k = 0; k < NFG; ++k) flux[k] = share * h[GRADIENT_ORDER[f * NG + FACET_GRADIENTS[k]] * NV + f];
#endif
    simplex_side(other, distance, code, inside, (real)0.5 * inside, n, jump, flux);
    simplex_facet_terms(f, jump, flux, sigma, THETA * DIM * share, r, lift);
  }
#if ROLLED
  #pragma unroll
  for (int b = 0; b < NB; ++b) u[b] = own[b * own_distance];
  simplex_metric(data, data_stride, column, m);
  simplex_slopes(u, m, h);
#endif
#if REACTION
  const real reaction = data[PAIRS * data_stride + column];
  #pragma unroll
  for (int b = 0; b < NB; ++b) {
    real sum = 0;
    #pragma unroll
    for (int k = 0; k < NB; ++k) sum += MASS[b * NB + k] * u[k];
    r[AT(b)] += reaction * sum;
  }
#endif
  const real product = simplex_test(h, lift, m, r, u, out + (own - u_owned), own_distance);
  if (parts) parts[cell] = product;
}
