// A symmetric trace matrix, half of its entries stored: the blocks between two facets of each cell once, the summed block
// of each facet packed. One launch for a patch of consecutive cells gathers, multiplies and sums; a second one adds what a
// facet between two patches gets from the later one. No atomics: the order of all sums is fixed.
// needs: M BLOCKED NC NP F MC CELLS CHUNK STEP
//
// M = NP NC     unknowns of a facet: nodes, then components        F      facets of a cell
// MC = F M      unknowns of a cell                                 CELLS  cells of a patch, one thread each
// CHUNK         unknowns taken at once, a divisor of M             STEP   M or M + 1, an odd number: local memory's banks
//
// A place is a facet of a patch: first those that the patch owns (it has their first cell), ascending, then the others.
//
// Arrays
//   pairs       [entries, cell_stride]    entry (i of facet a, k of facet b < a of a cell) at pair_entry(a, i, b, k)
//   own         [M (M + 1) / 2, facet_stride] entry (i, k <= i) of a facet's own block at i (i + 1) / 2 + k
//   first       [patch + 1, 2]            first place of each patch; its first owned facet in the order of `own`
//   facet       [place]                   facet at each place
//   slot        [F, cell_stride]          2 place + side of a cell's facet, side 1 for its second cell; 2 most: essential
//   cut         [place not owned, M]      what patches leave to the owners
//   values      local [most + 1, STEP] of x and [most + 1, 2, STEP] of y, most being that of places of a patch
//   numbers     [M, number_stride]        see trace_numbers.clh
//   K           [MC, tile_stride, MC]     matrices of the cells first_cell … first_cell + count - 1, rows fastest
//   orientation [cell, F]                 row of permutations;  permutations [orientation, NP] node of the cell's facet

#define EACH(i) _Pragma("unroll") for (int i = 0; i < CHUNK; ++i)

inline int oriented(__global const int *permutations, int orientation, int i)
{
  return permutations[orientation * NP + i / NC] * NC + i % NC;
}

inline int lower(int i, int k) { return i < k ? k * (k + 1) / 2 + i : i * (i + 1) / 2 + k; }

// Chunks of rows of facet a, in them facets b, chunks of their columns, rows, columns.
inline int pair_entry(int a, int i, int b, int k)
{
  const int ahead = a * (a - 1) / 2 * M * M + i / CHUNK * CHUNK * a * M + b * M * CHUNK;
  return ahead + (k / CHUNK * CHUNK + i % CHUNK) * CHUNK + k % CHUNK;
}

// Blocks between the facets of each cell of a tile.
__kernel void trace_symmetric_pairs(int count, int first_cell, int tile_stride, int cell_stride,
                                    __global const int *orientation, __global const int *permutations,
                                    __global const real *K, __global stored *pairs)
{
  const int t = get_global_id(0);
  if (t >= count * MC) return;
  const int cell = t % count, a = t / count / M, i = t / count % M;
  __global const int *turned = orientation + (size_t)(first_cell + cell) * F;
  const int row = a * M + oriented(permutations, turned[a], i);
  for (int b = 0; b < a; ++b)
    for (int k = 0; k < M; ++k) {
      const int column = b * M + oriented(permutations, turned[b], k);
      const real one = K[((size_t)column * tile_stride + cell) * MC + row];
      const real other = K[((size_t)row * tile_stride + cell) * MC + column];
      pairs[(size_t)pair_entry(a, i, b, k) * cell_stride + first_cell + cell] = (one + other) / 2;
    }
}

// Own blocks of the listed facets (numbers in the order of `own`). Tiles come in ascending order: a facet's first cell
// sets its block, the second one adds.
__kernel void trace_symmetric_own(int num_listed, int first_cell, int count, int tile_stride, int facet_stride,
                                  __global const int *list, __global const int *cells, __global const int *local_facet,
                                  __global const int *orientation, __global const int *permutations,
                                  __global const real *K, __global stored *own)
{
  const int t = get_global_id(0);
  if (t >= num_listed * M) return;
  const int f = list[t % num_listed], i = t / num_listed;
  for (int side = 0; side < 2; ++side) {
    const int cell = cells[side * facet_stride + f] - first_cell;
    if (cell < 0 || cell >= count || cells[side * facet_stride + f] < 0) continue;
    const int here = local_facet[side * facet_stride + f];
    const int turned = orientation[(size_t)(first_cell + cell) * F + here];
    const int row = here * M + oriented(permutations, turned, i);
    for (int k = 0; k <= i; ++k) {
      const int column = here * M + oriented(permutations, turned, k);
      const real one = K[((size_t)column * tile_stride + cell) * MC + row];
      const real other = K[((size_t)row * tile_stride + cell) * MC + column];
      __global stored *entry = own + (size_t)lower(i, k) * facet_stride + f;
      *entry = side ? *entry + (one + other) / 2 : (one + other) / 2;
    }
  }
}

// y of two facets of a cell += a block times x and its transpose times x, for one chunk of rows and one of columns.
inline void add_chunk(__global const stored *restrict entry, size_t stride, const real *xa, real *ya,
                      __local const real *x, __local real *y, bool free)
{
  real xb[CHUNK], yb[CHUNK];
  EACH(k) xb[k] = x[k];
  EACH(k) yb[k] = y[k];
  EACH(i) EACH(k) {
    const real value = entry[(size_t)(i * CHUNK + k) * stride];
    ya[i] += value * xb[k];
    yb[k] += value * xa[i];
  }
  EACH(k) if (free) y[k] = yb[k];
}

// y of a patch's places from the blocks between facets of one cell; `none` stands for an essential facet, whose x is zero
// and whose y is left alone. Entries are read there too, so that no load waits for a branch.
inline void add_pairs(__global const stored *restrict entry, size_t stride, __global const ushort *slot, int none,
                      __local const real *x, __local real *y)
{
#pragma unroll
  for (int a = 1; a < F; ++a) {
    const int here = slot[a * stride];
#if MC <= 20
#pragma unroll
#endif
    for (int i = 0; i < M; i += CHUNK) {
      real xa[CHUNK], ya[CHUNK];
      EACH(k) xa[k] = x[here / 2 * STEP + i + k];
      EACH(k) ya[k] = 0;
#if MC <= 20
#pragma unroll
#endif
      for (int b = 0; b < a; ++b) {
        const int there = slot[b * stride];
#if MC <= 20
#pragma unroll
#endif
        for (int k = 0; k < M; k += CHUNK)
          add_chunk(entry + pair_entry(a, i, b, k) * stride, stride, xa, ya, x + there / 2 * STEP + k,
                    y + there * STEP + k, there != none);
      }
      EACH(k) if (here != none) y[here * STEP + i + k] += ya[k];
    }
  }
}

// y of one place += its own block times x.
inline void add_own(__global const stored *restrict entry, size_t stride, __local const real *x, __local real *y)
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
KERNEL(CELLS)
void trace_symmetric_product(int num_cells, int n_owned, int n_free, int cell_stride, int facet_stride,
                             int number_stride, int most, __global const stored *restrict pairs,
                             __global const stored *restrict own, __global const int *restrict first,
                             __global const int *restrict facet, __global const ushort *restrict slot,
                             __global const int *restrict numbers, __global const real *restrict owned,
                             __global const real *restrict tail, __global real *restrict y_owned,
                             __global real *restrict y_ghost, __global real *restrict cut, __local real *values)
{
  const int patch = get_group_id(0), lane = get_local_id(0), cell = patch * CELLS + lane;
  const int start = first[2 * patch], count = first[2 * patch + 2] - start;
  const int block = first[2 * patch + 1], num_own = first[2 * patch + 3] - block;
  __local real *x = values, *y = values + (most + 1) * STEP;
  for (int t = lane; t < count * M; t += CELLS) {
    const int place = t / M, k = t % M;
    x[place * STEP + k] = trace_value(owned, tail, n_owned, numbers, number_stride, facet[start + place], k);
    y[2 * place * STEP + k] = 0;
    y[(2 * place + 1) * STEP + k] = 0;
  }
  for (int k = lane; k < M; k += CELLS) x[most * STEP + k] = 0;
  BARRIER_LOCAL();
  if (cell < num_cells) add_pairs(pairs + cell, cell_stride, slot + cell, 2 * most, x, y);
  BARRIER_LOCAL();
  for (int place = lane; place < num_own; place += CELLS)
    add_own(own + block + place, facet_stride, x + place * STEP, y + 2 * place * STEP);
  BARRIER_LOCAL();
  for (int t = lane; t < count * M; t += CELLS) {
    const int place = t / M, k = t % M;
    const real value = y[2 * place * STEP + k] + y[(2 * place + 1) * STEP + k];
    if (place < num_own)
      trace_set(y_owned, y_ghost, n_owned, n_free, numbers, number_stride, facet[start + place], k, value);
    else
      cut[(size_t)(start - block + place - num_own) * M + k] = value;
  }
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
__kernel void trace_symmetric_column(int num_facets, int n_owned, int n_free, int facet_stride, int number_stride,
                                     int column, __global const stored *own, __global const int *order,
                                     __global const int *numbers, __global real *y_owned, __global real *y_ghost)
{
  const int t = get_global_id(0) % num_facets, i = get_global_id(0) / num_facets;
  if (i >= M) return;
  const real value = own[(size_t)lower(i, column < 0 ? i : column) * facet_stride + t];
  trace_set(y_owned, y_ghost, n_owned, n_free, numbers, number_stride, order[t], i, value);
}
