// Interior penalty product on rectangles and boxes, one work-item for LANES cells as vectors: for CPUs.
// After sipg_affine.clh, where arrays and sizes stand.
// Phases: load the cells; for each axis and each line the neighbours' values and slopes and the line's product; weigh, store.
// In an order of cells that keeps neighbours close, those of LANES cells mostly stand in two aligned blocks of LANES cells.
// needs: DIM N NDOF NFACETS SLOPE WEIGHTS UNROLL CLASS_SIZE LANES

#if REAL_BYTES == 8
typedef double8 vec;
typedef long8 mask_t;
#else
typedef float8 vec;
typedef int8 mask_t;
#endif
LINE_PRODUCT(lanes_product, vec)

// Lane l of the result is lane order[l] of a, or of b where order[l] >= LANES.
inline vec merged(vec a, vec b, mask_t order)
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
#define TWO_BLOCKS 1  // in two aligned blocks
#define ALIGNED 2     // in one, in the order of the cells

// The neighbours of LANES cells across one side.
typedef struct {
  Side lane[LANES];
  __global const real *second;  // TWO_BLOCKS: the block beside that of lane[0]
  mask_t order;
  vec sign;
  int kind;
} Sides;

// Neighbours in a chunk whose neighbours are all straight.
inline void sides_straight(Sides *s, const ChunkSides *c, int side, int part)
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
  side_straight(s->lane, c, side, first * LANES);
  Side beside;
  side_straight(&beside, c, side, second * LANES);
  s->second = beside.at;
#if REAL_BYTES == 8
  s->order = convert_long8(vload8(0, order));
#else
  s->order = vload8(0, order);
#endif
  s->sign = 1;
  if (s->kind == SCATTERED)
    for (int l = 0; l < LANES; ++l) side_straight(s->lane + l, c, side, other[l]);
}

// Any neighbours.
inline void sides_general(Sides *s, const ChunkSides *c, int side, int part, int count)
{
  real sign[LANES];
  for (int l = 0; l < LANES; ++l) {
    const int place = part + min(l, count - 1);
    side_general(s->lane + l, c, side, place, c->links[side * CHUNK + place]);
    sign[l] = s->lane[l].sign;
  }
  s->kind = SCATTERED;
  s->sign = vload8(0, sign);
}

// Value u and outward derivative d of the neighbours at the end of the line (a, b).
inline void sides_line(const Sides *s, int a, int b, vec *u, vec *d)
{
  const Side *one = s->lane;
  const int start = a * one->along + b * one->across, inward = one->inward;
  if (s->kind == ALIGNED) {
    __global const real *at = one->at + start;
    const vec value = vload8(0, at);
    vec slope = SLOPE[0] * value;
    UNROLL
    for (int k = 1; k < N; ++k) slope = fma((vec)SLOPE[k], vload8(0, at + k * inward), slope);
    *u = value;
    *d = slope;
  } else if (s->kind == TWO_BLOCKS) {
    __global const real *at = one->at + start, *second = s->second + start;
    const vec here = vload8(0, at), there = vload8(0, second);
    vec slope = SLOPE[0] * here, beside = SLOPE[0] * there;
    UNROLL
    for (int k = 1; k < N; ++k) {
      slope = fma((vec)SLOPE[k], vload8(0, at + k * inward), slope);
      beside = fma((vec)SLOPE[k], vload8(0, second + k * inward), beside);
    }
    *u = merged(here, there, s->order);
    *d = merged(slope, beside, s->order);
  } else {
    real values[LANES], slopes[LANES];
    for (int l = 0; l < LANES; ++l) {
      Side single = s->lane[l];
      single.sign = 1;
      side_line(&single, a, b, values + l, slopes + l);
    }
    *u = s->sign * vload8(0, values);
    *d = s->sign * vload8(0, slopes);
  }
}

// Number `entry` of the classes of LANES cells.
inline vec class_load(__global const real *classes, __global const int *class_of_cell, int uniform, int last, int entry)
{
  if (uniform >= 0) return (vec)classes[uniform * 4 * CLASS_SIZE + entry];
  real values[LANES];
  for (int l = 0; l < LANES; ++l) values[l] = classes[class_of_cell[min(l, last)] * 4 * CLASS_SIZE + entry];
  return vload8(0, values);
}
#define CLASS(entry) class_load((__global const real *)classes, class_of_cell + c.first + part, c.more.w, count - 1, entry)

__kernel void sipg_affine_lanes(AFFINE_ARGUMENTS)
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
    for (int r = 0; r < NDOF; ++r) v[r] = vload8(0, owned + first + r * width);
  } else {
    for (int r = 0; r < NDOF; ++r) {
      real values[LANES];
      for (int l = 0; l < LANES; ++l) values[l] = owned[first + r * width + min(l, count - 1)];
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
  for (int r = 0; r < NDOF; ++r) {
    const vec value = WEIGHTS[r % N] * WEIGHTS[r / N % N] * (DIM == 3 ? WEIGHTS[r / (N * N)] : 1) * sum[r];
    if (count == LANES) {
      vstore8(value, 0, out + first + r * width);
    } else {
      real values[LANES];
      vstore8(value, 0, values);
      for (int l = 0; l < count; ++l) out[first + r * width + l] = values[l];
    }
  }
}
