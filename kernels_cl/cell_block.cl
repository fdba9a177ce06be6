// Diagonal blocks of a discontinuous scheme, one a cell, or (FACETS) of a trace matrix, one a facet: summed by columns,
// inverted, applied (block Jacobi).
//
// needs: NDOF GROUP ITEMS APPLY_GROUP TILE TILE_GROUP IN_REGISTERS ROW
// optional: INVERSE FACETS
//
// Sizes
//   GROUP  work-items of a work-group that inverts a block, NDOF with IN_REGISTERS
//   ITEMS  work-items per cell of a product, in work-groups of APPLY_GROUP
//   TILE   cells, and entries of blocks, that a work-group of TILE_GROUP work-items turns
//   INVERSE  type of the inverse that is turned into and that products read, real by default; doubles where real is float
// Arrays
//   block    [NDOF, NDOF, stride]  entry (i, k) of a cell, cell fastest
//   inverse  [cell, NDOF, NDOF]  transposed: entry (i, k) at [k, i], so that items side by side read entries side by side;
//            of facets [NDOF, facet, NDOF], entry (i, k) at [k, facet, i]
//   numbers  [NDOF, stride]  of facets, see trace_numbers.clh; n_owned [1]: owned values; neither is read of cells
//   x, y, b, product  owned values, of cells interleaved in chunks of CHUNK cells: of row r of cell c at
//            (c/CHUNK) CHUNK NDOF + r w + c%CHUNK, w the number of cells in the chunk
//   narrow   likewise, the inverse as floats, which products take but for cells with wide [cell] set; may be left out
//   failed   [1]  one more than a cell whose block is singular, 0 if there is none
// Tables
//   ROW      [NDOF]  row of each degree of freedom

#ifdef INVERSE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#else
#define INVERSE real
#endif
#define CHUNK 32
#define DIAGONAL_ENOUGH 0.1   // a pivot as large as this part of the largest one stays: rows seldom change places
#define MOST_CONDITION 1e5    // of a block whose inverse does as floats: its product then has three digits
#define PLACES int n_owned, int stride, __global const int *numbers
// Where degree of freedom i of a block stands among owned values, and whether it is one of them.
#ifdef FACETS
#define PLACE(facet, i) (size_t)trace_number(numbers, stride, facet, i)
#define IS_OWN(place) (BLOCKED || (place) < n_owned)
#define IS_CELL 0
#define ENTRIES(array, facet) ((array) + (size_t)(facet) * NDOF)
#define STEP ((size_t)num_cells * NDOF)
#else
#define PLACE(cell, i)                                                                                                \
  ((size_t)((cell) / CHUNK) * (CHUNK * NDOF) + (cell) % CHUNK + ROW[i] * min(CHUNK, num_cells - (cell) / CHUNK * CHUNK))
#define IS_OWN(place) true
#define IS_CELL 1
#define ENTRIES(array, cell) ((array) + (size_t)(cell) * (NDOF * NDOF))
#define STEP NDOF
#endif
#define SWAP(x, y) { const real kept = x; x = y; y = kept; }

#ifdef FACETS
// Column j of the blocks from that of each, y, into the places of their inverses, transposed; unit rows and columns where an
// unknown is essential.
__kernel void cell_block_column(int num_cells, PLACES, int j, __global const real *y, __global INVERSE *inverse)
{
  const int facet = get_global_id(0) / NDOF, i = get_global_id(0) % NDOF;
  if (facet >= num_cells) return;
  const size_t row = PLACE(facet, i), column = PLACE(facet, j);
  ENTRIES(inverse, facet)[j * STEP + i] = IS_OWN(row) && IS_OWN(column) ? y[row] : i == j;
}
#else
// Column j of all blocks from products y with function j of every cell; x: function j + 1 of every cell, to be multiplied next.
__kernel void cell_block_column(int num_cells, int stride, int j, __global const real *y, __global real *block, __global real *x)
{
  const int cell = get_global_id(0) % stride, i = get_global_id(0) / stride;
  if (cell >= num_cells || i >= NDOF) return;
  const size_t at = PLACE(cell, i);
  if (j >= 0) block[(size_t)(i * NDOF + j) * stride + cell] = y[at];
  x[at] = i == j + 1;
}

// Blocks into the places of their inverses, transposed: a tile of cells and entries a group.
KERNEL(TILE_GROUP) void cell_block_turn(int num_cells, int stride, __global const real *block, __global INVERSE *inverse)
{
  __local real tile[TILE * (TILE + 1)];
  const int tiles = (NDOF * NDOF + TILE - 1) / TILE, group = get_group_id(0);
  const int cell0 = group / tiles * TILE, entry0 = group % tiles * TILE;
  const int lane = (int)get_local_id(0) % TILE, row0 = (int)get_local_id(0) / TILE;
  for (int row = row0; row < TILE; row += TILE_GROUP / TILE) {
    const int entry = entry0 + row, k = entry / NDOF, i = entry % NDOF;
    if (entry < NDOF * NDOF && cell0 + lane < num_cells)
      tile[row * (TILE + 1) + lane] = block[(size_t)(i * NDOF + k) * stride + cell0 + lane];
  }
  BARRIER_LOCAL();
  for (int row = row0; row < TILE; row += TILE_GROUP / TILE) {
    const int entry = entry0 + lane, cell = cell0 + row;
    if (entry < NDOF * NDOF && cell < num_cells)
      inverse[(size_t)cell * (NDOF * NDOF) + entry] = tile[lane * (TILE + 1) + row];
  }
}

#endif

// Whether norms [2, count] of columns, of a block and of its inverse, are those of one with a large condition, or whose inverse
// is beyond the range of floats.
static inline int is_wide(__local const real *norms, int count)
{
  real block = 0, inverse = 0;
  for (int c = 0; c < count; ++c) {
    block = fmax(block, norms[c]);
    inverse = fmax(inverse, norms[count + c]);
  }
  return !(block * inverse < (real)MOST_CONDITION && inverse > (real)1e-30 && inverse < (real)1e30);
}

// Gauss-Jordan of a cell's transposed block in place by a group; rows change places where the diagonal is small. The item of
// column p alone prepares step p, in one of two rows of `factors`, so a step has one barrier.
#if IN_REGISTERS
// Each item has a column in registers. They move up by one place a step, so that the row of the pivot is always the first.
#define PAIRS ((NDOF + 1) / 2)
#define EACH(r, first) _Pragma("unroll") for (int r = first; r < NDOF; ++r)

// Magnitude of x as a whole number, in the order of the magnitudes, to a part in a million: integers are compared sooner.
#if REAL_BYTES == 8
#define MAGNITUDE(x) (as_uint2(x).y & 0x7fffffffu)
#define CHOSEN(condition, yes, no) select(no, yes, (long)(condition))
#else
#define MAGNITUDE(x) (as_uint(x) & 0x7fffffffu)
#define CHOSEN(condition, yes, no) select(no, yes, (int)(condition))
#endif

// a[0] and a[pivot] change places. A compiler makes an index of other conditions, and puts the column into memory.
static inline void swap_first(real *a, int pivot)
{
  const real first = a[0];
  EACH(r, 1) {
    const real kept = a[r];
    a[r] = CHOSEN(r == pivot, first, kept);
    a[0] = CHOSEN(r == pivot, kept, a[0]);
  }
}

KERNEL(GROUP) void cell_block_invert(int num_cells, __global real *inverse, __global float *narrow, __global int *wide,
                                     __global int *failed)
{
  const int cell = get_group_id(0), c = (int)get_local_id(0);
  __global real *out = ENTRIES(inverse, cell);
  __local real2 factors[2 * PAIRS];
  __local int pivots[NDOF];  // places behind the first one
  __local real norms[2 * NDOF];
  real a[NDOF], norm = 0;
  EACH(r, 0) a[r] = out[r * STEP + c];
  EACH(r, 0) norm += fabs(a[r]);
  norms[c] = norm;
  for (int p = 0; p < NDOF; ++p) {
    __local real *factor = (__local real *)(factors + p % 2 * PAIRS);
    if (c == p) {
      int pivot = 0;
      uint largest = MAGNITUDE(a[0] / (real)DIAGONAL_ENOUGH);
      EACH(r, 1) {
        const uint size = MAGNITUDE(a[r]);
        const bool is_larger = r < NDOF - p && size > largest;
        pivot = is_larger ? r : pivot;
        largest = is_larger ? size : largest;
      }
      pivots[p] = pivot;
      if (pivot) swap_first(a, pivot);
      EACH(r, 0) {
        factor[r] = a[r];
        a[r] = r == 0;
      }
      if (!isfinite(1 / factor[0])) *failed = cell + 1;
    }
    BARRIER_LOCAL();
    const int pivot = pivots[p];
    if (pivot && c != p) swap_first(a, pivot);
    const real2 first = factors[p % 2 * PAIRS];
    const real top = a[0] / first.x;
    a[0] = a[1] - first.y * top;
    _Pragma("unroll") for (int k = 1; k < NDOF / 2; ++k) {
      const real2 pair = factors[p % 2 * PAIRS + k];
      a[2 * k - 1] = a[2 * k] - pair.x * top;
      a[2 * k] = a[2 * k + 1] - pair.y * top;
    }
    if (NDOF % 2) a[NDOF - 2] = a[NDOF - 1] - factor[NDOF - 1] * top;
    a[NDOF - 1] = top;
  }
  int place = c;  // of this column, when rows of the block are in their order again
  for (int p = NDOF - 1; p >= 0; --p) {
    const int other = p + pivots[p];
    place = place == p ? other : place == other ? p : place;
  }
  EACH(r, 0) out[r * STEP + place] = a[r];
  if (!narrow) return;
  norm = 0;
  EACH(r, 0) norm += fabs(a[r]);
  norms[NDOF + c] = norm;
  EACH(r, 0) ENTRIES(narrow, cell)[r * STEP + place] = (float)a[r];
  BARRIER_LOCAL();
  if (c == 0) wide[cell] = is_wide(norms, NDOF);
}
#else
// Columns are dealt to the items, in global memory.
static inline real largest_column(__global const real *a, size_t step, int item)
{
  real most = 0;
  for (int c = item; c < NDOF; c += GROUP) {
    real norm = 0;
    for (int r = 0; r < NDOF; ++r) norm += fabs(a[r * step + c]);
    most = fmax(most, norm);
  }
  return most;
}

KERNEL(GROUP) void cell_block_invert(int num_cells, __global real *inverse, __global float *narrow, __global int *wide,
                                     __global int *failed)
{
  const int cell = get_group_id(0), item = (int)get_local_id(0);
  __global real *a = ENTRIES(inverse, cell);
  __local real factors[2 * NDOF], norms[2 * GROUP];
  __local int pivots[NDOF];
  norms[item] = largest_column(a, STEP, item);
  for (int p = 0; p < NDOF; ++p) {
    __local real *factor = factors + p % 2 * NDOF;
    if (item == p % GROUP) {
      int pivot = p;
      real largest = fabs(a[p * STEP + p]) / (real)DIAGONAL_ENOUGH;
      for (int r = p + 1; r < NDOF; ++r) {
        const real size = fabs(a[r * STEP + p]);
        if (size > largest) {
          largest = size;
          pivot = r;
        }
      }
      pivots[p] = pivot;
      SWAP(a[p * STEP + p], a[pivot * STEP + p])
      for (int r = 0; r < NDOF; ++r) {
        factor[r] = a[r * STEP + p];
        a[r * STEP + p] = r == p;
      }
      if (!isfinite(1 / factor[p])) *failed = cell + 1;
    }
    BARRIER_LOCAL();
    const int pivot = pivots[p];
    const real scale = 1 / factor[p];
    for (int c = item; c < NDOF; c += GROUP) {
      if (c != p) SWAP(a[p * STEP + c], a[pivot * STEP + c])
      a[p * STEP + c] *= scale;
    }
    for (int r = 0; r < NDOF; ++r) {
      if (r == p) continue;
      for (int c = item; c < NDOF; c += GROUP) a[r * STEP + c] -= factor[r] * a[p * STEP + c];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (int r = item; r < NDOF; r += GROUP)  // columns of the inverse, in the other order
    for (int p = NDOF - 1; p >= 0; --p)
      if (pivots[p] != p) SWAP(a[r * STEP + p], a[r * STEP + pivots[p]])
  if (!narrow) return;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  norms[GROUP + item] = largest_column(a, STEP, item);
  for (int k = item; k < NDOF * NDOF; k += GROUP)
    ENTRIES(narrow, cell)[k / NDOF * STEP + k % NDOF] = (float)a[k / NDOF * STEP + k % NDOF];
  BARRIER_LOCAL();
  if (item == 0) wide[cell] = is_wide(norms, GROUP);
}
#endif

static inline real read_given(__global const real *product, __global const real *b, size_t at, bool is_own)
{
  return !is_own ? 0 : product ? b[at] - product[at] : b[at];
}

// sum [NDOF / ITEMS] += a work-item's rows of `a` times (b - product), of which a cell's work-items read a part each. Facets,
// whose values are contiguous, read them from the cache sooner.
#define STAGED (ITEMS > 1 && IS_CELL)
#if STAGED
#define GIVEN(k) given[k]
#else
#define GIVEN(k) READ(k)
#endif
#define READ(k) read_given(product, b, PLACE(cell, k), IS_OWN(PLACE(cell, k)))
#define ADD_ROWS(a)                                                                                                   \
  for (int k = 0; k < NDOF; ++k) {                                                                                    \
    const real value = GIVEN(k);                                                                                      \
    for (int i = 0; i < NDOF / ITEMS; ++i) {                                                                          \
      const int row = i * ITEMS + item;                                                                               \
      sum[i] += (a)[transposed ? row * STEP + k : k * STEP + row] * value;                                            \
    }                                                                                                                 \
  }

// y = keep y + mix x + scale inverse (b - product), or with the transposed inverse; product and x may be left out.
KERNEL(APPLY_GROUP) void cell_block_apply(int num_cells, PLACES, int transposed, __global const INVERSE *inverse,
                                          __global const float *narrow, __global const int *wide,
                                          __global const real *product, __global const real *x, __global const real *b,
                                          real keep, real mix, real scale, __global real *y)
{
  const int cell = get_global_id(0) / ITEMS, item = get_global_id(0) % ITEMS;
#if STAGED
  __local real all_given[APPLY_GROUP / ITEMS * NDOF];
  __local real *given = all_given + (int)get_local_id(0) / ITEMS * NDOF;
  for (int k = item; k < NDOF && cell < num_cells; k += ITEMS) given[k] = READ(k);
  BARRIER_LOCAL();
#endif
  if (cell >= num_cells) return;
  real sum[NDOF / ITEMS];
  for (int i = 0; i < NDOF / ITEMS; ++i) sum[i] = 0;
  if (narrow && !wide[cell]) ADD_ROWS(ENTRIES(narrow, cell))
  else ADD_ROWS(ENTRIES(inverse, cell))
  for (int i = 0; i < NDOF / ITEMS; ++i) {
    const size_t at = PLACE(cell, i * ITEMS + item);
    if (!IS_OWN(at)) continue;
    real out = scale * sum[i];
    if (x) out += mix * x[at];
    y[at] = keep == 0 ? out : keep * y[at] + out;
  }
}
