// Diagonal blocks of a discontinuous scheme, one a cell: inverted, applied (block Jacobi).
// needs: NDOF ROW
//
// Arrays
//   block    [NDOF, NDOF, stride]  entry (i, k) of a cell; inverse alike
//   x, y     owned values, interleaved in chunks of CHUNK cells: of row r of cell c at (c/CHUNK) CHUNK NDOF + r w + c%CHUNK,
//            w the number of cells in the chunk
//   failed   [1]  one more than a cell whose block is singular, 0 if there is none
// Tables
//   ROW      [NDOF]  row of each degree of freedom

#define CHUNK 32
#define DIAGONAL_ENOUGH 0.1   // a pivot as large as this part of the largest one stays: threads then go in step
#define AT(i, k) a[((size_t)(i) * NDOF + (k)) * stride]

// Gauss-Jordan in place of a copy, one thread a cell; rows change places where the diagonal is small.
__kernel void cell_block_invert(int num_cells, int stride, __global const real *block, __global real *inverse,
                                __global int *failed)
{
  const int cell = get_global_id(0);
  if (cell >= num_cells) return;
  __global real *a = inverse + cell;
  int pivots[NDOF];
  for (int k = 0; k < NDOF * NDOF; ++k) a[(size_t)k * stride] = block[(size_t)k * stride + cell];
  for (int p = 0; p < NDOF; ++p) {
    int pivot = p;
    real largest = fabs(AT(p, p)) / (real)DIAGONAL_ENOUGH;
    for (int i = p + 1; i < NDOF; ++i) {
      const real size = fabs(AT(i, p));
      if (size > largest) {
        largest = size;
        pivot = i;
      }
    }
    pivots[p] = pivot;
    if (pivot != p)
      for (int k = 0; k < NDOF; ++k) {
        const real kept = AT(p, k);
        AT(p, k) = AT(pivot, k);
        AT(pivot, k) = kept;
      }
    const real scale = 1 / AT(p, p);
    if (!isfinite(scale)) *failed = cell + 1;
    AT(p, p) = 1;
    for (int k = 0; k < NDOF; ++k) AT(p, k) *= scale;
    for (int i = 0; i < NDOF; ++i) {
      if (i == p) continue;
      const real factor = AT(i, p);
      AT(i, p) = 0;
      for (int k = 0; k < NDOF; ++k) AT(i, k) -= factor * AT(p, k);
    }
  }
  for (int p = NDOF - 1; p >= 0; --p) {
    const int pivot = pivots[p];
    if (pivot == p) continue;
    for (int i = 0; i < NDOF; ++i) {
      const real kept = AT(i, p);
      AT(i, p) = AT(i, pivot);
      AT(i, pivot) = kept;
    }
  }
}

// y = inverse x, or its transpose's product; one thread a value, neighbouring threads have neighbouring cells.
__kernel void cell_block_apply(int num_cells, int stride, int transposed, __global const real *inverse,
                               __global const real *x, __global real *y)
{
  const int item = get_global_id(0), lane = item % CHUNK, i = item / CHUNK % NDOF, chunk = item / (CHUNK * NDOF);
  const int cell = chunk * CHUNK + lane, width = min(CHUNK, num_cells - chunk * CHUNK);
  if (lane >= width) return;
  const size_t first = (size_t)chunk * (CHUNK * NDOF) + lane;
  const size_t start = transposed ? i : (size_t)i * NDOF, step = transposed ? NDOF : 1;
  real sum = 0;
  for (int k = 0; k < NDOF; ++k) sum += inverse[(start + k * step) * stride + cell] * x[first + ROW[k] * width];
  y[first + ROW[i] * width] = sum;
}
