// A symmetric trace matrix, half of its entries stored: the blocks between two facets of each cell once, the summed block
// of each facet packed. One launch for a patch of consecutive cells gathers, multiplies and sums; a second one adds what a
// facet between two patches gets from the later one. No atomics: the order of all sums is fixed.
// needs: M BLOCKED NC NP F MC CELLS PARTS CHUNK STEP TESTED
//
// M = NP NC     unknowns of a facet: nodes, then components        F      facets of a cell
// MC = F M      unknowns of a cell                                 CELLS  cells of a patch
// PARTS         threads of a cell: F / 2, which take pairs of facets that have none in common, or 1
// CHUNK         unknowns taken at once, a divisor of M             STEP   M or M + 1, an odd number: local memory's banks
// TESTED        cells of a work-group that tells how far they are from symmetric
//
// A place is a facet of a patch: first those that the patch owns (it has their first cell), ascending, then the others.
//
// Arrays
//   pairs       [patch, PAIRS M M, CELLS] entry (i of facet a, k of facet b < a of a cell) at pair_entry(a, i, b, k)
//   own         [M (M + 1) / 2, owned facets] of each patch: entry (i, k <= i) of a facet's own block at lower(i, k)
//   first       [patch + 1, 2]            first place of each patch; its first owned facet in the order of `own`
//   facet       [place]                   facet at each place
//   slot        [F, cell_stride]          2 place + side of a cell's facet, side 1 for its second cell; 2 most: essential
//   cut         [place not owned, M]      what patches leave to the owners
//   values      local [most + 1, STEP] of x and [most + 1, 2, STEP] of y, most being that of places of a patch
//   parts       [patch, thread] of the sum x·y on this rank, or none
//   numbers     [M, number_stride]        see trace_numbers.clh
//   K           [MC, tile_stride, MC]     matrices of the cells first_cell … first_cell + count - 1, rows fastest
//   orientation [cell, F]                 row of permutations;  permutations [orientation, NP] node of the cell's facet

#define PAIRS (F * (F - 1) / 2)
#define EACH(i) _Pragma("unroll") for (int i = 0; i < CHUNK; ++i)

static inline int lower(int i, int k) { return i < k ? k * (k + 1) / 2 + i : i * (i + 1) / 2 + k; }

// Pairs of facets; in them chunks of rows, chunks of columns, rows, columns.
static inline int pair_entry(int a, int i, int b, int k)
{
  const int chunk = i / CHUNK * (M / CHUNK) + k / CHUNK;
  return (a * (a - 1) / 2 + b) * M * M + (chunk * CHUNK + i % CHUNK) * CHUNK + k % CHUNK;
}

// Entry (i, k) of the own block of facet f of a patch whose owned facets are f0 … f1 - 1, all in the order of `own`.
static inline size_t own_entry(int i, int k, int f, int f0, int f1)
{
  return (size_t)f0 * (M * (M + 1) / 2) + (size_t)lower(i, k) * (f1 - f0) + f - f0;
}

// Mean of entries (row, column) and (column, row) of a cell of a tile.
static inline real mean_entry(__global const real *K, int tile_stride, int cell, int row, int column)
{
  const size_t step = (size_t)tile_stride * MC, start = (size_t)cell * MC;
  return (K[column * step + start + row] + K[row * step + start + column]) / 2;
}

// Blocks between the facets of each cell of a tile.
__kernel void trace_symmetric_pairs(int count, int first_cell, int tile_stride, __global const int *orientation,
                                    __global const int *permutations, __global const real *K, __global real *pairs)
{
  const int t = get_global_id(0);
  if (t >= count * MC) return;
  const int cell = t % count, a = t / count / M, i = t / count % M;
  __global const int *turned = orientation + (size_t)(first_cell + cell) * F;
  const int row = a * M + oriented(permutations, turned[a], i), patch = (first_cell + cell) / CELLS;
  __global real *block = pairs + (size_t)patch * (PAIRS * M * M) * CELLS + (first_cell + cell) % CELLS;
  for (int b = 0; b < a; ++b)
    for (int k = 0; k < M; ++k) {
      const int column = b * M + oriented(permutations, turned[b], k);
      block[pair_entry(a, i, b, k) * CELLS] = mean_entry(K, tile_stride, cell, row, column);
    }
}

// Own blocks of the listed facets (numbers in the order of `own`). Tiles come in ascending order: a facet's first cell
// sets its block, the second one adds.
__kernel void trace_symmetric_own(int num_listed, int first_cell, int count, int tile_stride, int facet_stride,
                                  __global const int *list, __global const int *first, __global const int *cells,
                                  __global const int *local_facet, __global const int *orientation,
                                  __global const int *permutations,
                                  __global const real *K, __global real *own)
{
  const int t = get_global_id(0);
  if (t >= num_listed * M) return;
  const int f = list[t % num_listed], i = t / num_listed, patch = cells[f] / CELLS;
  for (int side = 0; side < 2; ++side) {
    const int cell = cells[side * facet_stride + f] - first_cell;
    if (cell < 0 || cell >= count || cells[side * facet_stride + f] < 0) continue;
    const int here = local_facet[side * facet_stride + f];
    const int turned = orientation[(size_t)(first_cell + cell) * F + here];
    const int row = here * M + oriented(permutations, turned, i);
    for (int k = 0; k <= i; ++k) {
      const int column = here * M + oriented(permutations, turned, k);
      const real mean = mean_entry(K, tile_stride, cell, row, column);
      __global real *entry = own + own_entry(i, k, f, first[2 * patch + 1], first[2 * patch + 3]);
      *entry = side ? *entry + mean : mean;
    }
  }
}

// Facets a > b of the pair that thread `part` of a cell takes in a round.
static inline void pair_of(int round, int part, int *a, int *b)
{
#if PARTS == 1
  *a = 1;
  for (; round >= *a; ++*a) round -= *a;
  *b = round;
#else
  const int one = part ? (round + part) % (F - 1) : F - 1, other = (round - part + F - 1) % (F - 1);
  *a = max(one, other);
  *b = min(one, other);
#endif
}

// y of the two facets of a pair += its block times x, and its transpose times x. An essential facet (`none`) has x = 0
// and a y that is left alone; entries are read there too, so that no load waits for a branch.
static inline void add_pair(__global const real *restrict entry, int here, int there, int none, __local const real *x,
                            __local real *y)
{
#if M <= 10
#pragma unroll
#endif
  for (int i = 0; i < M; i += CHUNK) {
    real xa[CHUNK], ya[CHUNK];
    EACH(r) xa[r] = x[here / 2 * STEP + i + r];
    EACH(r) ya[r] = 0;
#if M <= 10
#pragma unroll
#endif
    for (int k = 0; k < M; k += CHUNK) {
      real xb[CHUNK], yb[CHUNK];
      EACH(j) xb[j] = x[there / 2 * STEP + k + j];
      EACH(j) yb[j] = 0;
      EACH(r) EACH(j) {
        const real value = entry[((i * M + k * CHUNK) + r * CHUNK + j) * CELLS];
        ya[r] += value * xb[j];
        yb[j] += value * xa[r];
      }
      EACH(j) if (there != none) y[there * STEP + k + j] += yb[j];
    }
    EACH(r) if (here != none) y[here * STEP + i + r] += ya[r];
  }
}

// y of one place += its own block times x.
static inline void add_own(__global const real *restrict entry, size_t stride, __local const real *x, __local real *y)
{
  for (int i = 0; i < M; i += CHUNK) {
    real xi[CHUNK], yi[CHUNK];
    EACH(k) xi[k] = x[i + k];
    EACH(k) yi[k] = 0;
    for (int k = 0; k < i; k += CHUNK) {
      real xk[CHUNK], yk[CHUNK];
      EACH(j) xk[j] = x[k + j];
      EACH(j) yk[j] = y[k + j];
      EACH(r) EACH(j) {
        const real value = entry[((i + r) * (i + r + 1) / 2 + k + j) * stride];
        yi[r] += value * xk[j];
        yk[j] += value * xi[r];
      }
      EACH(j) y[k + j] = yk[j];
    }
    EACH(r) EACH(j) {
      if (j > r) continue;
      const real value = entry[((i + r) * (i + r + 1) / 2 + i + j) * stride];
      yi[r] += value * xi[j];
      if (j < r) yi[j] += value * xi[r];
    }
    EACH(k) y[i + k] += yi[k];
  }
}

// y = A x of the facets that each patch owns, from its own cells; the rest into `cut`.
KERNEL(CELLS * PARTS)
void trace_symmetric_product(int num_cells, int n_owned, int n_free, int cell_stride, int number_stride, int most,
                             __global const real *restrict pairs,
                             __global const real *restrict own, __global const int *restrict first,
                             __global const int *restrict facet, __global const ushort *restrict slot,
                             __global const int *restrict numbers, __global const real *restrict owned,
                             __global const real *restrict tail, __global real *restrict y_owned,
                             __global real *restrict y_ghost, __global real *restrict cut, __local real *values,
                             __global real *restrict parts)
{
  const int patch = get_global_id(0) / (CELLS * PARTS), lane = get_local_id(0), cell = patch * CELLS + lane % CELLS;
  const int start = first[2 * patch], count = first[2 * patch + 2] - start;
  const int block = first[2 * patch + 1], num_own = first[2 * patch + 3] - block;
  __local real *x = values, *y = values + (most + 1) * STEP;
  for (int t = lane; t < count * M; t += CELLS * PARTS) {
    const int place = t / M, k = t % M;
    x[place * STEP + k] = trace_value(owned, tail, n_owned, numbers, number_stride, facet[start + place], k);
    y[2 * place * STEP + k] = 0;
    y[(2 * place + 1) * STEP + k] = 0;
  }
  for (int k = lane; k < M; k += CELLS * PARTS) x[most * STEP + k] = 0;
  BARRIER_LOCAL();
  pairs += (size_t)patch * (PAIRS * M * M) * CELLS + lane % CELLS;
#if MC <= 20
#pragma unroll
#endif
  for (int round = 0; round < PAIRS / PARTS; ++round) {
    int a, b;
    pair_of(round, lane / CELLS, &a, &b);
    if (cell < num_cells)
      add_pair(pairs + pair_entry(a, 0, b, 0) * CELLS, slot[(size_t)a * cell_stride + cell],
               slot[(size_t)b * cell_stride + cell], 2 * most, x, y);
    if (PARTS > 1) BARRIER_LOCAL();
  }
  if (PARTS == 1) BARRIER_LOCAL();
  own += (size_t)block * (M * (M + 1) / 2);
  for (int place = lane; place < num_own; place += CELLS * PARTS)
    add_own(own + place, num_own, x + place * STEP, y + 2 * place * STEP);
  BARRIER_LOCAL();
  real product = 0;
  for (int t = lane; t < count * M; t += CELLS * PARTS) {
    const int place = t / M, k = t % M;
    const real value = y[2 * place * STEP + k] + y[(2 * place + 1) * STEP + k];
    if (place < num_own)
      trace_set(y_owned, y_ghost, n_owned, n_free, numbers, number_stride, facet[start + place], k, value);
    else
      cut[(size_t)(start - block + place - num_own) * M + k] = value;
    product += x[place * STEP + k] * value;
  }
  if (parts) parts[get_global_id(0)] = product;
}

// What was left to the owners is added to y. list [2, num_listed]: facets, and their rows of `cut`.
__kernel void trace_symmetric_cut(int num_listed, int n_owned, int n_free, int number_stride,
                                  __global const int *list, __global const int *numbers, __global const real *cut,
                                  __global real *y_owned, __global real *y_ghost)
{
  const int t = get_global_id(0);
  if (t >= num_listed * M) return;
  const int index = trace_number(numbers, number_stride, list[t / M], t % M);
  const real value = cut[(size_t)list[num_listed + t / M] * M + t % M];
  if (index < n_owned) y_owned[index] += value;
  else if (index < n_free) y_ghost[index - n_owned] += value;
}

// Entry (i, column) of each facet's own block; the diagonal if column < 0. order [facet]: in that of `own`.
__kernel void trace_symmetric_column(int num_facets, int n_owned, int n_free, int number_stride, int column,
                                     __global const real *own, __global const int *first,
                                     __global const int *cells, __global const int *order,
                                     __global const int *numbers, __global real *y_owned, __global real *y_ghost)
{
  const int t = get_global_id(0) % num_facets, i = get_global_id(0) / num_facets;
  if (i >= M) return;
  const int patch = cells[t] / CELLS;
  const real value = own[own_entry(i, column < 0 ? i : column, t, first[2 * patch + 1], first[2 * patch + 3])];
  trace_set(y_owned, y_ghost, n_owned, n_free, numbers, number_stride, order[t], i, value);
}

// Of each work-group, the largest |K - Kᵀ| of a cell of a tile over its largest entry.
KERNEL(TESTED) void trace_symmetric_asymmetry(int count, int tile_stride, __global const real *K, __global real *largest)
{
  __local real found[TESTED];
  const int cell = get_global_id(0), lane = get_local_id(0);
  real difference = 0, size = 0;
  if (cell < count) {
    for (int k = 0; k < MC; ++k)
      for (int i = 0; i <= k; ++i) {
        const real upper = K[((size_t)k * tile_stride + cell) * MC + i];
        const real lower = K[((size_t)i * tile_stride + cell) * MC + k];
        difference = fmax(difference, fabs(upper - lower));
        size = fmax(size, fmax(fabs(upper), fabs(lower)));
      }
  }
  found[lane] = size > 0 ? difference / size : 0;
  BARRIER_LOCAL();
  if (lane) return;
  real most = 0;
  for (int i = 0; i < TESTED; ++i) most = fmax(most, found[i]);
  largest[get_group_id(0)] = most;
}
