// Interior penalty on straight triangles and tetrahedra of low degree in one pass on a GPU, any physics, one work-item a cell:
// values and sums in registers, loops unrolled, zeros of tables left out. After load_node.clh and
// sipg_simplex_point.clh.
//
// 1. own values and geometry   2. fluxes at the cell's points, tested   3. for each facet the neighbour, fluxes at the facet's
// points, tested   4. rows written   5. the few facets on the boundary, added.
//
// needs: ARGUMENTS DIM NC NAUX NB NQ NQF NNODES NFACETS CELLS TIME STATE BASIS GRAD FACET_BASIS FACET_GRAD ORDER GEO_ORDER
// needs: AUX_START UNROLL_FACETS
//
// Sizes
//   CELLS  work-items of a work-group;  UNROLL_FACETS what stands before the loop over facets
// Arrays: arguments PASS of discretizations/sipg/arguments.py.

// Entry k of row f of a table [NFACETS, count], without a load.
INLINE int chosen(__constant const int *table, int count, int k, int f)
{
  int entry = table[k];
  UNROLL for (int i = 1; i < NFACETS; ++i) entry = f == i ? table[i * count + k] : entry;
  return entry;
}

// Rows of a vector [NC, NB] of a cell, its vertices in the order that begins with `vertex`.
INLINE void load_rows(real *v, __global const real *owned, __global const real *tail, Rows rows, int vertex)
{
  __global const real *at = (rows.owned ? owned : tail) + rows.place;
  UNROLL for (int c = 0; c < NC; ++c)
    UNROLL for (int b = 0; b < NB; ++b) v[c * NB + b] = at[(c * NB + chosen(ORDER, NB, b, vertex)) * rows.step];
}

INLINE void load_corners(real *corner, __global const real *nodes, __global const int *cell_nodes, int stride, int cell,
                         int vertex)
{
  UNROLL for (int k = 0; k < NNODES; ++k)
    load_node(nodes, cell_nodes[chosen(GEO_ORDER, NNODES, k, vertex) * stride + cell], corner + k * DIM);
}

INLINE void load_auxiliary(real *rows, __global const real *aux, int stride, int cell, int vertex)
{
  const Order order = {ORDER + vertex * NB, GEO_ORDER + vertex * NNODES};
  UNROLL for (int k = 0; k < NAUX; ++k) rows[k] = aux_value(aux, stride, cell, order, k);
}

// Fluxes f0, f1 at a point against test functions in an order, added to sum [NC, NB].
INLINE void test_fluxes(const real *f0, const real *f1, TABLE const real *basis, TABLE const real *grad,
                        __constant const int *order, real *sum)
{
  UNROLL for (int c = 0; c < NC; ++c)
    UNROLL for (int b = 0; b < NB; ++b) {
      if (COUNTS(basis[b])) sum[c * NB + order[b]] += f0[c] * basis[b];
      UNROLL for (int r = 0; r < DIM; ++r)
        if (COUNTS(grad[b * DIM + r])) sum[c * NB + order[b]] += f1[c * DIM + r] * grad[b * DIM + r];
    }
}

// Those of what is behind a facet: of straight cells all but the first are the own ones of the same order.
INLINE void load_corners_behind(real *corner, const real *own, __global const real *nodes, __global const int *cell_nodes,
                                int stride, int cell, int vertex)
{
  load_node(nodes, cell_nodes[vertex * stride + cell], corner);
  UNROLL for (int k = DIM; k < NNODES * DIM; ++k) corner[k] = own[k];
}

// Declares and fills the arrays of a cell `from` whose vertices come in the order of `vertex`; VALUES: its vectors.
#define CELL_ARRAYS(name, CORNERS, VALUES, from, vertex)                                                                 \
  real name##_corner[NNODES * DIM], name##_aux[NAUX + 1];                                                                \
  CORNERS(name##_corner, nodes, cell_nodes, stride, from, vertex);                                                       \
  load_auxiliary(name##_aux, aux, stride, from, vertex);                                                                 \
  VALUES(name, from, vertex)

#define VECTOR(name, which, from, vertex)                                                                                \
  real name##_##which[NC * NB];                                                                                          \
  load_rows(name##_##which, which##_owned, which##_tail, rows_of(num_cells, num_ghosts, from), vertex);
#if TIME
#define STATE_VALUES(name, from, vertex) VECTOR(name, u, from, vertex) VECTOR(name, ut, from, vertex)
#define CELL_WITH_STATE(name, direction) {name##_corner, name##_aux, name##_u, name##_ut, direction}
#else
#define STATE_VALUES(name, from, vertex) VECTOR(name, u, from, vertex)
#define CELL_WITH_STATE(name, direction) {name##_corner, name##_aux, name##_u, name##_u, direction}
#endif
#if STATE
#define DIRECTION_VALUES(name, from, vertex) STATE_VALUES(name, from, vertex) VECTOR(name, du, from, vertex)
#define DIRECTION_CELL(name) CELL_WITH_STATE(name, name##_du)
#else
#define DIRECTION_VALUES(name, from, vertex) VECTOR(name, du, from, vertex)
#define DIRECTION_CELL(name) {name##_corner, name##_aux, name##_du, name##_du, name##_du}
#endif
#define STATE_CELL(name) CELL_WITH_STATE(name, name##_u)

#define BEHIND(corner, nodes, cell_nodes, stride, from, vertex) \
  load_corners_behind(corner, mine_corner, nodes, cell_nodes, stride, from, vertex)

#define PENALTY                                                                                                          \
  real sigma[NC];                                                                                                        \
  UNROLL for (int c = 0; c < NC; ++c) sigma[c] = sigma_[(c * NFACETS + f) * stride + cell];

#define SIMPLEX_CELL_PASS(action, VALUES, CELL)                                                                          \
  const int slot = (int)get_global_id(0) / 32, place = (int)get_global_id(0) % 32;                                       \
  if (slot >= num_chunks) return;                                                                                        \
  const int first = 32 * chunks[slot], width = min(32, num_cells - first), cell = first + place;                         \
  if (place >= width) return;                                                                                            \
  __global real *row = out + ((size_t)first * (NC * NB) + place);                                                        \
  int outside = 0;                                                                                                       \
  POINT_LOAD_CONSTANTS                                                                                                   \
  {                                                                                                                      \
    CELL_ARRAYS(own, load_corners, VALUES, cell, 0)                                                                                    \
    real sum[NC * NB], f0[NC], f1[NC * DIM];                                                                             \
    UNROLL for (int k = 0; k < NC * NB; ++k) sum[k] = 0;                                                                 \
    UNROLL for (int q = 0; q < NQ; ++q) {                                                                                \
      const Work w = {CELL(own), CELL(own), tables, 0, 0, t, shift};                                                     \
      volume_fluxes(&w, constants, q, action, f0, f1);                                                                   \
      test_fluxes(f0, f1, BASIS + q * NB, GRAD + q * NB * DIM, ORDER, sum);                                              \
    }                                                                                                                    \
    UNROLL_FACETS for (int f = 0; f < NFACETS; ++f) {                                                                    \
      const int behind = neighbour[f * stride + cell], from = behind < 0 ? cell : behind;                                \
      const int vertex = behind < 0 ? f : SIPG_TURN(code[f * stride + cell]);                                            \
      __global const int *wall = SIPG_WALL(code[f * stride + cell], kinds);                                              \
      CELL_ARRAYS(mine, load_corners, VALUES, cell, f)                                                                                 \
      CELL_ARRAYS(other, BEHIND, VALUES, from, vertex)                                                                           \
      PENALTY                                                                                                            \
      const Work w = {CELL(mine), CELL(other), tables, 0, 0, t, shift};                                                  \
      real part[NC * NB];                                                                                                \
      UNROLL for (int k = 0; k < NC * NB; ++k) part[k] = 0;                                                              \
      UNROLL for (int q = 0; q < NQF; ++q) {                                                                             \
        interior_fluxes(&w, constants, wall, sigma, q, action, f0, f1);                                                  \
        test_fluxes(f0, f1, FACET_BASIS + q * NB, FACET_GRAD + q * NB * DIM, ORDER, part);                               \
      }                                                                                                                  \
      outside |= behind < -1;                                                                                            \
      UNROLL for (int g = 0; g < NFACETS; ++g)                                                                           \
        if (f == g)                                                                                                      \
          UNROLL for (int k = 0; k < NC * NB; ++k)                                                                       \
            sum[k / NB * NB + ORDER[g * NB + k % NB]] += behind >= 0 ? part[k] : 0;                                      \
    }                                                                                                                    \
    UNROLL for (int k = 0; k < NC * NB; ++k) row[k * width] = sum[k];                                                    \
  }                                                                                                                      \
  if (outside)                                                                                                           \
    for (int f = 0; f < NFACETS; ++f) {                                                                                  \
      const int behind = neighbour[f * stride + cell];                                                                   \
      if (behind < -1) {                                                                                                 \
        CELL_ARRAYS(own, load_corners, VALUES, cell, f)                                                                                \
        PENALTY                                                                                                          \
        const Work w = {CELL(own), CELL(own), tables, 0, 0, t, shift};                                                   \
        for (int q = 0; q < NQF; ++q) {                                                                                  \
          real f0[NC], f1[NC * DIM];                                                                                     \
          boundary_fluxes(&w, kinds - (behind + 2) * (NC + 1), constants, sigma, q, action, f0, f1);                     \
          for (int k = 0; k < NC * NB; ++k) {                                                                            \
            const int b = k % NB, c = k / NB;                                                                            \
            real part = f0[c] * FACET_BASIS[q * NB + b];                                                                 \
            for (int r = 0; r < DIM; ++r) part += f1[c * DIM + r] * FACET_GRAD[(q * NB + b) * DIM + r];                  \
            row[(c * NB + ORDER[f * NB + b]) * width] += part;                                                           \
          }                                                                                                              \
        }                                                                                                                \
      }                                                                                                                  \
    }

KERNEL(CELLS) void sipg_residual(ARGUMENTS)
{
  SIMPLEX_CELL_PASS(0, STATE_VALUES, STATE_CELL)
}

KERNEL(CELLS) void sipg_action(ARGUMENTS)
{
  SIMPLEX_CELL_PASS(1, DIRECTION_VALUES, DIRECTION_CELL)
}
