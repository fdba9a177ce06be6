// Interior penalty product on rectangles and boxes: a work-group for CELLS cells of a chunk, a work-item for some lines.
// After sipg_affine.clh, where arrays and sizes stand.
// Phases: for each axis, lines' products go to (are added to) local memory; after the last axis they are weighed and stored.
// Lanes run over cells, so that all accesses are coalesced; lines of later axes find their cells' values in the cache.
// needs: ARGUMENTS DIM N NDOF NFACETS WEIGHTS UNROLL CLASS_SIZE CELLS THREADS
//
// Sizes
//   CELLS of a work-group, a divisor of 32;  THREADS work-items of a cell

LINE_PRODUCT(line_product, real)

static inline void line_products(const ChunkSides *c, int place, int width, bool straight, bool active, int lane, int thread,
                                 const uint *link, __global const int *class_of_cell, __global const real4 *classes,
                                 __global const real *own, __global real *out, __local real *sums, __global real *part)
{
  const int number = c->more.w < 0 ? class_of_cell[c->first + place] : c->more.w;
  __global const real4 *row = classes + number * CLASS_SIZE;
  const real4 numbers = row[0];
  UNROLL
  for (int axis = 0; axis < DIM; ++axis) {
    Side low, high;
    if (straight) {
      side_straight(&low, c, 2 * axis, straight_neighbour(c, 2 * axis, link[2 * axis]));
      side_straight(&high, c, 2 * axis + 1, straight_neighbour(c, 2 * axis + 1, link[2 * axis + 1]));
    } else {
      const int left = 2 * axis, right = left + 1;
      side_general(&low, c, general_neighbour(c, left, place, link[left]), link[left]);
      side_general(&high, c, general_neighbour(c, right, place, link[right]), link[right]);
    }
    const real metric = axis == 0 ? numbers.x : axis == 1 ? numbers.y : numbers.z;
    const real4 ends = row[1 + axis];
    real product = 0;
    for (int line = thread; line < LINES; line += THREADS) {
      const int a = line % N, b = line / N, start = a * STEP_ALONG(axis) + b * STEP_ACROSS(axis);
      real u0, u1, d0, d1, v[N], t[N];
      UNROLL
      for (int k = 0; k < N; ++k) v[k] = own[(start + k * PITCH(axis)) * width];
      side_line(&low, a, b, &u0, &d0);
      side_line(&high, a, b, &u1, &d1);
      line_product(v, u0, u1, d0, d1, metric, ends.x, ends.y, ends.z, ends.w, t);
      const real weight = WEIGHTS[a] * (DIM == 3 ? WEIGHTS[b] : 1);
      UNROLL
      for (int k = 0; k < N; ++k) {
        const int r = start + k * PITCH(axis);
        t[k] = axis == 0 ? fma(numbers.w, v[k], t[k]) : t[k] + sums[r * CELLS + lane];
        if (axis < DIM - 1)
          sums[r * CELLS + lane] = t[k];
        else {
          const real value = weight * WEIGHTS[k] * t[k];
          if (active) out[r * width] = value;
          product = fma(v[k], value, product);
        }
      }
    }
    if (axis < DIM - 1)
      BARRIER_LOCAL();
    else if (part)
      *part = product;  // work-items that stand for no cell have those of the last one
  }
}

KERNEL(CELLS * THREADS) void sipg_affine_line(ARGUMENTS)
{
  __local real sums[NDOF * CELLS];
  const int group = get_group_id(0), lane = get_local_id(0) % CELLS, thread = get_local_id(0) / CELLS;
  const int slot = group / (CHUNK / CELLS), part = group % (CHUNK / CELLS) * CELLS + lane;
  const int chunk = chunks ? chunks[slot] : slot, width = CHUNK_WIDTH(chunk, num_cells);
  const int place = min(part, width - 1);
  const size_t first = (size_t)chunk * (CHUNK * NDOF) + place;
  uint link[NFACETS];
  UNROLL
  for (int s = 0; s < NFACETS; ++s) link[s] = links[((size_t)chunk * NFACETS + s) * CHUNK + place];
  const ChunkSides c = CHUNK_SIDES(chunk);
  if (group % (CHUNK / CELLS) == 0) chunk_prefetch(u_owned, links, chunk, num_cells, get_local_id(0), CELLS * THREADS);
  __global real *mine = parts ? parts + (size_t)thread * num_cells + CHUNK * chunk + place : 0;
  if (c.more.z & STRAIGHT)
    line_products(&c, place, CHUNK, true, true, lane, thread, link, class_of_cell, classes, u_owned + first, out + first,
                  sums, mine);
  else
    line_products(&c, place, width, false, part < width, lane, thread, link, class_of_cell, classes, u_owned + first,
                  out + first, sums, mine);
}
