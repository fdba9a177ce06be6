// Steps y = keep y + mix x + scale d (b - A x) one after another in one launch, whose work-groups wait for each other between
// steps. After sell.clh and dense.clh. All of them must run at the same time: Device.persistent_groups says how many do.
//
// A group that waits in vain writes NaN where the last step writes, and ends; so do all groups of later launches.
//
// needs: GROUP SLICE MOST BUFFERS GIVEN_BUFFERS ALL_BUFFERS PTX sell_row dense_row
// needs: FIELDS ROWS TEAM COLUMNS STARTS INDICES VALUES X B D Y
//
// Sizes
//   GROUP work-items of a group, a multiple of 256;  MOST steps of a launch
//   BUFFERS, GIVEN_BUFFERS, ALL_BUFFERS  number of buffers, their declarations and their names
//   FIELDS  of a step, of which the others are places:
//     ROWS of A;  TEAM work-items per row of a sparse A, 0 where `values` are the product, -1 where A is dense
//     COLUMNS of a dense A
//     STARTS INDICES VALUES X B D Y  buffers by their number, -1 for none
//   PTX   compute capability (90 for 9.0) where inline PTX may stand, else 0: one group only
// Arrays
//   steps    [step, FIELDS]
//   factors  [step, 3]       keep, mix, scale
//   arrived  [2]             how often groups came to a wait, of all launches; whether one waited in vain

#define SPINS (1 << 22)  // seconds
#define DENSE_TEAM 128

#if PTX
static inline unsigned arrive(volatile __global unsigned *arrived)
{
  unsigned before;
  asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], 1;" : "=r"(before) : "l"(arrived) : "memory");
  return before;
}
static inline unsigned count_of(volatile __global unsigned *arrived)
{
  unsigned count;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(count) : "l"(arrived) : "memory");
  return count;
}
#else
#define arrive(arrived) atomic_inc(arrived)
#define count_of(arrived) (*(arrived))
#endif

// True once all groups have come here; what they wrote before can be read then. False after too long a wait.
static inline int all_arrived(volatile __global unsigned *arrived, __local int *in_time)
{
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (get_local_id(0) == 0) {
    const unsigned groups = get_num_groups(0), target = (arrive(arrived) / groups + 1) * groups;
    int left = SPINS;
    while ((int)(count_of(arrived) - target) < 0 && left > 0) --left;
    *in_time = left > 0;
    if (left == 0) arrived[1] = 1;
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  return *in_time;
}

static inline real4 before_step(__global real *const __local *at, const __local int *step, const __local real *factor,
                                int row)
{
  return row_before(factor[0], factor[1], step[X] < 0 ? 0 : at[step[X]], step[B] < 0 ? 0 : at[step[B]],
                    step[D] < 0 ? 0 : at[step[D]], at[step[Y]], row);
}

static inline void sparse_step(__global real *const __local *at, const __local int *step, const __local real *factor,
                               __local real *part)
{
  const int slices = (step[ROWS] + SLICE - 1) / SLICE, team = step[TEAM], unit = SLICE * team, here = GROUP / unit;
  const int item = get_local_id(0);
  for (int first = (int)get_group_id(0) * here; first < slices; first += (int)get_num_groups(0) * here) {
    const int nth = first + item / unit, slice = nth < slices ? nth : -1, row = slice * SLICE + item % SLICE;
    const int writes = slice >= 0 && row < step[ROWS] && item % unit < SLICE;
    real4 before = 0;
    if (writes) before = before_step(at, step, factor, row);
    const real sum = sell_row((__global const int *)at[step[STARTS]], (__global const int *)at[step[INDICES]],
                              at[step[VALUES]], at[step[X]], 0, 0, slice, team, part);
    if (writes) at[step[Y]][row] = row_after(factor[0], factor[1], factor[2], before, sum);
  }
}

static inline void dense_step(__global real *const __local *at, const __local int *step, __local real *part)
{
  const int rows = step[ROWS], columns = step[COLUMNS], here = GROUP / DENSE_TEAM;
  const int item = (int)get_local_id(0) % DENSE_TEAM, mine = (int)get_local_id(0) / DENSE_TEAM;
  for (int first = (int)get_group_id(0) * here; first < rows; first += (int)get_num_groups(0) * here) {
    const int row = first + mine, length = row < rows ? columns : 0;
    BARRIER_LOCAL();
    const real sum = dense_row(at[step[VALUES]] + row * columns, length, at[step[X]], item, DENSE_TEAM, part + mine * DENSE_TEAM);
    if (item == 0 && row < rows) at[step[Y]][row] = sum;
  }
}

static inline void update_step(__global real *const __local *at, const __local int *step, const __local real *factor)
{
  for (int row = get_global_id(0); row < step[ROWS]; row += (int)get_global_size(0)) {
    const real product = step[VALUES] < 0 ? 0 : at[step[VALUES]][row];
    at[step[Y]][row] = row_after(factor[0], factor[1], factor[2], before_step(at, step, factor, row), product);
  }
}

KERNEL(GROUP) void persistent_steps(int count, __global const int *steps, __global const real *factors,
                                    volatile __global unsigned *arrived, GIVEN_BUFFERS)
{
  __local int step[MOST * FIELDS];
  __local real factor[MOST * 3], part[GROUP];
  __global real *__local at[BUFFERS];
  __local int in_time;
  if (get_local_id(0) == 0) {
    __global real *const all[BUFFERS] = {ALL_BUFFERS};
    for (int k = 0; k < BUFFERS; ++k) at[k] = all[k];
    in_time = !arrived[1];
  }
  FOR_ITEMS(k, count * FIELDS) step[k] = steps[k];
  FOR_ITEMS(k, count * 3) factor[k] = factors[k];
  BARRIER_LOCAL();
  int goes_on = in_time;
  for (int k = 0; k < count && goes_on; ++k) {
    const __local int *one = step + k * FIELDS;
    if (k > 0 && !(goes_on = all_arrived(arrived, &in_time))) break;
    if (one[TEAM] > 0)
      sparse_step(at, one, factor + 3 * k, part);
    else if (one[TEAM] < 0)
      dense_step(at, one, part);
    else
      update_step(at, one, factor + 3 * k);
  }
  if (!goes_on && get_local_id(0) == 0) at[step[(count - 1) * FIELDS + Y]][0] = NAN;
}
