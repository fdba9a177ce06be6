// Volume terms of interior penalty by stored matrices (Gorlani 2015, section 3.4): one of each cell, his volume_mvm<,0>, or one
// of each class of congruent cells, his volume_mvm<,1>. A work-item has ROWS rows of a cell; 32 in a row have the same rows of
// the cells of a chunk, so that all accesses coalesce, or are to one place. Fluxes come from sipg_facet.cl.
// needs: NDOF ROWS PARTS ROW
//
// Sizes
//   ROWS <= NDOF rows of a work-item;  PARTS work-items share a cell; the last one's rows may overlap those before
// Tables
//   ROW [NDOF]  place of a degree of freedom among a cell's unknowns
// Arrays
//   du  [owned]               direction: chunks of 32 cells, in each [row, cell] (fewer cells in the last one)
//   A   sipg_stored:    [NDOF test, NDOF trial, stride], cell fastest, as cg_matrix writes it
//       sipg_congruent: [class, NDOF trial, NDOF test]
//   class_of_cell [stride];  out [NDOF, stride] element vectors, cell fastest
//
// Global size is 32 * PARTS * number of chunks.

// Declares cell, first (row), width and x, the values of the cell.
#define STORED_PLACE                                                                              \
  const int chunk = (int)get_global_id(0) / (32 * PARTS), lane = (int)get_global_id(0) % 32;      \
  const int part = (int)get_global_id(0) / 32 % PARTS, cell = 32 * chunk + lane;                  \
  if (cell >= num_cells) return;                                                                  \
  const int first = min(part * ROWS, NDOF - ROWS), width = min(32, num_cells - 32 * chunk);       \
  __global const real *x = du + (size_t)(32 * NDOF) * chunk + lane;                               \
  real sum[ROWS];                                                                                 \
  for (int i = 0; i < ROWS; ++i) sum[i] = 0;

__kernel void sipg_stored(int num_cells, int stride, __global const real *A, __global const real *du, __global real *out)
{
  STORED_PLACE
  for (int j = 0; j < NDOF; ++j) {
    const real value = x[ROW[j] * width];
    for (int i = 0; i < ROWS; ++i) sum[i] += A[((size_t)(first + i) * NDOF + j) * stride + cell] * value;
  }
  for (int i = 0; i < ROWS; ++i) out[(first + i) * stride + cell] = sum[i];
}

__kernel void sipg_congruent(int num_cells, int stride, __global const real *A, __global const int *class_of_cell,
                             __global const real *du, __global real *out)
{
  STORED_PLACE
  __global const real *a = A + (size_t)class_of_cell[cell] * (NDOF * NDOF) + first;
  for (int j = 0; j < NDOF; ++j) {
    const real value = x[ROW[j] * width];
    for (int i = 0; i < ROWS; ++i) sum[i] += a[j * NDOF + i] * value;
  }
  for (int i = 0; i < ROWS; ++i) out[(first + i) * stride + cell] = sum[i];
}
