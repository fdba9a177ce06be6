// Interior penalty product on rectangles and boxes, one work-item for LANES cells as vectors: for CPUs.
// After sipg_affine.clh, where arrays and sizes stand.
// Phases: load the cells; for each axis and line the neighbours' values and slopes, and the product; weigh and store.
// In an order of cells that keeps neighbours close, those of LANES cells mostly stand in two aligned blocks of LANES cells.
// needs: ARGUMENTS DIM N NDOF NFACETS SLOPE WEIGHTS UNROLL CLASS_SIZE LANES

#if REAL_BYTES == 8
typedef double8 vec;
typedef long8 mask_t;
#else
typedef float8 vec;
typedef int8 mask_t;
#endif
LINE_PRODUCT(lanes_product, vec)

// Lane l of the result is lane order[l] of a, or of b where order[l] >= LANES.
static inline vec merged(vec a, vec b, mask_t order)
{
#if REAL_BYTES == 8 && defined(__AVX512F__)
  return __builtin_ia32_vpermi2varpd512(a, order, b);
#elif REAL_BYTES == 8
  return shuffle2(a, b, as_ulong8(order));
#else
  return shuffle2(a, b, as_uint8(order));
#endif
}

// How the neighbours of LANES cells stand in memory.
#define SCATTERED 0   // anyhow
#define TWO_BLOCKS 1  // in two aligned blocks, those of a block with one frame
#define ALIGNED 2     // in one, in the order of the cells

// The neighbours of LANES cells across one side; unless SCATTERED, lane[0] and second are those of blocks' first cells.
typedef struct {
  Side lane[LANES], second;
  mask_t order;
  vec sign;
  int kind;
} Sides;

static inline mask_t order_load(const int *order)
{
#if REAL_BYTES == 8
  return convert_long8(vload8(0, order));
#else
  return vload8(0, order);
#endif
}

// Neighbours in a chunk whose neighbours are all straight.
static inline void sides_straight(Sides *s, const ChunkSides *c, int side, int part)
{
  int other[LANES], order[LANES], first, second;
  for (int l = 0; l < LANES; ++l) other[l] = straight_neighbour(c, side, c->links[side * CHUNK + part + l]);
  first = second = other[0] / LANES;
  for (int l = 1; l < LANES; ++l) {
    first = min(first, other[l] / LANES);
    second = max(second, other[l] / LANES);
  }
  bool aligned = first == second, two = true;
  for (int l = 0; l < LANES; ++l) {
    aligned &= other[l] % LANES == l;
    two &= other[l] / LANES == first || other[l] / LANES == second;
    order[l] = other[l] % LANES + (other[l] / LANES == first ? 0 : LANES);
  }
  s->kind = aligned ? ALIGNED : two ? TWO_BLOCKS : SCATTERED;
  s->order = order_load(order);
  s->sign = 1;
  side_straight(s->lane, c, side, first * LANES);
  side_straight(&s->second, c, side, second * LANES);
  if (s->kind == SCATTERED)
    for (int l = 0; l < LANES; ++l) side_straight(s->lane + l, c, side, other[l]);
}

// Whether a line of a neighbour at `place` of its block stands there as one at `start` says.
static inline bool same_block(const Side *s, int place, const Side *start)
{
  return s->at - place == start->at && s->along == start->along && s->across == start->across && s->inward == start->inward;
}

// Any neighbours.
static inline void sides_general(Sides *s, const ChunkSides *c, int side, int part, int count)
{
  real sign[LANES];
  int order[LANES];
  bool aligned = true, two = true, is_second = false;
  Side first;
  for (int l = 0; l < LANES; ++l) {
    const int place = part + min(l, count - 1);
    const uint link = c->links[side * CHUNK + place];
    const int other = general_neighbour(c, side, place, link);
    const int cell = other < c->num_cells ? other : other - c->num_cells, in_block = cell % LANES;
    Side *one = s->lane + l;
    side_general(one, c, other, link);
    sign[l] = one->sign;
    two &= cell - in_block + LANES <= (other < c->num_cells ? c->num_cells : c->num_ghosts);
    if (l == 0) {
      first = *one;
      first.at -= in_block;
      s->second = first;
    }
    const bool here = same_block(one, in_block, &first);
    if (!here && !is_second) {
      is_second = true;
      s->second = *one;
      s->second.at -= in_block;
    }
    two &= here || same_block(one, in_block, &s->second);
    aligned &= here && in_block == l;
    order[l] = in_block + (here ? 0 : LANES);
  }
  s->kind = two && aligned ? ALIGNED : two ? TWO_BLOCKS : SCATTERED;
  s->order = order_load(order);
  s->sign = vload8(0, sign);
  if (two) s->lane[0] = first;
}

// Value and derivative of a block of neighbours at the end of the line (a, b).
static inline void block_line(const Side *s, int a, int b, vec *u, vec *d)
{
  __global const real *at = s->at + (a * s->along + b * s->across);
  const vec value = vload8(0, at);
  vec slope = SLOPE[0] * value;
  UNROLL
  for (int k = 1; k < N; ++k) slope = fma((vec)SLOPE[k], vload8(0, at + k * s->inward), slope);
  *u = value;
  *d = slope;
}

// Lane l of neighbours at the end of the line (a, b), k nodes inwards.
#define LANE_AT(l) s->lane[l].at[a * s->lane[l].along + b * s->lane[l].across + k * s->lane[l].inward]

// Value u and outward derivative d of the neighbours at the end of the line (a, b).
static inline __attribute__((always_inline)) void sides_line(const Sides *s, int a, int b, vec *u, vec *d)
{
  vec value, slope;
  if (s->kind == SCATTERED) {
    value = slope = 0;
    for (int k = 0; k < N; ++k) {
      const vec one = (vec)(LANE_AT(0), LANE_AT(1), LANE_AT(2), LANE_AT(3), LANE_AT(4), LANE_AT(5), LANE_AT(6), LANE_AT(7));
      if (k == 0) value = one;
      slope = fma((vec)SLOPE[k], one, slope);
    }
  } else {
    block_line(s->lane, a, b, &value, &slope);
    if (s->kind == TWO_BLOCKS) {
      vec other, beside;
      block_line(&s->second, a, b, &other, &beside);
      value = merged(value, other, s->order);
      slope = merged(slope, beside, s->order);
    }
  }
  *u = s->sign * value;
  *d = s->sign * slope;
}

// Number `entry` of the classes of LANES cells.
static inline vec class_load(__global const real *classes, __global const int *class_of_cell, int uniform, int last, int entry)
{
  if (uniform >= 0) return (vec)classes[uniform * 4 * CLASS_SIZE + entry];
  real values[LANES];
  for (int l = 0; l < LANES; ++l) values[l] = classes[class_of_cell[min(l, last)] * 4 * CLASS_SIZE + entry];
  return vload8(0, values);
}
#define CLASS(entry) class_load((__global const real *)classes, class_of_cell + c.first + part, c.more.w, count - 1, entry)

__kernel void sipg_affine_lanes(ARGUMENTS)
{
  const int slot = get_global_id(0) / (CHUNK / LANES), part = get_global_id(0) % (CHUNK / LANES) * LANES;
  if (slot >= num_chunks) return;
  const int chunk = chunks ? chunks[slot] : slot, width = CHUNK_WIDTH(chunk, num_cells);
  if (part >= width) return;
  const ChunkSides c = CHUNK_SIDES(chunk);
  const size_t first = (size_t)chunk * (CHUNK * NDOF) + part;
  const int count = min(LANES, width - part);

  vec v[NDOF], sum[NDOF];
  if (count == LANES) {
    for (int r = 0; r < NDOF; ++r) v[r] = vload8(0, u_owned + first + r * width);
  } else {
    for (int r = 0; r < NDOF; ++r) {
      real values[LANES];
      for (int l = 0; l < LANES; ++l) values[l] = u_owned[first + r * width + min(l, count - 1)];
      v[r] = vload8(0, values);
    }
  }
  const vec mass = CLASS(3);
  for (int axis = 0; axis < DIM; ++axis) {
    const int pitch = PITCH(axis), along = STEP_ALONG(axis), across = STEP_ACROSS(axis);
    Sides low, high;
    if (c.more.z & STRAIGHT) {
      sides_straight(&low, &c, 2 * axis, part);
      sides_straight(&high, &c, 2 * axis + 1, part);
    } else {
      sides_general(&low, &c, 2 * axis, part, count);
      sides_general(&high, &c, 2 * axis + 1, part, count);
    }
    const vec metric = CLASS(axis), sigma0 = CLASS(4 + 4 * axis), flux0 = CLASS(5 + 4 * axis);
    const vec sigma1 = CLASS(6 + 4 * axis), flux1 = CLASS(7 + 4 * axis);
    for (int line = 0; line < LINES; ++line) {
      const int a = line % N, b = line / N, start = a * along + b * across;
      vec u0, u1, d0, d1, w[N], t[N];
      sides_line(&low, a, b, &u0, &d0);
      sides_line(&high, a, b, &u1, &d1);
      UNROLL
      for (int k = 0; k < N; ++k) w[k] = v[start + k * pitch];
      lanes_product(w, u0, u1, d0, d1, metric, sigma0, flux0, sigma1, flux1, t);
      UNROLL
      for (int k = 0; k < N; ++k) {
        const int r = start + k * pitch;
        sum[r] = axis == 0 ? fma(mass, w[k], t[k]) : sum[r] + t[k];
      }
    }
  }
  vec product = 0;
  for (int r = 0; r < NDOF; ++r) {
    const vec value = WEIGHTS[r % N] * WEIGHTS[r / N % N] * (DIM == 3 ? WEIGHTS[r / (N * N)] : 1) * sum[r];
    if (count == LANES) {
      vstore8(value, 0, out + first + r * width);
    } else {
      real values[LANES];
      vstore8(value, 0, values);
      for (int l = 0; l < count; ++l) out[first + r * width + l] = values[l];
    }
    product = fma(v[r], value, product);
  }
  if (parts) {
    real values[LANES];
    vstore8(product, 0, values);
    for (int l = 0; l < count; ++l) parts[CHUNK * chunk + part + l] = values[l];
  }
}
