// Volume terms of interior penalty by stored matrices (Gorlani 2015, section 3.4): one of each cell, his volume_mvm<,0>, or one
// of each class of congruent cells, his volume_mvm<,1>. A work-item has ROWS rows of LANES cells; those in a row have the same
// rows of the cells of a chunk, so that all accesses coalesce, or are to one place. Fluxes come from sipg_facet.cl.
// needs: NDOF ROWS PARTS ROW LANES VEC
//
// Sizes
//   ROWS <= NDOF rows of a work-item;  PARTS work-items share a cell; the last one's rows may overlap those before
//   LANES 1 on GPUs, 8 on CPUs;  VEC type of so many reals
// Tables
//   ROW [NDOF]  place of a degree of freedom among a cell's unknowns
// Arrays
//   du  [owned]               direction: chunks of 32 cells, in each [row, cell] (fewer cells in the last one)
//   A   sipg_stored:    [NDOF test, NDOF trial, stride], cell fastest, as cg_matrix writes it
//       sipg_congruent: [class, NDOF trial, NDOF test]
//   class_of_cell [stride];  out [NDOF, stride] element vectors, cell fastest (what is beyond the cells does not matter)
//
// Global size is 32 / LANES * PARTS * number of chunks.

#if LANES == 1
#define LOAD(place) (*(place))
#define STORE(value, place) (*(place) = (value))
#else
#define LOAD(place) vload8(0, place)
#define STORE(value, place) vstore8(value, 0, place)
#endif
#define IN_CHUNK (32 / LANES)

// The values of LANES cells, of which `left` are there.
static inline VEC lane_values(__global const real *place, int left)
{
#if LANES > 1
  if (left < LANES) {
    real found[LANES];
    for (int k = 0; k < LANES; ++k) found[k] = place[min(k, left - 1)];
    return LOAD(found);
  }
#endif
  return LOAD(place);
}

// Declares cell, first (row), left, width and x, the values of the cells.
#define STORED_PLACE                                                                                            \
  const int chunk = (int)get_global_id(0) / (IN_CHUNK * PARTS), lane = (int)get_global_id(0) % IN_CHUNK * LANES; \
  const int part = (int)get_global_id(0) / IN_CHUNK % PARTS, cell = 32 * chunk + lane;                          \
  if (cell >= num_cells) return;                                                                                \
  const int first = min(part * ROWS, NDOF - ROWS), width = min(32, num_cells - 32 * chunk), left = width - lane; \
  __global const real *x = du + (size_t)(32 * NDOF) * chunk + lane;

__kernel void sipg_stored(int num_cells, int stride, __global const real *A, __global const real *du, __global real *out)
{
  STORED_PLACE
  VEC sum[ROWS];
  for (int i = 0; i < ROWS; ++i) sum[i] = 0;
  for (int j = 0; j < NDOF; ++j) {
    const VEC value = lane_values(x + ROW[j] * width, left);
    for (int i = 0; i < ROWS; ++i) sum[i] += LOAD(A + ((size_t)(first + i) * NDOF + j) * stride + cell) * value;
  }
  for (int i = 0; i < ROWS; ++i) STORE(sum[i], out + (first + i) * stride + cell);
}

// The rows of one cell, with the matrix a [NDOF trial, NDOF test] from its first row on.
static inline void congruent_rows(__global const real *a, __global const real *x, int width, int stride, __global real *out)
{
  real sum[ROWS];
  for (int i = 0; i < ROWS; ++i) sum[i] = 0;
  for (int j = 0; j < NDOF; ++j) {
    const real value = x[ROW[j] * width];
    for (int i = 0; i < ROWS; ++i) sum[i] += a[j * NDOF + i] * value;
  }
  for (int i = 0; i < ROWS; ++i) out[i * stride] = sum[i];
}

#define MATRIX_OF(cell) (A + (size_t)class_of_cell[cell] * (NDOF * NDOF) + first)

__kernel void sipg_congruent(int num_cells, int stride, __global const real *A, __global const int *class_of_cell,
                             __global const real *du, __global real *out)
{
  STORED_PLACE
#if LANES > 1
  bool same = left >= LANES;
  for (int k = 1; k < LANES; ++k) same = same && class_of_cell[cell] == class_of_cell[cell + k];
  if (same) {
    __global const real *a = MATRIX_OF(cell);
    VEC sum[ROWS];
    for (int i = 0; i < ROWS; ++i) sum[i] = 0;
    for (int j = 0; j < NDOF; ++j) {
      const VEC value = LOAD(x + ROW[j] * width);
      for (int i = 0; i < ROWS; ++i) sum[i] += a[j * NDOF + i] * value;
    }
    for (int i = 0; i < ROWS; ++i) STORE(sum[i], out + (first + i) * stride + cell);
    return;
  }
#endif
  for (int k = 0; k < min(LANES, left); ++k)
    congruent_rows(MATRIX_OF(cell + k), x + k, width, stride, out + first * stride + cell + k);
}
