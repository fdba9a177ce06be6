// Whole residual of first-order elements without atomics: a work-group sums a patch of cells in local memory.
//
// A patch reads each vertex once and writes each interior sum once; sums of vertices on the border of a patch go to a
// short list that `assemble_rows` adds up. Phases:
//   places    thread = vertex: coordinates and values into local memory
//   clusters  thread = CLUSTER cells in a fan, which share a hub (a vertex in 2D, an edge in 3D) and each a facet with the
//             next: their vertices are read, and the sums written into slots, once for all of them
//   sums      thread = vertex: its slots summed in a fixed order, written
// A fan of three triangles has 5 vertices where three triangles have 9, and numbers within the patch stand several in a
// word. What is read from global memory is read in the first phase, all at once: waiting for it is most of the time.
// needs: ARGUMENTS ROLE ALONG POINT_TERMS NDOF NBASIS NC NA NAUX NQ DIM NNODES TIME THREADS CLUSTER CORNER_BITS SLOT_BITS
// needs: UNROLL_POINTS
// needs: PLACE_ROUNDS WORD_ROUNDS BASIS GRAD GEO GEO_GRAD WEIGHTS
// needs: PATCH_SLOPES PATCH_CELL PATCH_GEOMETRY PATCH_TEST PATCH_CELL_END
//
// UNROLL_POINTS: pragma of the loop over points
// PATCH_...: how the points of a cell are done, by cg_patch_tables.clh, or cg_patch_lines.clh for hexahedra
//
// PLACE_ROUNDS, WORD_ROUNDS: places and words of a work-item, at most
//
// Arrays, `place` counting the vertices of all patches in turn; see Patches for how numbers are packed
//   heads [patch, 7 + CLUSTER]  first place, places, interior places, first border value, first cluster, first
//                               word, words, clusters with more than 0, 1, ... cells
//   rounds [patch, 2, num_rounds]  interior places, and border places, with more than 0, 1, ... words in the list
//   place_dofs [NC, places]     compact numbers of the vertex' degrees of freedom;  place_x [DIM, places] coordinates
//   words                       of each patch in turn: [word, cluster] places of a cluster's vertices within the patch,
//                               then lists of the slots that add to places
//   patch_aux [NAUX, CLUSTER, clusters] auxiliary rows of the cells of clusters, nodes in their order
//   owned [n_owned]             complete sums;  border  sums to be finished
// Local memory, for most_places places, most_words words and most_slots slots
//   x_l [DIM, most_places] (in 2D and 3D the first two together);  v_l [vectors * NC, most_places] values;
//   corner_l [word, clusters], list_l  words of the patch;  slots_l [NC, most_slots] sums of clusters [vertex, cluster],
//   then a zero

#undef VECTORS
#if ALONG
#define VECTORS (2 + TIME)
#else
#define VECTORS (1 + TIME)
#endif

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1)))
void ROLE(cg_patch)(ARGUMENTS)
{
  // Numbers of the patch, its vertices and words in local memory, values of its vectors. Work-items without a place of their own
  // repeat the last, and there is a barrier, so that all loads come first.
  const int patch = get_global_id(0) / THREADS;
  __global const int *head = heads + patch * HEAD;
  const int first = head[0], count = head[1], inside = head[2], here = head[7];
  __local real2 *xy_l = local_;
  __local ulong *corner_l = (__local ulong *)(local_ + most_places), *list_l = corner_l + CORNER_WORDS * here;
  __local real *z_l = (__local real *)(corner_l + most_words);
  __local real *v_l = z_l + (DIM - 2) * most_places;
  POINT_LOAD_CONSTANTS
  int index_[PLACE_ROUNDS * NC];
  real x_[PLACE_ROUNDS * DIM], value_[VECTORS * PLACE_ROUNDS * NC];
  ulong word_[WORD_ROUNDS];
  PATCH_UNROLL
  for (int b = 0; b < PLACE_ROUNDS; ++b) {
    const int place = first + min((int)get_local_id(0) + b * THREADS, count - 1);
    for (int c = 0; c < NC; ++c) index_[b * NC + c] = place_dofs[c * places + place];
    for (int d = 0; d < DIM; ++d) x_[b * DIM + d] = place_x[d * places + place];
  }
  PATCH_UNROLL
  for (int b = 0; b < WORD_ROUNDS; ++b)
    word_[b] = words[head[5] + min((int)get_local_id(0) + b * THREADS, head[6] - 1)];
  PATCH_UNROLL
  for (int b = 0; b < PLACE_ROUNDS * NC; ++b) {
    value_[b] = dof_value(u_owned, u_tail, n_owned, index_[b]);
    WITH_TIME(value_[PLACE_ROUNDS * NC + b] = dof_value(ut_owned, ut_tail, n_owned, index_[b]);)
#if ALONG
    value_[(1 + TIME) * PLACE_ROUNDS * NC + b] = dof_value(du_owned, du_tail, n_owned, index_[b]);
#endif
  }
  BARRIER_LOCAL();
  PATCH_UNROLL
  for (int b = 0; b < PLACE_ROUNDS; ++b) {
    const int k = min((int)get_local_id(0) + b * THREADS, count - 1);
    for (int i = 0; i < VECTORS; ++i)
      for (int c = 0; c < NC; ++c) v_l[(i * NC + c) * most_places + k] = value_[(i * PLACE_ROUNDS + b) * NC + c];
    xy_l[k] = (real2)(x_[b * DIM], x_[b * DIM + 1]);
    if (DIM == 3) z_l[k] = x_[b * DIM + DIM - 1];
  }
  PATCH_UNROLL
  for (int b = 0; b < WORD_ROUNDS; ++b)
    corner_l[min((int)get_local_id(0) + b * THREADS, head[6] - 1)] = word_[b];
  BARRIER_LOCAL();
  __local real *slots_l = v_l + VECTORS * NC * most_places;
  FOR_ITEMS(c0, here) {
    // The cluster c0: its vertices' coordinates, values u_v, ut_v [VERTICES, NC], and zero sums r_v [VERTICES, NC].
    int at[VERTICES];
    real node[VERTICES * DIM], u_v[VERTICES * NC], r_v[VERTICES * NC];
    patch_corners(at, corner_l + c0, here);
    for (int v = 0; v < VERTICES; ++v) {
      const real2 xy = xy_l[at[v]];
      node[v * DIM] = xy.x;
      node[v * DIM + 1] = xy.y;
      if (DIM == 3) node[v * DIM + DIM - 1] = z_l[at[v]];
    }
    PATCH_VALUES(u_v, 0)
    WITH_TIME(real ut_v[VERTICES * NC]; PATCH_VALUES(ut_v, 1) PATCH_SLOPES(UT_E, ut_v))
    for (int i = 0; i < VERTICES * NC; ++i) r_v[i] = 0;
#if ALONG
    real du_v[VERTICES * NC];
    PATCH_VALUES(du_v, 1 + TIME)
    PATCH_SLOPES(DU_E, du_v)
#endif
    _Pragma("unroll")
    for (int part = 0; part < CLUSTER; ++part)
      if (part == 0 || c0 < head[7 + part]) {
        Geometry g;
        patch_geometry(&g, node, part);
        real aux_e[NAUX > 0 ? NAUX : 1];
        for (int k = 0; k < NAUX; ++k) aux_e[k] = patch_aux[(k * CLUSTER + part) * clusters + head[4] + c0];
        PATCH_CELL
        UNROLL_POINTS
        for (int q = 0; q < NQ; ++q) {
          TABLE const real *basis = BASIS + q * NBASIS, *grad = GRAD + q * NBASIS * DIM, *geo = GEO + q * NNODES;
          real f0[NC], f1[NC * DIM];
          PATCH_GEOMETRY
          CG_STATE(U_E, UT_E)
#if ALONG
          CG_DIRECTION(DU_E)
#endif
          POINT_TERMS
          point_pull_back(&g, WEIGHTS[q] * g.measure, f0, f1);
          PATCH_TEST
        }
        PATCH_CELL_END
      }
    for (int v = 0; v < VERTICES; ++v)
      for (int c = 0; c < NC; ++c) slots_l[c * most_slots + v * here + c0] = r_v[v * NC + c];
  }
  // Sums in the order of the list.
  if (get_local_id(0) == 0)
    for (int c = 0; c < NC; ++c) slots_l[c * most_slots + VERTICES * here] = 0;
  BARRIER_LOCAL();
  PATCH_UNROLL
  for (int b = 0; b < PLACE_ROUNDS; ++b) {
    const int k = get_local_id(0) + b * THREADS;
    if (k >= count) break;
    const int outside = k >= inside, nth = outside ? k - inside : k;
    __global const int *having = rounds + (patch * 2 + outside) * num_rounds;
    __local const ulong *word = list_l + nth;
    if (outside)
      for (int r = 0; r < num_rounds; ++r) word += having[r - num_rounds];
    real sum[NC];
    for (int c = 0; c < NC; ++c) sum[c] = 0;
    for (int r = 0; r < num_rounds && nth < having[r]; word += having[r++]) {
      const ulong packed = *word;
      for (int e = 0; e < SLOTS_A_WORD; ++e)
        for (int c = 0; c < NC; ++c) sum[c] += slots_l[c * most_slots + UNPACK(packed, e, SLOT_BITS)];
    }
    for (int c = 0; c < NC; ++c) {
      if (outside) border[(head[3] + nth) * NC + c] = sum[c];
      else owned[index_[b * NC + c]] = sum[c];
    }
  }
}
