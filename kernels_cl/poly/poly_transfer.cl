// Functions of polytopes as nodal values on the base cells, and the transpose. After poly_basis.clh and poly_sum.clh.
// needs: DIM NC NB NNODES DEGREE NODE_GEO ROWS LANES CHUNK GROUP UNROLL
//
// Sizes
//   NB  nodes of a base cell
// Arrays
//   of_cell [stride]            polytope of a base cell;  nodes, cell_nodes [NNODES, stride] as in geometry.clh
//   first   [polytope + 1]      place of the first unknown: component by component, functions in each
//   fine    [base unknown]      chunks of 32 cells, in each (component, node) rows, cell fastest
//   start, cells                base cells of each polytope
// Tables
//   NODE_GEO [NB, NNODES]       geometry functions at the nodes

static inline void node_x(int node, int cell, int stride, __global const real *nodes, __global const int *cell_nodes, real *x)
{
  for (int d = 0; d < DIM; ++d) x[d] = 0;
  for (int v = 0; v < NNODES; ++v)
    for (int d = 0; d < DIM; ++d) x[d] += NODE_GEO[node * NNODES + v] * nodes[cell_nodes[v * stride + cell] * DIM + d];
}

static inline int fine_place(int num_cells, int cell, int row)
{
  const int chunk = cell / 32, width = min(32, num_cells - chunk * 32);
  return chunk * 32 * NC * NB + row * width + cell % 32;
}

// Thread (cell, node), cells fastest in chunks of 32.
KERNEL(GROUP) void poly_expand(int num_cells, int stride, __global const real *nodes, __global const int *cell_nodes,
                          __global const int *of_cell, __global const int *first, __global const real *boxes,
                          __global const real *u, __global real *fine)
{
  const int lane = get_global_id(0) % 32, node = get_global_id(0) / 32 % NB, cell = get_global_id(0) / 32 / NB * 32 + lane;
  if (cell >= num_cells) return;
  const int polytope = of_cell[cell], begin = first[polytope], size = (first[polytope + 1] - begin) / NC;
  real x[DIM], line[DIM * (DEGREE + 1)], slope[DIM * (DEGREE + 1)], value[NC];
  node_x(node, cell, stride, nodes, cell_nodes, x);
  poly_line_slope(boxes + polytope * 2 * DIM, x, line, slope);
  for (int c = 0; c < NC; ++c) value[c] = 0;
  UNROLL for (int b = 0; b < ROWS; ++b)
    if (b < size) {
      const real basis = poly_value(line, b);
      for (int c = 0; c < NC; ++c) value[c] += basis * u[begin + c * size + b];
    }
  for (int c = 0; c < NC; ++c) fine[fine_place(num_cells, cell, c * NB + node)] = value[c];
}

// A team a polytope and component, a work-item a node.
KERNEL(GROUP) void poly_restrict(int num_polytopes, int num_cells, int stride, __global const real *nodes,
                                 __global const int *cell_nodes, __global const int *start, __global const int *cells,
                                 __global const int *first, __global const real *boxes, __global const real *fine,
                                 __global real *out)
{
  __local real share[CHUNK * (GROUP + 1)];
  POLY_LANE
  const int polytope = item < num_polytopes ? item : 0, size = (first[polytope + 1] - first[polytope]) / NC;
  const int begin = start[polytope], count = item < num_polytopes ? (start[polytope + 1] - begin) * NB : 0;
  real sum[ROWS];
  UNROLL for (int b = 0; b < ROWS; ++b) sum[b] = 0;
  for (int at = lane; at < count; at += LANES) {
    const int cell = cells[begin + at / NB], node = at % NB;
    const real value = fine[fine_place(num_cells, cell, test * NB + node)];
    real x[DIM], line[DIM * (DEGREE + 1)], slope[DIM * (DEGREE + 1)];
    node_x(node, cell, stride, nodes, cell_nodes, x);
    poly_line_slope(boxes + polytope * 2 * DIM, x, line, slope);
    UNROLL for (int b = 0; b < ROWS; ++b) sum[b] += poly_value(line, b) * value;
  }
  const int functions = item < num_polytopes ? size : 0;
  __global real *result = out + first[polytope] + test * size;
  POLY_SUM_UP(sum, functions, result)
}
