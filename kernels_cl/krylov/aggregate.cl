// Smoothed aggregation (Vanek, Mandel and Brezina 1996): strong couplings of the nodes of a matrix, aggregates around a maximal
// independent set at distance two (Bell, Dalton and Olson 2012), and the prolongator from near-null vectors.
//
// A node is a row of blocks [SIZE, SIZE]. Laid behind block_rows.cl, whose row_of and place_of it uses.
//
// needs: GROUP SIZE MODES REAL_BYTES
//
// Sizes
//   SIZE   numbers of a node;  MODES  near-null vectors
// Arrays
//   starts [node + 1], columns [block], values [block, SIZE, SIZE]  the matrix
//   scale    [node]   norm of the diagonal block;  inverse [node, SIZE] one over the diagonal
//   largest  [node]   weight of the strongest coupling
//   weight   [block]  strength of a coupling of the symmetric part, 0 of weak ones and of the diagonal block
//   state    [node]   2 of a root, 1 undecided, 0 else in the highest bits, below them what decides between equals
//   roots    [node + 1]  number of roots before a node;  numbers [node] aggregate, -1 of none

#define ROOT 2ul
#define OPEN 1ul
#define KIND(state) ((state) >> 62)
#define ENOUGH 0.2f  // couplings to nodes without an aggregate, of all, from which a node may be a root of the second choice
#define LARGE 0.1  // coupling of a node without an aggregate over its largest one, from which it interpolates
#define LEAST 0.1  // diagonal with weak couplings over the diagonal, from which such a node's couplings are scaled
#define ALONE 0.1  // coupling over the diagonal, summed over a row, up to which Jacobi's iteration solves it

static real norm_square(__global const real *block)
{
  real sum = 0;
  for (int i = 0; i < SIZE * SIZE; ++i) sum += block[i] * block[i];
  return sum;
}

static ulong open_state(int node)
{
  uint hash = (uint)node;
  for (int turn = 0; turn < 2; ++turn) hash = ((hash >> 16) ^ hash) * 0x45d9f3bu;
  hash = (hash >> 16) ^ hash;
  return OPEN << 62 | (ulong)(hash & 0x3fffffffu) << 32 | (uint)node;
}

KERNEL(GROUP) void aggregate_diagonal(int nodes, __global const int *starts, __global const int *columns,
                                      __global const real *values, __global real *scale, __global real *inverse)
{
  const int node = get_global_id(0);
  if (node >= nodes) return;
  const int place = place_of(node, starts[node], starts[node + 1], columns);
  const int here = place < starts[node + 1] && columns[place] == node;
  scale[node] = here ? sqrt(norm_square(values + place * (SIZE * SIZE))) : 0;
  for (int i = 0; i < SIZE; ++i) {
    const real entry = here ? values[place * (SIZE * SIZE) + i * (SIZE + 1)] : 0;
    inverse[node * SIZE + i] = entry == 0 ? 1 : 1 / entry;
  }
}

// Weights, the largest of each row, and the states before the first round; a node of rows that Jacobi's iteration solves
// belongs to no aggregate.
KERNEL(GROUP) void aggregate_strength(int nodes, __global const int *starts, __global const int *columns,
                                      __global const real *values, __global const real *scale,
                                      __global const real *inverse, real threshold, __global float *weight,
                                      __global float *largest, __global ulong *state)
{
  const int node = get_global_id(0);
  if (node >= nodes) return;
  real sums[SIZE];
  for (int i = 0; i < SIZE; ++i) sums[i] = 0;
  float most = 0;
  for (int k = starts[node]; k < starts[node + 1]; ++k) {
    const int other = columns[k];
    for (int i = 0; i < SIZE; ++i)
      for (int j = 0; j < SIZE; ++j)
        if (other != node || i != j) sums[i] += fabs(values[(k * SIZE + i) * SIZE + j]);
    weight[k] = 0;
    if (other == node) continue;
    const int end = starts[other + 1], back = place_of(node, starts[other], end, columns);
    const int is_paired = back < end && columns[back] == node;
    real square = 0, entry = 0;
    for (int i = 0; i < SIZE; ++i)
      for (int j = 0; j < SIZE; ++j) {
        const real turned = is_paired ? values[(back * SIZE + j) * SIZE + i] : 0;
        entry = (values[(k * SIZE + i) * SIZE + j] + turned) / 2;
        square += entry * entry;
      }
    const real product = scale[node] * scale[other];
    if (SIZE == 1 && entry * inverse[node] > 0) continue;
    if (square > threshold * threshold * product && square > 0) weight[k] = (float)(product > 0 ? square / product : 1);
    most = fmax(most, weight[k]);
  }
  largest[node] = most;
  int alone = 1;
  for (int i = 0; i < SIZE; ++i) alone &= sums[i] <= (real)ALONE * fabs(1 / inverse[node * SIZE + i]);
  state[node] = alone && most == 0 ? 0 : open_state(node);
}

// Couplings below a part of the largest of either row become weak. Rows that keep none are given no aggregate where
// `interpolated` is set: their nodes depend on neighbours that do not depend on them.
KERNEL(GROUP) void aggregate_weaken(int nodes, __global const int *starts, __global const int *columns,
                                    __global const float *largest, float part, int interpolated,
                                    __global float *weight, __global ulong *state, __global int *counts)
{
  const int node = get_global_id(0);
  if (node >= nodes) return;
  int count = 0;
  for (int k = starts[node]; k < starts[node + 1]; ++k) {
    if (weight[k] < part * part * fmax(largest[node], largest[columns[k]])) weight[k] = 0;
    count += weight[k] > 0;
  }
  counts[node] = count;
  if (interpolated && !count) state[node] = 0;
}

// The matrix that smooths the prolongator of a matrix of numbers: weak couplings are added to the diagonal. A node
// without an aggregate keeps its large couplings to aggregates, scaled so that one Jacobi step interpolates constants.
// First the couplings that each row keeps [block] and their number, then columns and values.

KERNEL(GROUP) void aggregate_keep(int nodes, __global const int *starts, __global const int *columns,
                                  __global const real *values, __global const float *weight,
                                  __global const int *numbers, __global char *kept, __global int *counts)
{
  const int node = get_global_id(0);
  if (node >= nodes) return;
  const int alone = numbers[node] < 0;
  real largest = 0;
  if (alone)
    for (int k = starts[node]; k < starts[node + 1]; ++k)
      if (numbers[columns[k]] >= 0) largest = fmax(largest, fabs(values[k]));
  int count = 0;
  for (int k = starts[node]; k < starts[node + 1]; ++k) {
    const int is_large = alone && numbers[columns[k]] >= 0 && fabs(values[k]) > (real)LARGE * largest;
    kept[k] = columns[k] == node || is_large || (!alone && weight[k] > 0);
    count += kept[k];
  }
  counts[node] = count;
}

KERNEL(GROUP) void aggregate_filter(int nodes, __global const int *starts, __global const int *columns,
                                    __global const real *values, __global const char *kept,
                                    __global const int *numbers, __global const int *kept_starts,
                                    __global int *kept_columns, __global real *found)
{
  const int node = get_global_id(0);
  if (node >= nodes) return;
  int place = kept_starts[node], diagonal = -1;
  real sum = 0, own = 0;
  for (int k = starts[node]; k < starts[node + 1]; ++k)
    if (kept[k]) {
      if (columns[k] == node) diagonal = place, own = values[k];
      kept_columns[place] = columns[k];
      found[place++] = values[k];
    } else sum += values[k];
  if (diagonal >= 0) found[diagonal] += sum;
  if (numbers[node] < 0 && (own + sum) * own > (real)LEAST * own * own)
    for (int k = kept_starts[node]; k < place; ++k) found[k] *= own / (own + sum);
}

// The states before the second choice of roots, among nodes that have no aggregate and enough couplings to such nodes.
KERNEL(GROUP) void aggregate_reopen(int nodes, __global const int *starts, __global const int *columns,
                                    __global const float *weight, __global const int *numbers, __global ulong *state)
{
  const int node = get_global_id(0);
  if (node >= nodes) return;
  int strong = 0, without = 0;
  for (int k = starts[node]; k < starts[node + 1]; ++k) {
    strong += weight[k] > 0;
    without += weight[k] > 0 && numbers[columns[k]] < 0;
  }
  state[node] = numbers[node] < 0 && without >= ENOUGH * strong && without > 0 ? open_state(node) : 0;
}

// Couplings that are strong in one of two sets of weights and weak in the other.
KERNEL(GROUP) void aggregate_changes(int blocks, __global const float *before, __global const float *now,
                                     __global int *changes)
{
  const int entry = get_global_id(0);
  if (entry < blocks && (before[entry] > 0) != (now[entry] > 0)) atomic_inc(changes);
}

KERNEL(GROUP) void aggregate_largest(int nodes, __global const int *starts, __global const int *columns,
                                     __global const float *weight, __global const ulong *given, __global ulong *found)
{
  const int node = get_global_id(0);
  if (node >= nodes) return;
  ulong most = given[node];
  for (int k = starts[node]; k < starts[node + 1]; ++k)
    if (weight[k] > 0) most = max(most, given[columns[k]]);
  found[node] = most;
}

// One round: a node that is the largest within two couplings becomes a root, one that sees a root there none.
KERNEL(GROUP) void aggregate_decide(int nodes, __global const ulong *largest, __global ulong *state,
                                    __global int *undecided)
{
  const int node = get_global_id(0);
  if (node >= nodes || KIND(state[node]) != OPEN) return;
  if (largest[node] == state[node]) state[node] = ROOT << 62 | (state[node] & 0x3ffffffffffffffful);
  else if (KIND(largest[node]) == ROOT) state[node] = (uint)node;
  else undecided[0] = 1;
}

KERNEL(GROUP) void aggregate_roots(int nodes, __global const ulong *state, __global int *is_root)
{
  const int node = get_global_id(0);
  if (node < nodes) is_root[node] = KIND(state[node]) == ROOT;
}

// Roots found an aggregate, which the nodes join that have none and are coupled to a root, each to the strongest.
KERNEL(GROUP) void aggregate_begin(int nodes, __global const int *starts, __global const int *columns,
                                   __global const float *weight, __global const ulong *state,
                                   __global const int *roots, __global int *numbers)
{
  const int node = get_global_id(0);
  if (node >= nodes || numbers[node] >= 0) return;
  int number = -1;
  float most = 0;
  for (int k = starts[node]; k < starts[node + 1]; ++k)
    if (weight[k] > most && KIND(state[columns[k]]) == ROOT) most = weight[k], number = roots[columns[k]];
  numbers[node] = KIND(state[node]) == ROOT ? roots[node] : number;
}

// Nodes without an aggregate join that of their strongest coupling.
KERNEL(GROUP) void aggregate_join(int nodes, __global const int *starts, __global const int *columns,
                                  __global const float *weight, __global const int *given, __global int *numbers)
{
  const int node = get_global_id(0);
  if (node >= nodes) return;
  int number = given[node];
  float most = 0;
  if (number < 0)
    for (int k = starts[node]; k < starts[node + 1]; ++k)
      if (weight[k] > most && given[columns[k]] >= 0) most = weight[k], number = given[columns[k]];
  numbers[node] = number;
}

// Prolongator ------------------------------------------------------------------------------------------------------

// Near-null vectors [node, SIZE, MODES] orthonormal in each aggregate: blocks [SIZE, MODES] of the tentative prolongator, and
// those of the level below [aggregate, MODES, MODES]. A vector that depends on those before it is left out: zero.
KERNEL(GROUP) void aggregate_tentative(int aggregates, __global const int *member_starts, __global const int *members,
                                       __global const int *places, __global const real *modes, __global real *values,
                                       __global real *below)
{
  const int aggregate = get_global_id(0);
  if (aggregate >= aggregates) return;
  const int begin = member_starts[aggregate], end = member_starts[aggregate + 1];
  __global real *triangle = below + aggregate * (MODES * MODES);
  for (int i = 0; i < MODES * MODES; ++i) triangle[i] = 0;
  for (int c = 0; c < MODES; ++c) {
    real before = 0, after = 0;
    for (int k = begin; k < end; ++k)
      for (int i = 0; i < SIZE; ++i) {
        const real value = modes[(members[k] * SIZE + i) * MODES + c];
        values[(places[k] * SIZE + i) * MODES + c] = value;
        before += value * value;
      }
    for (int turn = 0; turn < 2; ++turn)  // twice is enough
      for (int d = 0; d < c; ++d) {
        real dot = 0;
        for (int k = begin; k < end; ++k)
          for (int i = 0; i < SIZE; ++i) {
            const int row = (places[k] * SIZE + i) * MODES;
            dot += values[row + c] * values[row + d];
          }
        triangle[d * MODES + c] += dot;
        for (int k = begin; k < end; ++k)
          for (int i = 0; i < SIZE; ++i) {
            const int row = (places[k] * SIZE + i) * MODES;
            values[row + c] -= dot * values[row + d];
          }
      }
    for (int k = begin; k < end; ++k)
      for (int i = 0; i < SIZE; ++i) {
        const real value = values[(places[k] * SIZE + i) * MODES + c];
        after += value * value;
      }
    const int kept = after > (real)1e4 * REAL_EPSILON * REAL_EPSILON * before && after > (real)1e-16 * before;
    triangle[c * MODES + c] = kept ? sqrt(after) : 0;
    const real factor = kept ? 1 / sqrt(after) : 0;
    for (int k = begin; k < end; ++k)
      for (int i = 0; i < SIZE; ++i) values[(places[k] * SIZE + i) * MODES + c] *= factor;
  }
}

// P = T - omega D^-1 (A T), given A T in P; a row of T has one block, or none: then `alone` stands for omega.
KERNEL(GROUP) void aggregate_smooth(int blocks, int nodes, __global const int *starts, __global const int *columns,
                                    __global const int *t_starts, __global const int *t_columns,
                                    __global const real *t, __global const real *inverse, real omega, real alone,
                                    __global real *values)
{
  const int entry = get_global_id(0);
  if (entry >= blocks) return;
  const int node = row_of(entry, nodes, starts), place = t_starts[node];
  const int has_one = place < t_starts[node + 1], here = has_one && t_columns[place] == columns[entry];
  const real step = has_one ? omega : alone;
  for (int i = 0; i < SIZE; ++i)
    for (int j = 0; j < MODES; ++j) {
      const int at = (entry * SIZE + i) * MODES + j;
      values[at] = (here ? t[(place * SIZE + i) * MODES + j] : 0) - step * inverse[node * SIZE + i] * values[at];
    }
}

// Rows of zeros, of vectors that were left out, get a one on the diagonal.
KERNEL(GROUP) void aggregate_mend(int nodes, __global const int *starts, __global const int *columns,
                                  __global real *values)
{
  const int node = get_global_id(0);
  if (node >= nodes) return;
  const int place = place_of(node, starts[node], starts[node + 1], columns);
  if (place == starts[node + 1] || columns[place] != node) return;
  for (int i = 0; i < SIZE; ++i)
    if (values[place * (SIZE * SIZE) + i * (SIZE + 1)] == 0) values[place * (SIZE * SIZE) + i * (SIZE + 1)] = 1;
}
