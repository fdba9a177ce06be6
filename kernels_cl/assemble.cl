// Sum of element-vector entries into vector entries: one thread a row of a compressed list, in a fixed order, no atomics.
// `assemble` does all rows; `assemble_rows` those of a list (what patches leave on their borders); `assemble_step` all rows
// of one rank, fused with the vector update that follows a product.
// needs: REAL_BYTES
//
// Arrays
//   row     [num_rows]      compact numbers (assemble_rows)
//   start   [num_rows + 1]  first entry of each row
//   entry   [nnz]           positions in the element vectors
//   element                 element vectors, cells then facets
//   owned   [n_owned]       rows of this rank;  ghost [num_rows - n_owned] rows that belong to other ranks

static inline real row_sum(int row, __global const int *start, __global const int *entry, __global const real *element)
{
  real sum = 0;
  for (int k = start[row]; k < start[row + 1]; ++k) sum += element[entry[k]];
  return sum;
}

__kernel void assemble(int num_rows, int n_owned, __global const int *start, __global const int *entry,
                       __global const real *element, __global real *owned, __global real *ghost)
{
  const int row = get_global_id(0);
  if (row >= num_rows) return;
  const real sum = row_sum(row, start, entry, element);
  if (row < n_owned) owned[row] = sum;
  else ghost[row - n_owned] = sum;
}

// owned = keep owned + mix x + scale d (b - sum); d may be left out.
__kernel void assemble_step(int num_rows, __global const int *start, __global const int *entry,
                            __global const real *element, __global const real *x, __global const real *b,
                            __global const real *d, real keep, real mix, real scale, __global real *owned)
{
  const int row = get_global_id(0);
  if (row >= num_rows) return;
  real out = scale * (b[row] - row_sum(row, start, entry, element));
  if (d) out *= d[row];
  if (mix != 0) out += mix * x[row];
  owned[row] = keep == 0 ? out : keep * owned[row] + out;
}

__kernel void assemble_rows(int num_rows, int n_owned, __global const int *row, __global const int *start,
                            __global const int *entry, __global const real *element, __global real *owned,
                            __global real *ghost)
{
  const int k = get_global_id(0);
  if (k >= num_rows) return;
  const real sum = row_sum(k, start, entry, element);
  if (row[k] < n_owned) owned[row[k]] = sum;
  else ghost[row[k] - n_owned] = sum;
}

// target += source, one thread a value.
__kernel void add_to(int num, __global const real *source, __global real *target)
{
  const int k = get_global_id(0);
  if (k < num) target[k] += source[k];
}
