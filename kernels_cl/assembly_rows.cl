// Lists of what adds to each row of a vector: places in element vectors, ascending. Places of a row stand in the order in which
// work-items come, until they are sorted.
//
// needs: GROUP
//
// Arrays
//   numbers [count]  row of each place, of which those of `used` in each `length` belong to elements; no row from `rows` on
//   counts, next [row]  of each row: number of its places; where the next one goes
//   start [row + 1], entry [places of all rows]  as in assemble.cl;  first: of the places of `numbers`

KERNEL(GROUP) void assembly_counts(int count, int length, int used, int rows, __global const int *numbers, __global int *counts)
{
  const int place = get_global_id(0);
  if (place < count && place % length < used && numbers[place] < rows) atomic_inc(counts + numbers[place]);
}

KERNEL(GROUP) void assembly_places(int count, int length, int used, int rows, int first, __global const int *numbers,
                                   __global int *next, __global int *entry)
{
  const int place = get_global_id(0);
  if (place < count && place % length < used && numbers[place] < rows) entry[atomic_inc(next + numbers[place])] = first + place;
}

KERNEL(GROUP) void assembly_sort(int rows, __global const int *start, __global int *entry)
{
  const int row = get_global_id(0);
  if (row >= rows) return;
  for (int k = start[row] + 1; k < start[row + 1]; ++k) {
    const int place = entry[k];
    int m = k;
    for (; m > start[row] && entry[m - 1] > place; --m) entry[m] = entry[m - 1];
    entry[m] = place;
  }
}
