// The trace matrix as element matrices: storage, products into element vectors (which assemble.cl sums), diagonals. One
// thread a row.
// needs: MC M NC NP F
//
// MC          unknowns of a cell
// F M = MC    facets of a cell and their unknowns, M = NP NC: nodes, then components
//
// Arrays
//   K       [MC, tile_stride, MC]  matrices of the cells first … first + count - 1, rows fastest
//   E       [MC, row_stride]       entry (row, column) of a cell at column row_stride + cell MC + row
//   dofs    [MC, stride]           compact numbers, see gather_tvector.clh
//   element [cell, MC]             element vectors
//   orientation [cell, F]          row of permutations;  permutations [orientation, NP] node of the cell's facet

// Entry of row `row` in column `column` of its facet's own block; that on the diagonal if column < 0.
static inline int own_column(__global const int *orientation, __global const int *permutations, int cell, int row,
                             int column)
{
  if (column < 0) return row;
  const int facet = row / M;
  return facet * M + permutations[orientation[cell * F + facet] * NP + column / NC] * NC + column % NC;
}

__kernel void trace_element_store(int count, int first, int tile_stride, int row_stride, __global const real *K,
                                  __global real *E)
{
  const int t = get_global_id(0);
  if (t >= count * MC) return;
  for (int k = 0; k < MC; ++k) E[(size_t)k * row_stride + first * MC + t] = K[(size_t)k * tile_stride * MC + t];
}

// Defines a product of a cell's entries ENTRY(k), k < MC, of row or column t % MC with the values of its unknowns.
#define ELEMENT_PRODUCT(name, ENTRY)                                                                              \
  __kernel void name(int num_cells, int n_owned, int stride, int row_stride, __global const real *restrict E,   \
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

__kernel void trace_element_column(int num_cells, int row_stride, int column, __global const real *E,
                                   __global const int *orientation, __global const int *permutations,
                                   __global real *element)
{
  const int t = get_global_id(0);
  if (t >= num_cells * MC) return;
  const int k = own_column(orientation, permutations, t / MC, t % MC, column);
  element[t] = E[(size_t)k * row_stride + t];
}
