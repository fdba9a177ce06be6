// What the product on straight simplices reads of each cell: the metric of its barycentric gradients, the term of order zero,
// penalties; one thread an extended cell. After geometry.clh, point.clh, sipg_flux.clh.
// needs: ARGUMENTS DIM NC NA NNODES NFACETS AUX_START
//
// Arrays, beside CHUNKS of discretizations/sipg/arguments.py, cell fastest
//   data    [PAIRS + 1, stride]   metric |K| g_i·A g_j of the pairs of vertices 01, 02, …, 12, …; then |K| times ∂f0/∂u
//   penalty [NFACETS, stride]     of owned cells: penalty, or derivative of natural conditions, times the facet's measure

#define PAIRS (DIM * (DIM + 1) / 2)
#define FACTORIAL (DIM == 2 ? 2 : 6)

// Barycentric gradients [DIM + 1, DIM].
static inline void barycentric_gradients(const Geometry *g, real *gradient)
{
  for (int d = 0; d < DIM; ++d) gradient[d] = 0;
  for (int r = 0; r < DIM; ++r)
    for (int d = 0; d < DIM; ++d) {
      gradient[(r + 1) * DIM + d] = g->inverse[r * DIM + d];
      gradient[d] -= g->inverse[r * DIM + d];
    }
}

__kernel void sipg_affine_simplex_data(ARGUMENTS)
{
  const int cell = get_global_id(0);
  if (cell >= num_cells + num_ghosts) return;
  POINT_LOAD_CONSTANTS
  Geometry g;
  geometry_load(&g, nodes, cell_nodes, stride, cell);
  real gradient[(DIM + 1) * DIM], x[DIM], a[NA + 1], a_x[(NA + 1) * DIM], zero[NC * DIM], f0[NC], f1[NC * DIM];
  barycentric_gradients(&g, gradient);
  for (int d = 0; d < DIM; ++d) {
    x[d] = zero[d] = 0;
    for (int v = 0; v <= DIM; ++v) x[d] += g.node[v * DIM + d] / (DIM + 1);
  }
  for (int k = 0; k < NA; ++k) a[k] = aux[AUX_START[k] * stride + cell];
  for (int k = 0; k < NA * DIM; ++k) a_x[k] = 0;
  const real volume = g.measure / FACTORIAL, one = 1;
  for (int i = 0, pair = 0; i <= DIM; ++i)
    for (int j = i + 1; j <= DIM; ++j, ++pair) {
      real sum = 0;
      pw_jacobian(zero, zero, zero, zero, zero, gradient + j * DIM, a, a_x, t, shift, x, constants, f0, f1);
      for (int d = 0; d < DIM; ++d) sum += gradient[i * DIM + d] * f1[d];
      data[pair * stride + cell] = volume * sum;
    }
  pw_jacobian(zero, zero, zero, &one, &shift, zero, a, a_x, t, shift, x, constants, f0, f1);
  data[PAIRS * stride + cell] = volume * f0[0];
  if (cell >= num_cells) return;
  for (int f = 0; f < NFACETS; ++f) {
    const int behind = neighbour[f * stride + cell];
    real length = 0, strength = behind == -1 ? 0 : sigma_[f * stride + cell], n[DIM];
    for (int d = 0; d < DIM; ++d) length += gradient[f * DIM + d] * gradient[f * DIM + d];
    length = sqrt(length);
    for (int d = 0; d < DIM; ++d) n[d] = -gradient[f * DIM + d] / length;
    __global const int *kind = kinds + (behind < -1 ? -2 - behind : 0) * 2;
    if (behind < -1 && kind[0] < 0) {
      strength = 0;
      for (int k = 0; k < 31; ++k)
        if (kind[1] >> k & 1) {
          pw_boundary_jacobian(k, zero, zero, zero, &one, &shift, zero, a, a_x, t, shift, x, n, constants, f0, f1);
          strength += f0[0];
        }
    }
    penalty[f * stride + cell] = strength * DIM * volume * length;
  }
}
