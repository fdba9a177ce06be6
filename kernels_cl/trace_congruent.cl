// The trace matrix of a mesh with congruent cells: a dictionary of the blocks of each kind of facet (Roca, Nguyen and
// Peraire 2011 store them for each facet), which stays in cache. A product moves vectors and few bytes of numbers.
// A work-group has FACETS consecutive facets, sorted by kind, so that neighbouring threads read the same blocks. A thread has
// ROWS rows of a facet; PARTS threads share one.
// needs: M BLOCKED NC NP F NA MC FACETS ROWS PARTS PAIRS STEP NEAR STAGED
//
// M = NP NC     unknowns of a facet: nodes, then components        F   facets of a cell
// NA = 2 F - 1  slots of a facet: itself, others of its first cell, others of its second one
// MC = F M      unknowns of a cell                                 STEP  M or more: local values from place to place
// PAIRS 1       dictionaries are read two numbers at once, and values if M and STEP are even
// NEAR 1        values of the group's facets and their neighbours are read once, into local memory
// STAGED 1      sums pass through local memory, so that neighbouring threads write neighbouring rows (if BLOCKED)
//
// Arrays, WIDTH = PARTS ROWS >= M
//   D, T        [kind, NA, M, WIDTH]   entry (row i, unknown k of the facet in slot a); T: of the transposed matrix
//   heads       [group]                pattern, start of the group's kinds and of its far neighbours, number of neighbours
//   entry       [pattern, FACETS]      place of the kind in the group's kinds, times FACETS, plus place of the facet
//   spot        [pattern, NA - 1, FACETS] place of the facet in slots 1 … NA - 1: of the group, then its neighbours from
//               FACETS on; FACETS + most where there is none. Unless NEAR: the facet itself, or -1
//   beside      [pattern, most]        neighbours less the group's first facet; if below LOWEST + most: LOWEST and which of
//               the group's far neighbours
//   kinds       of the groups' facets;   far   numbers of neighbours beyond 16 bits
//   values      local [FACETS + most + 1, STEP], if NEAR
//   numbers     [M, facet_stride]      see trace_numbers.clh
//   parts       [group, PARTS, FACETS] of the sum x·y on this rank, or none
//   K           [MC, tile_stride, MC]  matrices of the cells first … first + count - 1, rows fastest
//   list        [num_listed]           kinds whose representative has one of these cells
//   cells, place [2, kind_stride]      cells of a representative by ascending number (-1: none), its place in them
//   source       [2, kind_stride]      which matrix is theirs: that of the cell, or of its shape
//   orientation [cell, F]              row of permutations;  permutations [orientation, NP] node of the cell's facet

#define LOWEST (-32768)

#define WIDTH (PARTS * ROWS)
#define TABLE_AT(kind, slot, k) ((((size_t)(kind) * NA + (slot)) * M + (k)) * WIDTH)

// Where unknown i of a facet stands on a cell's facet.
inline int oriented(__global const int *permutations, int orientation, int i)
{
  return permutations[orientation * NP + i / NC] * NC + i % NC;
}

inline void set_or_add(__global stored *entry, bool add, real value) { *entry = add ? *entry + value : value; }

// Blocks of the kinds of one tile. Tiles come in ascending order: a facet's first cell sets its own block, the second adds.
__kernel void trace_congruent_assemble(int num_listed, int first, int count, int tile_stride, int kind_stride,
                                       __global const int *list, __global const int *source,
                                       __global const int *cells, __global const int *place,
                                       __global const int *orientation,
                                       __global const int *permutations, __global const real *K, __global stored *D,
                                       __global stored *T)
{
  const int t = get_global_id(0);
  if (t >= num_listed * M) return;
  const int kind = list[t / M], i = t % M;
  for (int side = 0; side < 2; ++side) {
    const int cell = cells[side * kind_stride + kind], from = source[side * kind_stride + kind];
    if (cell < 0 || from < first || from >= first + count) continue;
    const int here = place[side * kind_stride + kind];
    __global const int *turned = orientation + (size_t)cell * F;
    __global const real *matrix = K + (size_t)(from - first) * MC;
    const int row = here * M + oriented(permutations, turned[here], i);
    for (int other = 0; other < F; ++other) {
      const int slot = other == here ? 0 : 1 + side * (F - 1) + other - (other > here);
      const bool add = slot == 0 && side == 1;
      for (int k = 0; k < M; ++k) {
        const int column = other * M + oriented(permutations, turned[other], k);
        const size_t at = TABLE_AT(kind, slot, k) + i;
        set_or_add(D + at, add, matrix[(size_t)column * tile_stride * MC + row]);
        set_or_add(T + at, add, matrix[(size_t)row * tile_stride * MC + column]);
      }
    }
  }
}

// sum[i] += D[i] value for ROWS rows.
#if PAIRS
#define SUMS real2 sum[ROWS / 2]
#define SUM(i) (((i) & 1) ? sum[(i) / 2].y : sum[(i) / 2].x)
#define CLEAR_SUMS() for (int i_ = 0; i_ < ROWS / 2; ++i_) sum[i_] = 0
#define ADD_COLUMN(column, value)                                                                                \
  for (int i_ = 0; i_ < ROWS / 2; ++i_) sum[i_] += REAL2(((__global const stored2 *)(column))[i_]) * (value)
#else
#define SUMS real sum[ROWS]
#define SUM(i) sum[i]
#define CLEAR_SUMS() for (int i_ = 0; i_ < ROWS; ++i_) sum[i_] = 0
#define ADD_COLUMN(column, value) for (int i_ = 0; i_ < ROWS; ++i_) sum[i_] += (column)[i_] * (value)
#endif

#if NEAR
typedef ushort spot_t;
#else
typedef int spot_t;
#endif

// y = A x on this rank's facets, ghosts included; with T for D, y = Aᵀ x.
KERNEL(FACETS * PARTS)
void trace_congruent_product(int num_facets, int n_owned, int n_free, int facet_stride, int most,
                             __global const stored *restrict D, __global const int4 *restrict heads,
                             __global const ushort *restrict entry, __global const spot_t *restrict spot,
                             __global const short *restrict beside, __global const int *restrict kinds,
                             __global const int *restrict far, __global const int *restrict numbers,
                             __global const real *restrict owned, __global const real *restrict tail,
                             __global real *restrict y_owned, __global real *restrict y_ghost,
                             __global real *restrict parts, __local real *values)
{
  const int group = get_global_id(0) / (FACETS * PARTS), base = group * FACETS, lane = get_local_id(0);
  const int item = lane % FACETS, part = lane / FACETS, width = min(FACETS, num_facets - base);
  const int4 head = heads[group];
  const int code = entry[head.x * FACETS + item];
  int place[NA];
  place[0] = code % FACETS;
#pragma unroll
  for (int a = 1; a < NA; ++a) place[a] = spot[(head.x * (NA - 1) + a - 1) * FACETS + item];
#if NEAR
  for (int t = lane; t < width * M; t += FACETS * PARTS)
    values[t / M * STEP + t % M] = trace_value(owned, tail, n_owned, numbers, facet_stride, base + t / M, t % M);
  for (int t = lane; t < head.w * M; t += FACETS * PARTS) {
    const int near = beside[head.x * most + t / M];
    const int other = near < LOWEST + most ? far[head.z + near - LOWEST] : base + near;
    values[(FACETS + t / M) * STEP + t % M] = trace_value(owned, tail, n_owned, numbers, facet_stride, other, t % M);
  }
  for (int k = lane; k < M; k += FACETS * PARTS) values[(FACETS + most) * STEP + k] = 0;
  BARRIER_LOCAL();
#endif
  __global const stored *column = D + TABLE_AT(kinds[head.y + code / FACETS], 0, 0) + part * ROWS;
  SUMS;
  CLEAR_SUMS();
#if M <= 8
#pragma unroll
#endif
  for (int a = 0; a < NA; ++a) {
#if NEAR
    __local const real *x = values + place[a] * STEP;
#else
    const bool none = place[a] < 0;
    const int g = a == 0 ? base + place[0] : none ? base : place[a];
#endif
#if NEAR && PAIRS && M % 2 == 0 && STEP % 2 == 0
#if M <= 16
#pragma unroll
#endif
    for (int k = 0; k < M; k += 2) {
      const real2 value = *(__local const real2 *)(x + k);
      ADD_COLUMN(column + (a * M + k) * WIDTH, value.x);
      ADD_COLUMN(column + (a * M + k + 1) * WIDTH, value.y);
    }
#else
#if M <= 16
#pragma unroll
#endif
    for (int k = 0; k < M; ++k) {
#if NEAR
      const real value = x[k];
#else
      const real value = none ? 0 : trace_value(owned, tail, n_owned, numbers, facet_stride, g, k);
#endif
      ADD_COLUMN(column + (a * M + k) * WIDTH, value);
    }
#endif
  }
  if (parts) {
    real product = 0;
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
      if (part * ROWS + i < M)
        product += SUM(i) * trace_value(owned, tail, n_owned, numbers, facet_stride, base + place[0], part * ROWS + i);
    parts[get_global_id(0)] = item < width ? product : 0;
  }
#if STAGED && BLOCKED
  BARRIER_LOCAL();
#pragma unroll
  for (int i = 0; i < ROWS; ++i)
    if (item < width && part * ROWS + i < M) values[place[0] * M + part * ROWS + i] = SUM(i);
  BARRIER_LOCAL();
  for (int t = lane; t < width * M; t += FACETS * PARTS) {
    const int row = base * M + t;
    *(row < n_owned ? y_owned + row : y_ghost + (row - n_owned)) = values[t];
  }
#else
  if (item >= width) return;
  const int f = base + place[0];
#if PAIRS && BLOCKED && M % 2 == 0
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
                                     __global const stored *D, __global const int4 *heads, __global const ushort *entry,
                                     __global const int *kinds, __global const int *numbers,
                                     __global real *y_owned, __global real *y_ghost)
{
  const int t = get_global_id(0) / M, i = get_global_id(0) % M;
  if (t >= num_facets) return;
  const int4 head = heads[t / FACETS];
  const int code = entry[head.x * FACETS + t % FACETS], f = t / FACETS * FACETS + code % FACETS;
  const real value = D[TABLE_AT(kinds[head.y + code / FACETS], 0, column < 0 ? i : column) + i];
  trace_set(y_owned, y_ghost, n_owned, n_free, numbers, facet_stride, f, i, value);
}
