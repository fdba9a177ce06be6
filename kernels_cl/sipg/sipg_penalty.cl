// Penalties of each facet, one thread a facet of a cell; both sides of a facet find the same numbers. With LEAST a kernel for the
// least diffusivity of each cell comes before.
// After cg_point.clh, sipg_flux.clh, sipg_facet.clh and normal_derivatives.clh.
// needs: ARGUMENTS NDOF NBASIS NC NAUX NQF DIM NNODES NFACETS NORIENT PERM FACET_RATIO CORNERS NCORNERS FIELD PENALTY BOUNDARY
// needs: PAPER STEEP UPWIND NUMBERS LEAST
// optional: NQ BASIS GRAD GEO GEO_GRAD
//
// Sizes
//   BOUNDARY  times as much as between cells is the penalty there;  PAPER  one over the facet's diameter stands for |F|/|K|
//   STEEP     share of a jump over |K|/|F| that gradients are to see, 0: the physics is linear
//   UPWIND    whether half the speed of convection is added
//   NUMBERS   whether given numbers stand for |F|/|K|
//   LEAST     whether the diffusivity may step inside of cells: a penalty sees that of the facet over the least one of the cell
// Arrays
//   numbers [NFACETS, stride]    what stands for |F|/|K| on that side of a facet
//   least [NC, stride]           written by sipg_least: least trace of the diffusivity in a cell
//   sigma [NC, NFACETS, stride]  what is found
// Tables
//   PENALTY [NC, NFACETS] what multiplies (normal diffusivity) |F|/|K|, or what stands for it
//   FACET_RATIO [NFACETS] |F| / |K| of the reference cell;  CORNERS [NFACETS, NCORNERS] geometry nodes;  FIELD [NC] field

// One side of a facet: largest normal diffusivity of each component, its sum over the points with sign, largest ratio of
// surface and volume elements, largest trace of the diffusivity. Where the diffusivity is negative (f1 = -∇u), so is the
// penalty; one of rounding beside the speed (a facet on which diffusion vanishes) has no sign.
typedef struct {
  real diffusivity[NC], sum[NC], ratio, trace[NC];
} PenaltySide;

// Trace [NC] of the diffusivity at a point, rows summed as those of the normal one.
static inline void penalty_trace(const real *u, const real *u_t, const real *u_x, const real *a, const real *a_x, real t,
                                 const real *x, const real *constants, real *trace)
{
  for (int c = 0; c < NC; ++c) trace[c] = 0;
  for (int d = 0; d < DIM; ++d) {
    real n[DIM], normal[NC * NC], by_value[NC * NC], by_gradient[NC * NC], reaction[NC];
    for (int e = 0; e < DIM; ++e) n[e] = e == d;
    normal_derivatives(u, u_t, u_x, a, a_x, t, x, n, constants, normal, by_value, by_gradient, reaction);
    for (int k = 0; k < NC * NC; ++k)
      if (FIELD[k / NC] == FIELD[k % NC]) trace[k / NC] += fabs(normal[k]);
  }
}

// Normal diffusivity (sum of the absolute row of n·G·n over the field) and speed of each component at a point.
static inline void penalty_point(const Side *s, const real *n, real t, const real *x, const real *constants, PenaltySide *side,
                                 real *speed)
{
  real normal[NC * NC], by_value[NC * NC], by_gradient[NC * NC], reaction[NC];
  normal_derivatives(s->u, s->u_t, s->u_x, s->a, s->a_x, t, SEEN_BY(s, x), n, constants, normal, by_value, by_gradient, reaction);
  for (int c = 0; c < NC; ++c)
    if (UPWIND) speed[c] = fmax(speed[c], fabs(by_value[c * NC + c]) + fabs(by_gradient[c * NC + c]));
  for (int c = 0; c < NC; ++c) {
    real row = 0;
    side->sum[c] += normal[c * NC + c];
    for (int j = 0; j < NC; ++j)
      if (FIELD[j] == FIELD[c]) row += fabs(normal[c * NC + j]);
    for (int j = 0; j < NC; ++j)
      if (FIELD[j] == FIELD[c]) side->diffusivity[j] = fmax(side->diffusivity[j], row);
  }
}

// The same at the values behind the facet, with the gradient that the cell takes where its jump closes: diffusivities that
// vanish on this side, or grow with the gradient, are those that the next state has. What is no number there counts as none.
static inline void penalty_beyond(const Side *s, const real *beyond, real steepness, const real *n, real t, const real *x,
                                  const real *constants, PenaltySide *side, real *speed)
{
  Side seen = *s;
  PenaltySide found = *side;
  for (int c = 0; c < NC; ++c) {
    seen.u[c] = beyond[c];
    for (int d = 0; d < DIM; ++d) seen.u_x[c * DIM + d] -= steepness * (s->u[c] - beyond[c]) * n[d];
  }
  penalty_point(&seen, n, t, x, constants, &found, speed);
  for (int c = 0; c < NC; ++c) side->diffusivity[c] = found.diffusivity[c];
}

// Largest distance between corners of facet f.
static inline real penalty_diameter(const Geometry *g, int f)
{
  real most = 0;
  for (int a = 0; a < NCORNERS; ++a)
    for (int b = 0; b < a; ++b) {
      real square = 0;
      for (int d = 0; d < DIM; ++d) {
        const real step = g->node[CORNERS[f * NCORNERS + a] * DIM + d] - g->node[CORNERS[f * NCORNERS + b] * DIM + d];
        square += step * step;
      }
      most = fmax(most, square);
    }
  return sqrt(most);
}

// Add point `row` of facet `face` of one side, seen with its own normal; beyond [NC] are the values behind it.
#define PENALTY_SIDE(part, side, beyond, g, row, face)                                                  \
  do {                                                                                            \
    real m[DIM], y[DIM], size = 0;                                                                \
    point_gradient(FACET_NORMALS + (face) * DIM, &g, m);                                          \
    for (int d = 0; d < DIM; ++d) size += m[d] * m[d];                                            \
    size = sqrt(size);                                                                            \
    for (int d = 0; d < DIM; ++d) m[d] /= size;                                                   \
    part.ratio = fmax(part.ratio, size);                                                          \
    geometry_x(&g, FACET_GEO + (row) * NNODES, y);                                                \
    penalty_point(&side, m, t, y, constants, &part, speed);                                       \
    if (STEEP > 0) penalty_beyond(&side, beyond, STEEP * size * FACET_RATIO[face], m, t, y, constants, &part, speed); \
    if (LEAST) {                                                                                  \
      real trace[NC];                                                                             \
      penalty_trace(side.u, side.u_t, side.u_x, side.a, side.a_x, t, SEEN_BY(&side, y), constants, trace); \
      for (int c = 0; c < NC; ++c) part.trace[c] = fmax(part.trace[c], trace[c]);                 \
    }                                                                                             \
  } while (0)

// |F|/|K| of a side, or what stands for it, times PENALTY of component c. With nodes as quadrature points the trace inequality
// holds node by node, so that the largest ratio of surface and volume elements counts; on affine cells it is the same everywhere.
static inline real penalty_scale(const PenaltySide *side, const Geometry *g, int c, int face, real ratio,
                                 __global const real *numbers, int at)
{
  return PENALTY[c * NFACETS + face] * (NUMBERS ? numbers[at] : PAPER ? 1 / penalty_diameter(g, face) : ratio * side->ratio);
}

// Diffusivity of component c of a side over the least one of its cell, 1 at least. With q = κ ∇u·n on F, |q|² is at most
// κ_F²/κ_K times what the trace inequality gives of the energy ∫_K κ |∇u|².
static inline real penalty_excess(const PenaltySide *side, __global const real *least, int c, int at)
{
  return LEAST && side->trace[c] > 0 ? fmax((real)1, side->trace[c] / fmax(least[at], side->trace[c] * (real)1e-6)) : 1;
}

#if LEAST
__kernel void sipg_least(ARGUMENTS)
{
  const int cell = get_global_id(0);
  if (cell >= num_cells) return;
  SIPG_CELL
  for (int q = 0; q < NQ; ++q) {
    TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;
    real trace[NC];
    geometry_point(&g, GEO_GRAD + q * NNODES * DIM);
    CG_STATE(U_OWN, UT_OWN)
    penalty_trace(u, u_t, u_x, a, a_x, t, x, constants, trace);
    for (int c = 0; c < NC; ++c) least[c * stride + cell] = q ? fmin(least[c * stride + cell], trace[c]) : trace[c];
  }
}
#endif

__kernel void sipg_penalty(ARGUMENTS)
{
  const int cell = get_global_id(0) % stride, f = get_global_id(0) / stride;
  if (cell >= num_cells || f >= NFACETS) return;
  SIPG_CELL
  SIPG_BEHIND
  real speed[NC];
  PenaltySide own, far;
  own.ratio = far.ratio = 0;
  for (int c = 0; c < NC; ++c) speed[c] = own.diffusivity[c] = far.diffusivity[c] = own.sum[c] = far.sum[c] = 0;
  for (int c = 0; c < NC; ++c) own.trace[c] = far.trace[c] = 0;
  if (behind != -1)
    for (int q = 0; q < NQF; ++q) {
      SIPG_POINT
      if (STEEP > 0 && behind < 0) sipg_data(kind, &a_side, t, x, constants, b_side.u);
      PENALTY_SIDE(own, a_side, b_side.u, g, row, f);
      if (behind >= 0) PENALTY_SIDE(far, b_side, a_side.u, h, row_other, place);
    }
  for (int c = 0; c < NC; ++c) {
    real found = behind == -1 ? 0 : own.diffusivity[c] * penalty_scale(&own, &g, c, f, FACET_RATIO[f], numbers, f * stride + cell);
    found *= penalty_excess(&own, least, c, c * stride + cell);
    if (behind >= 0) {
      const real ratio = penalty_scale(&far, &h, c, place, FACET_RATIO[place], numbers, place * stride + other);
      found = fmax(found, far.diffusivity[c] * ratio * penalty_excess(&far, least, c, c * stride + other));
    }
    found *= behind < -1 ? BOUNDARY : 1;
    const real drift = UPWIND ? (real)0.5 * speed[c] : 0;
    const int is_negative = own.sum[c] + far.sum[c] < 0 && found > 16 * REAL_EPSILON * drift;
    found += drift;
    const int at = (c * NFACETS + f) * stride + cell;
    sigma_[at] = is_negative ? -found : found;
  }
}
