// Numbers of facets that follow a state, penalties or stabilization, beside those of another state. After krylov_sum.clh.
//
// Entry e of component c is at c * component_step + e * entry_step, in column e % stride of a row of cells; columns from
// num_cells on are of no cell.
//
// needs: GROUP NC FOR_UNKNOWNS

#define OF_COMPONENT(v, c, e) v[(c) * component_step + (e) * entry_step]

// Sums [NC, group] of (|before|, |now|, 1 where |now| > growth |before|, entries).
KERNEL(GROUP) void facet_numbers_compare(int entries, int component_step, int entry_step, int stride, int num_cells,
                                         real growth, __global const real *before, __global const real *now,
                                         __global real4 *sums)
{
  __local real4 scratch[GROUP];
  for (int c = 0; c < NC; ++c) {
    real4 sum = 0;
    FOR_UNKNOWNS(e, entries) {
      const real old = fabs(OF_COMPONENT(before, c, e)), new = fabs(OF_COMPONENT(now, c, e));
      if (e % stride < num_cells) sum += (real4)(old, new, new > growth * old, 1);
    }
    store_sum(sum, scratch, sums + c * get_num_groups(0));
  }
}

// Raise those of component c to a least value.
KERNEL(GROUP) void facet_numbers_raise(int entries, int component_step, int entry_step, int c, real least, __global real *now)
{
  FOR_UNKNOWNS(e, entries) OF_COMPONENT(now, c, e) = fmax(OF_COMPONENT(now, c, e), least);
}

// Take those before where they are larger.
KERNEL(GROUP) void facet_numbers_join(int count, __global const real *before, __global real *now)
{
  FOR_UNKNOWNS(i, count) now[i] = fabs(now[i]) > fabs(before[i]) ? now[i] : before[i];
}
