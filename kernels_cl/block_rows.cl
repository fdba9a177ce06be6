// Sparse matrices by rows (CSR) whose entries are dense blocks: patterns and values of products A B and of transposes.
//
// A work-item has a row or a block and visits what belongs to it in ascending order, so that sums have one order only.
//
// needs: GROUP ROWS INNER COLUMNS PART REAL_BYTES
//
// Sizes
//   ROWS, INNER, COLUMNS  blocks of A are [ROWS, INNER], those of B [INNER, COLUMNS], those of A B [ROWS, COLUMNS]
//   PART                  columns of B that count as one: 1, or the size of blocks that are collected from numbers
// Arrays
//   starts  [row + 1]  first block of a row;  columns [block] ascending in a row;  values [block, row of it, column of it]
//   offsets [row - first]  first place of a row in `found`

static int row_of(int entry, int rows, __global const int *starts)
{
  int low = 0, high = rows;  // starts[low] <= entry < starts[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (starts[middle] <= entry) low = middle;
    else high = middle;
  }
  return low;
}

// First place in [low, high) whose column is not below `column`.
static int place_of(int column, int low, int high, __global const int *columns)
{
  while (low < high) {
    const int middle = (low + high) / 2;
    if (columns[middle] < column) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Products ---------------------------------------------------------------------------------------------------------

// An upper bound of the blocks of each row of A B.
KERNEL(GROUP) void product_bounds(int rows, __global const int *a_starts, __global const int *a_columns,
                                  __global const int *b_starts, __global int *bounds)
{
  const int row = get_global_id(0);
  if (row >= rows) return;
  int sum = 0;
  for (int k = a_starts[row]; k < a_starts[row + 1]; ++k) sum += b_starts[a_columns[k] + 1] - b_starts[a_columns[k]];
  bounds[row] = sum;
}

// The columns of each row of A B, for rows in [first, rows): ascending in `found`, and their number.
KERNEL(GROUP) void product_columns(int first, int rows, __global const int *a_starts, __global const int *a_columns,
                                   __global const int *b_starts, __global const int *b_columns,
                                   __global const int *offsets, __global int *found, __global int *counts)
{
  const int item = get_global_id(0), row = first + item;
  if (row >= rows) return;
  const int begin = offsets[item];
  int end = begin;
  for (int k = a_starts[row]; k < a_starts[row + 1]; ++k)
    for (int l = b_starts[a_columns[k]]; l < b_starts[a_columns[k] + 1]; ++l) {
      const int column = b_columns[l] / PART;
      const int place = end == begin || found[end - 1] < column ? end : place_of(column, begin, end, found);
      if (place < end && found[place] == column) continue;
      for (int m = end; m > place; --m) found[m] = found[m - 1];
      found[place] = column;
      ++end;
    }
  counts[row] = end - begin;
}

KERNEL(GROUP) void product_pack(int first, int rows, __global const int *offsets, __global const int *found,
                                __global const int *starts, __global int *columns)
{
  const int item = get_global_id(0), row = first + item;
  if (row >= rows) return;
  __global const int *from = found + offsets[item];
  for (int k = starts[row]; k < starts[row + 1]; ++k) columns[k] = from[k - starts[row]];
}

// C = A B
KERNEL(GROUP) void product_values(int blocks, int rows, __global const int *a_starts, __global const int *a_columns,
                                  __global const real *a, __global const int *b_starts, __global const int *b_columns,
                                  __global const real *b, __global const int *starts, __global const int *columns,
                                  __global real *c)
{
  const int entry = get_global_id(0);
  if (entry >= blocks) return;
  const int row = row_of(entry, rows, starts), column = columns[entry];
  real sum[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; ++i) sum[i] = 0;
  for (int k = a_starts[row]; k < a_starts[row + 1]; ++k) {
    const int end = b_starts[a_columns[k] + 1], l = place_of(column, b_starts[a_columns[k]], end, b_columns);
    if (l == end || b_columns[l] != column) continue;
    for (int i = 0; i < ROWS; ++i)
      for (int m = 0; m < INNER; ++m) {
        const real factor = a[(k * ROWS + i) * INNER + m];
        for (int j = 0; j < COLUMNS; ++j) sum[i * COLUMNS + j] += factor * b[(l * INNER + m) * COLUMNS + j];
      }
  }
  for (int i = 0; i < ROWS * COLUMNS; ++i) c[entry * (ROWS * COLUMNS) + i] = sum[i];
}

// The same sums in the same order, where work-items are few: each has a row, and looks for less.
KERNEL(GROUP) void product_rows(int rows, __global const int *a_starts, __global const int *a_columns,
                                __global const real *a, __global const int *b_starts, __global const int *b_columns,
                                __global const real *b, __global const int *starts, __global const int *columns,
                                __global real *c)
{
  const int row = get_global_id(0);
  if (row >= rows) return;
  for (int i = starts[row] * (ROWS * COLUMNS); i < starts[row + 1] * (ROWS * COLUMNS); ++i) c[i] = 0;
  for (int k = a_starts[row]; k < a_starts[row + 1]; ++k) {
    int place = starts[row];
    for (int l = b_starts[a_columns[k]]; l < b_starts[a_columns[k] + 1]; ++l, ++place) {
      while (columns[place] < b_columns[l]) ++place;
      for (int i = 0; i < ROWS; ++i) {
        __global real *to = c + (place * ROWS + i) * COLUMNS;
        real sum[COLUMNS];
        for (int j = 0; j < COLUMNS; ++j) sum[j] = to[j];
        for (int m = 0; m < INNER; ++m) {
          const real factor = a[(k * ROWS + i) * INNER + m];
          for (int j = 0; j < COLUMNS; ++j) sum[j] += factor * b[(l * INNER + m) * COLUMNS + j];
        }
        for (int j = 0; j < COLUMNS; ++j) to[j] = sum[j];
      }
    }
  }
}

// Blocks [ROWS, COLUMNS] of rows of numbers, zero where these have none.
KERNEL(GROUP) void collect_blocks(int blocks, int rows, __global const int *given_starts,
                                  __global const int *given_columns, __global const real *given,
                                  __global const int *starts, __global const int *columns, __global real *values)
{
  const int entry = get_global_id(0);
  if (entry >= blocks) return;
  const int row = row_of(entry, rows, starts), first = columns[entry] * COLUMNS;
  for (int i = 0; i < ROWS; ++i) {
    const int end = given_starts[row * ROWS + i + 1];
    int k = place_of(first, given_starts[row * ROWS + i], end, given_columns);
    for (int j = 0; j < COLUMNS; ++j) {
      const int here = k < end && given_columns[k] == first + j;
      values[(entry * ROWS + i) * COLUMNS + j] = here ? given[k] : 0;
      k += here;
    }
  }
}

// Transposes -------------------------------------------------------------------------------------------------------

KERNEL(GROUP) void transpose_counts(int blocks, __global const int *columns, __global int *counts)
{
  const int entry = get_global_id(0);
  if (entry < blocks) atomic_inc(counts + columns[entry]);
}

// Rows of the transpose, each in any order; `next` holds the starts of these rows and moves on.
KERNEL(GROUP) void transpose_places(int rows, __global const int *starts, __global const int *columns,
                                    __global int *next, __global int *rows_of, __global int *source)
{
  const int row = get_global_id(0);
  if (row >= rows) return;
  for (int k = starts[row]; k < starts[row + 1]; ++k) {
    const int place = atomic_inc(next + columns[k]);
    rows_of[place] = row;
    source[place] = k;
  }
}

KERNEL(GROUP) void transpose_sort(int rows, __global const int *starts, __global int *columns, __global int *source)
{
  const int row = get_global_id(0);
  if (row >= rows) return;
  for (int k = starts[row] + 1; k < starts[row + 1]; ++k) {
    const int column = columns[k], from = source[k];
    int m = k;
    for (; m > starts[row] && columns[m - 1] > column; --m) columns[m] = columns[m - 1], source[m] = source[m - 1];
    columns[m] = column, source[m] = from;
  }
}

// values [block, COLUMNS, ROWS] of the transpose of blocks [ROWS, COLUMNS]
KERNEL(GROUP) void transpose_values(int blocks, __global const int *source, __global const real *given,
                                    __global real *values)
{
  const int entry = get_global_id(0);
  if (entry >= blocks) return;
  __global const real *from = given + source[entry] * (ROWS * COLUMNS);
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < COLUMNS; ++j) values[(entry * COLUMNS + j) * ROWS + i] = from[i * COLUMNS + j];
}
