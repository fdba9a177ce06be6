// Rows of a trace matrix that cells of two ranks make up: the rank that owns a row adds what the other one's cell gives.
//
// K       [column, batch, row]  element matrices of a tile of cells, or of shapes of cells
// rows    [column, ghost]       rows of the element matrices of this rank's cells for unknowns of other ranks
// place   [ghost]               the cell, or the shape, of each row;   row [ghost]: its number there
// values  [column, slot]        rows that came from other ranks
// columns [column, slot]        numbers of the unknowns: owned, then those of the tail, -1 where essential
// point   [slot]                the unknown of this rank that a slot adds to, each one once
//
// needs: none

__kernel void trace_border_take(int ghosts, int size, int first, int count, int batch, __global const int *place,
                                __global const int *row, __global const real *K, __global real *rows)
{
  const int i = (int)get_global_id(0);
  if (i >= ghosts * size) return;
  const int ghost = i % ghosts, column = i / ghosts, at = place[ghost] - first;
  if (at < 0 || at >= count) return;
  rows[i] = K[((long)column * batch + at) * size + row[ghost]];
}

__kernel void trace_border_add(int slots, int size, int owned, __global const int *point, __global const int *columns,
                               __global const real *values, __global const real *x, __global const real *x_tail,
                               __global real *y)
{
  const int slot = (int)get_global_id(0);
  if (slot >= slots) return;
  real sum = 0;
  for (int k = 0; k < size; ++k) {
    const int number = columns[k * slots + slot];
    if (number >= 0) sum += values[k * slots + slot] * (number < owned ? x[number] : x_tail[number - owned]);
  }
  y[point[slot]] += sum;
}
