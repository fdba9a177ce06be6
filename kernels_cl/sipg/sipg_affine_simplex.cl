// Interior penalty for one scalar field with symmetric constant coefficients on straight simplices: one thread a cell, all
// values in registers, each own value read once, no atomics. Formulas and tables: sipg_affine_simplex.clh, which comes first.
// needs: ARGUMENTS NB NF NG NFG CLASSES REACTION AUTOMATIC ROLLED THETA GROUP GRADIENT_ORDER FACET_NODES FACET_GRADIENTS
// optional: MASS
//
// Sizes
//   CLASSES   whether cells share data by classes of congruent cells with congruent neighbours
//   REACTION  whether there is a term of order zero
//   AUTOMATIC whether the penalty is a multiple of the larger m_ff of both sides; else stored ones are read
// Tables
//   MASS [NB, NB]  means of products of basis functions
// Arrays, cell fastest
//   behind   [DIM + 1, stride]  4 neighbour + its facet;  -1 Dirichlet, -2 natural condition
//   class_of [stride]           class of a cell
//   data     [PAIRS + 1, stride] metric of all extended cells, reaction times the measure of cells; or, of classes,
//            [ROWS, data_stride]: metric, reaction, then of each facet the neighbour's m_fj [DIM] in its order
//   penalty  [DIM + 1, stride]  penalty times the facet's measure
//   u_owned, u_tail, out        chunks of 32 cells, interleaved;   parts [num_cells] of the sum u·out, or none

KERNEL(GROUP) void sipg_affine_simplex(ARGUMENTS)
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
