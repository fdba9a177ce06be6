// Blocks of facets from element matrices: dense blocks, facet by facet, or a dictionary, kind by kind of them. No atomics.
// needs: M NC NP F NA MC
//
// M = NP NC     unknowns of a facet: nodes, then components        F   facets of a cell
// NA = 2 F - 1  slots of a facet: itself, others of its first cell, others of its second one
// MC = F M      unknowns of a cell
//
// Arrays; an item is a facet, or a kind with the facet that represents it
//   A, T        entry (row i, unknown k in slot a) of an item at item item_step + (a M + k) row_step + i; T, which may be
//               left out: of the transposed matrix
//   K           [MC, tile_stride, MC]  matrices of the cells, or of shapes, first … first + count - 1, rows fastest
//   list        [num_listed]      items that have one of these cells
//   cells, place [2, stride]      cells of an item by ascending number (-1: none), its place in them
//   source      [2, stride]       which matrix is theirs: that of the cell, or of its shape
//   adjacent    [NA, stride]      facet in each slot; the facet itself where there is none, whose block is left alone; or
//                                 none, where all blocks are set
//   orientation [cell, F]         row of permutations;  permutations [orientation, NP] node of the cell's facet

static inline void set_or_add(__global real *entry, bool add, real value) { *entry = add ? *entry + value : value; }

// Blocks of one tile. Tiles come in ascending order: an item's first cell sets its own block, the second one adds.
__kernel void trace_assemble(int num_listed, int first, int count, int tile_stride, int stride, int item_step, int row_step,
                             __global const int *list, __global const int *source, __global const int *cells,
                             __global const int *place, __global const int *orientation,
                             __global const int *permutations, __global const int *adjacent,
                             __global const real *K, __global real *A, __global real *T)
{
  const int t = get_global_id(0);
  if (t >= num_listed * M) return;
  const int item = list[t / M], i = t % M;
  for (int side = 0; side < 2; ++side) {
    const int cell = cells[side * stride + item], from = source[side * stride + item];
    if (cell < 0 || from < first || from >= first + count) continue;
    const int here = place[side * stride + item];
    __global const int *turned = orientation + (size_t)cell * F;
    __global const real *matrix = K + (size_t)(from - first) * MC;
    const int row = here * M + oriented(permutations, turned[here], i);
    for (int other = 0; other < F; ++other) {
      const int slot = other == here ? 0 : 1 + side * (F - 1) + other - (other > here);
      const bool add = slot == 0 && side == 1;
      if (slot && adjacent && adjacent[slot * stride + item] == item) continue;
      for (int k = 0; k < M; ++k) {
        const int column = other * M + oriented(permutations, turned[other], k);
        const size_t at = (size_t)item * item_step + (size_t)(slot * M + k) * row_step + i;
        set_or_add(A + at, add, matrix[(size_t)column * tile_stride * MC + row]);
        if (T) set_or_add(T + at, add, matrix[(size_t)row * tile_stride * MC + column]);
      }
    }
  }
}
