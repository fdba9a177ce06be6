// The trace matrix of a mesh with congruent cells: a dictionary of the blocks of each kind of facet (Roca, Nguyen and
// Peraire 2011 store them for each facet), which stays in cache. A product moves vectors and few bytes of numbers.
// A work-group has FACETS consecutive facets, sorted by kind, so that neighbouring threads read the same blocks. A thread has
// ROWS rows of a facet; PARTS threads share one.
// needs: M BLOCKED NA FACETS ROWS PARTS PAIRS STAGED
//
// M             unknowns of a facet
// NA            slots of a facet: itself, others of its first cell, others of its second one
// PAIRS 1       dictionaries are read two numbers at once, and vectors where facets are blocks of an even M
// STAGED 1      sums pass through local memory, so that neighbouring threads write neighbouring rows (if BLOCKED)
//
// Arrays, WIDTH = PARTS ROWS >= M
//   D           [kind, NA, M, WIDTH]   entry (row i, unknown k of the facet in slot a), see trace_assemble.cl
//   heads       [group]                pattern, start of the group's kinds and of its far neighbours, nothing
//   entry       [pattern, FACETS]      place of the kind in the group's kinds, times FACETS, plus place of the facet
//   adjacent    [pattern, NA - 1, FACETS] facet in slots 1 … NA - 1 of each item's facet, less the group's first
//               one; itself where there is none; if below LOWEST + (NA - 1) FACETS: LOWEST and place in the far neighbours
//   kinds       of the groups' facets;   far   numbers of neighbours beyond 16 bits
//   numbers     [M, facet_stride]      see trace_numbers.clh
//   parts       [group, PARTS, FACETS] of the sum x·y on this rank, or none

#define LOWEST (-32768)

#define WIDTH (PARTS * ROWS)
#define WHOLE_PAIRS (PAIRS && BLOCKED && M % 2 == 0)
#define TABLE_AT(kind, slot, k) ((((size_t)(kind) * NA + (slot)) * M + (k)) * WIDTH)

// sum[i] += D[i] value for ROWS rows.
#if PAIRS
#define SUMS real2 sum[ROWS / 2]
#define SUM(i) (((i) & 1) ? sum[(i) / 2].y : sum[(i) / 2].x)
#define CLEAR_SUMS() for (int i_ = 0; i_ < ROWS / 2; ++i_) sum[i_] = 0
#define ADD_COLUMN(column, value)                                                                                \
  for (int i_ = 0; i_ < ROWS / 2; ++i_) sum[i_] += ((__global const real2 *)(column))[i_] * (value)
#else
#define SUMS real sum[ROWS]
#define SUM(i) sum[i]
#define CLEAR_SUMS() for (int i_ = 0; i_ < ROWS; ++i_) sum[i_] = 0
#define ADD_COLUMN(column, value) for (int i_ = 0; i_ < ROWS; ++i_) sum[i_] += (column)[i_] * (value)
#endif

#define GROUP_ARRAYS                                                                                             \
  __global const int4 *restrict heads, __global const ushort *restrict entry, __global const short *restrict adjacent, \
  __global const int *restrict kinds, __global const int *restrict far

// y = A x on this rank's facets, ghosts included; with T for D, y = Aᵀ x.
KERNEL(FACETS * PARTS) void trace_congruent_product(int num_facets, int n_owned, int n_free, int facet_stride,
                                                    __global const real *restrict D, GROUP_ARRAYS,
                                                    __global const int *restrict numbers,
                                                    __global const real *restrict owned, __global const real *restrict tail,
                                                    __global real *restrict y_owned, __global real *restrict y_ghost,
                                                    __global real *restrict parts)
{
  const int group = get_global_id(0) / (FACETS * PARTS), base = group * FACETS, part = get_local_id(0) / FACETS;
  const int item = get_local_id(0) % FACETS, width = min(FACETS, num_facets - base);
  const int4 head = heads[group];
#if STAGED
  __local real values[FACETS * M];
#endif
  const int code = entry[head.x * FACETS + item];
  const int here = code % FACETS, f = base + here;
  int facet[NA];
  facet[0] = here;
#pragma unroll
  for (int a = 1; a < NA; ++a) facet[a] = adjacent[(head.x * (NA - 1) + a - 1) * FACETS + item];
  __global const real *column = D + TABLE_AT(kinds[head.y + code / FACETS], 0, 0) + part * ROWS;
  SUMS;
  CLEAR_SUMS();
#pragma unroll
  for (int a = 1; a < NA; ++a)
    if (facet[a] < LOWEST + (NA - 1) * FACETS) facet[a] = far[head.z + facet[a] - LOWEST] - base;
  // Values are read where there is no facet too, so that no load waits for a branch.
#if M <= 8
#pragma unroll
#endif
  for (int a = 0; a < NA; ++a) {
    const int g = facet[a];
    const bool none = a && g == here;
#if WHOLE_PAIRS
    __global const real2 *x = (__global const real2 *)facet_values(owned, tail, n_owned, (base + g) * M);
#if M <= 16
#pragma unroll
#endif
    for (int k = 0; k < M / 2; ++k) {
      const real2 value = none ? (real2)(0) : x[k];
      ADD_COLUMN(column + (a * M + 2 * k) * WIDTH, value.x);
      ADD_COLUMN(column + (a * M + 2 * k + 1) * WIDTH, value.y);
    }
#else
#if M <= 16
#pragma unroll
#endif
    for (int k = 0; k < M; ++k) {
      const real value = none ? 0 : trace_value(owned, tail, n_owned, numbers, facet_stride, base + g, k);
      ADD_COLUMN(column + (a * M + k) * WIDTH, value);
    }
#endif
  }
  if (parts) {
    real product = 0;
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
      if (part * ROWS + i < M)
        product += SUM(i) * trace_value(owned, tail, n_owned, numbers, facet_stride, f, part * ROWS + i);
    parts[get_global_id(0)] = item < width ? product : 0;
  }
#if STAGED
#pragma unroll
  for (int i = 0; i < ROWS; ++i)
    if (item < width && part * ROWS + i < M) values[here * M + part * ROWS + i] = SUM(i);
  BARRIER_LOCAL();
  FOR_ITEMS(k, width * M) {
    const int row = base * M + k;
    *(row < n_owned ? y_owned + row : y_ghost + (row - n_owned)) = values[k];
  }
#else
  if (item >= width) return;
#if WHOLE_PAIRS
  const int row = f * M + part * ROWS;
  __global real2 *y = (__global real2 *)(row < n_owned ? y_owned + row : y_ghost + (row - n_owned));
#pragma unroll
  for (int i = 0; i < ROWS / 2; ++i)
    if (part * ROWS + 2 * i < M) y[i] = sum[i];
#else
#pragma unroll
  for (int i = 0; i < ROWS; ++i)
    if (part * ROWS + i < M)
      trace_set(y_owned, y_ghost, n_owned, n_free, numbers, facet_stride, f, part * ROWS + i, SUM(i));
#endif
#endif
}

// Entry (i, column) of each facet's own block; the diagonal if column < 0.
__kernel void trace_congruent_column(int num_facets, int n_owned, int n_free, int facet_stride, int column,
                                     __global const real *D, GROUP_ARRAYS, __global const int *numbers,
                                     __global real *y_owned, __global real *y_ghost)
{
  const int t = get_global_id(0) / M, i = get_global_id(0) % M;
  if (t >= num_facets) return;
  const int4 head = heads[t / FACETS];
  const int base = t / FACETS * FACETS;
  const int code = entry[head.x * FACETS + t - base], f = base + code % FACETS;
  const real value = D[TABLE_AT(kinds[head.y + code / FACETS], 0, column < 0 ? i : column) + i];
  trace_set(y_owned, y_ghost, n_owned, n_free, numbers, facet_stride, f, i, value);
}
