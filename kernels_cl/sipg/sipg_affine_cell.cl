// Interior penalty product on rectangles and boxes, one work-item a cell, kept in registers: for GPUs and few nodes.
// After sipg_affine.clh, where arrays and sizes stand.
// Phases: load the cell and the neighbours' values and slopes on each line; for each line its product; weigh and store.
// needs: ARGUMENTS DIM N NDOF NFACETS WEIGHTS UNROLL CLASS_SIZE

LINE_PRODUCT(line_product, real)

static inline void cell_product(const ChunkSides *c, int place, int width, bool straight, const real *v, const uint *link,
                                __global const int *class_of_cell, __global const real4 *classes, __global real *out,
                                __global real *part)
{
  real sum[NDOF];
  Side side[NFACETS];
  UNROLL
  for (int s = 0; s < NFACETS; ++s) {
    if (straight)
      side_straight(side + s, c, s, straight_neighbour(c, s, link[s]));
    else
      side_general(side + s, c, general_neighbour(c, s, place, link[s]), link[s]);
  }
  real u[NFACETS * LINES], d[NFACETS * LINES];
  UNROLL
  for (int k = 0; k < NFACETS * LINES; ++k) side_line(side + k / LINES, k % LINES % N, k % LINES / N, u + k, d + k);
  const int number = c->more.w < 0 ? class_of_cell[c->first + place] : c->more.w;
  __global const real4 *row = classes + number * CLASS_SIZE;
  const real4 numbers = row[0];
  UNROLL
  for (int axis = 0; axis < DIM; ++axis) {
    const real metric = axis == 0 ? numbers.x : axis == 1 ? numbers.y : numbers.z;
    const real4 ends = row[1 + axis];
    UNROLL
    for (int line = 0; line < LINES; ++line) {
      const int a = line % N, b = line / N, start = a * STEP_ALONG(axis) + b * STEP_ACROSS(axis);
      const int low = 2 * axis * LINES + line, high = low + LINES;
      real w[N], t[N];
      UNROLL
      for (int k = 0; k < N; ++k) w[k] = v[start + k * PITCH(axis)];
      line_product(w, u[low], u[high], d[low], d[high], metric, ends.x, ends.y, ends.z, ends.w, t);
      UNROLL
      for (int k = 0; k < N; ++k) {
        const int r = start + k * PITCH(axis);
        sum[r] = axis == 0 ? fma(numbers.w, w[k], t[k]) : sum[r] + t[k];
      }
    }
  }
  real product = 0;
  UNROLL
  for (int r = 0; r < NDOF; ++r) {
    const real value = WEIGHTS[r % N] * WEIGHTS[r / N % N] * (DIM == 3 ? WEIGHTS[r / (N * N)] : 1) * sum[r];
    out[r * width] = value;
    product = fma(v[r], value, product);
  }
  if (part) *part = product;
}

__kernel void sipg_affine_cell(ARGUMENTS)
{
  const int slot = get_global_id(0) / CHUNK, place = get_global_id(0) % CHUNK;
  if (slot >= num_chunks) return;
  const int chunk = chunks ? chunks[slot] : slot, width = CHUNK_WIDTH(chunk, num_cells);
  if (place >= width) return;
  const size_t first = (size_t)chunk * (CHUNK * NDOF) + place;
  // What needs no number from memory is asked for first.
  real v[NDOF];
  uint link[NFACETS];
  UNROLL
  for (int s = 0; s < NFACETS; ++s) link[s] = links[((size_t)chunk * NFACETS + s) * CHUNK + place];
  const ChunkSides c = CHUNK_SIDES(chunk);
  chunk_prefetch(u_owned, links, chunk, num_cells, place, CHUNK);
  if (width == CHUNK) {
    UNROLL
    for (int r = 0; r < NDOF; ++r) v[r] = u_owned[first + r * CHUNK];
  } else {
    UNROLL
    for (int r = 0; r < NDOF; ++r) v[r] = u_owned[first + r * width];
  }
  __global real *mine = parts ? parts + CHUNK * chunk + place : 0;
  if (c.more.z & STRAIGHT)
    cell_product(&c, place, CHUNK, true, v, link, class_of_cell, classes, out + first, mine);
  else
    cell_product(&c, place, width, false, v, link, class_of_cell, classes, out + first, mine);
}
