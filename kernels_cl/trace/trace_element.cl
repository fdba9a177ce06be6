// The trace matrix as element matrices: storage, products into element vectors (which assemble.cl sums), diagonals.
// Unpacked: one thread a row. Packed: the lower triangles of symmetric matrices, a work-group of CELLS cells, in which
// entries off the diagonal are read twice, the second time from cache.
// needs: MC M NC NP F CELLS ROWS
//
// MC          unknowns of a cell                      CELLS, ROWS  cells of a work-group; its threads are CELLS ROWS
// F M = MC    facets of a cell and their unknowns, M = NP NC: nodes, then components
//
// Arrays
//   K       [MC, tile_stride, MC]  matrices of the cells first … first + count - 1, rows fastest
//   E       [MC, row_stride]       unpacked: entry (row, column) of a cell at column row_stride + cell MC + row
//   P       [pairs, stride]        packed: entry (row, column <= row) of a cell at pair(row, column) stride + cell
//   dofs    [MC, stride]           compact numbers, see gather_tvector.clh
//   element [cell, MC] unpacked, [MC, stride] packed: element vectors
//   orientation [cell, F]          row of permutations;  permutations [orientation, NP] node of the cell's facet

static inline int pair(int row, int column) { return row * (row + 1) / 2 + column; }

// Place in P of entry (i, k), i and k in any order.
static inline size_t packed(int i, int k, int stride) { return (size_t)(i < k ? pair(k, i) : pair(i, k)) * stride; }

// Entry of row `row` in column `column` of its facet's own block; that on the diagonal if column < 0.
static inline int own_column(__global const int *orientation, __global const int *permutations, int cell, int row,
                             int column)
{
  if (column < 0) return row;
  const int facet = row / M;
  return facet * M + permutations[orientation[cell * F + facet] * NP + column / NC] * NC + column % NC;
}

__kernel void trace_element_store(int count, int first, int tile_stride, int row_stride, __global const real *K,
                                  __global stored *E)
{
  const int t = get_global_id(0);
  if (t >= count * MC) return;
  for (int k = 0; k < MC; ++k) E[(size_t)k * row_stride + first * MC + t] = K[(size_t)k * tile_stride * MC + t];
}

__kernel void trace_element_pack(int count, int first, int tile_stride, int stride, __global const real *K,
                                 __global stored *P)
{
  const int t = get_global_id(0);
  if (t >= count * MC) return;
  const int cell = t % count, row = t / count;
  for (int k = 0; k <= row; ++k) {
    const real lower = K[((size_t)k * tile_stride + cell) * MC + row];
    const real upper = K[((size_t)row * tile_stride + cell) * MC + k];
    P[(size_t)pair(row, k) * stride + first + cell] = (lower + upper) / 2;
  }
}

// Packed matrices in unpacked form.
__kernel void trace_element_unpack(int num_cells, int stride, int row_stride, __global const stored *P, __global stored *E)
{
  const int t = get_global_id(0);
  if (t >= num_cells * MC) return;
  const int cell = t / MC, row = t % MC;
  for (int k = 0; k < MC; ++k) E[(size_t)k * row_stride + t] = P[packed(row, k, stride) + cell];
}

// Defines a product of a cell's entries ENTRY(k), k < MC, of row or column t % MC with the values of its unknowns.
#define ELEMENT_PRODUCT(name, ENTRY)                                                                              \
  __kernel void name(int num_cells, int n_owned, int stride, int row_stride, __global const stored *restrict E,   \
                     __global const int *restrict dofs, __global const real *restrict owned,                      \
                     __global const real *restrict tail, __global real *restrict element)                         \
  {                                                                                                               \
    const int t = get_global_id(0);                                                                               \
    if (t >= num_cells * MC) return;                                                                              \
    real sum = 0;                                                                                                 \
    UNROLL_FEW for (int k = 0; k < MC; ++k)                                                                       \
      sum += E[ENTRY(k)] * gather_dof(owned, tail, n_owned, dofs, stride, t / MC, k);                             \
    element[t] = sum;                                                                                             \
  }
#if MC <= 32
#define UNROLL_FEW _Pragma("unroll")
#else
#define UNROLL_FEW
#endif
#define ROW_ENTRY(k) (size_t)(k) * row_stride + t
#define COLUMN_ENTRY(k) (size_t)(t % MC) * row_stride + (size_t)(t / MC) * MC + k
ELEMENT_PRODUCT(trace_element_product, ROW_ENTRY)
ELEMENT_PRODUCT(trace_element_transposed, COLUMN_ENTRY)

__kernel void trace_element_column(int num_cells, int row_stride, int column, __global const stored *E,
                                   __global const int *orientation, __global const int *permutations,
                                   __global real *element)
{
  const int t = get_global_id(0);
  if (t >= num_cells * MC) return;
  const int k = own_column(orientation, permutations, t / MC, t % MC, column);
  element[t] = E[(size_t)k * row_stride + t];
}

KERNEL(CELLS * ROWS)
void trace_packed_product(int num_cells, int n_owned, int stride, __global const stored *restrict P,
                          __global const int *restrict dofs, __global const real *restrict owned,
                          __global const real *restrict tail, __global real *restrict element)
{
  __local real x[MC * CELLS];
  const int lane = get_local_id(0) % CELLS, start = get_local_id(0) / CELLS;
  const int cell = get_global_id(0) / (CELLS * ROWS) * CELLS + lane;
  if (cell < num_cells)
    for (int k = start; k < MC; k += ROWS) x[k * CELLS + lane] = gather_dof(owned, tail, n_owned, dofs, stride, cell, k);
  BARRIER_LOCAL();
  if (cell >= num_cells) return;
  for (int row = start; row < MC; row += ROWS) {
    real sum = 0;
    for (int k = 0; k < row; ++k) sum += P[(size_t)pair(row, k) * stride + cell] * x[k * CELLS + lane];
    for (int k = row; k < MC; ++k) sum += P[(size_t)pair(k, row) * stride + cell] * x[k * CELLS + lane];
    element[(size_t)row * stride + cell] = sum;
  }
}

__kernel void trace_packed_column(int num_cells, int stride, int column, __global const stored *P,
                                  __global const int *orientation, __global const int *permutations,
                                  __global real *element)
{
  const int t = get_global_id(0);
  if (t >= num_cells * MC) return;
  const int cell = t % num_cells, row = t / num_cells;
  const int k = own_column(orientation, permutations, cell, row, column);
  element[(size_t)row * stride + cell] = P[packed(row, k, stride) + cell];
}
