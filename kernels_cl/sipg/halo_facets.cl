// Packing of what facets' terms read of cells: values of unknowns, or of the stand-in of a cell for one of its facets.
//
// values  owned unknowns, interleaved (see interleaved.py): row r of cell c of `num_cells` with `rows` unknowns each
// index   [slot]  a place in values, or from num_owned on ((cell F + facet) components + component) sent + number
// packed  [slot]
// start   [F sent + 1], node, weight [entry]: value `number` of a facet's stand-in from the values at the cell's nodes
//
// needs: REAL_BYTES

__kernel void halo_pack_facets(__global const real *values, __global const int *index, __global real *packed, int count,
                               int num_owned, int num_cells, int rows, int nodes, int components, int faces, int sent,
                               __global const int *start, __global const int *node, __global const real *weight)
{
  const int i = (int)get_global_id(0);
  if (i >= count) return;
  int code = index[i];
  if (code < num_owned) {
    packed[i] = values[code];
    return;
  }
  code -= num_owned;
  const int number = code % sent, component = code / sent % components, facet = code / (sent * components) % faces;
  const int cell = code / (sent * components * faces), lane = cell % 32, width = min(32, num_cells - cell + lane);
  __global const real *mine = values + (size_t)(cell - lane) * rows + component * nodes * width + lane;
  real sum = 0;
  for (int k = start[facet * sent + number]; k < start[facet * sent + number + 1]; ++k)
    sum += weight[k] * mine[node[k] * width];
  packed[i] = sum;
}
