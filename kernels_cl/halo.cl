// Packing and unpacking of ghost values between a vector on the device and the messages to the neighbours.
//
// values  [point, component]   owned or ghost part of a vector
// packed  [slot, component]    everything sent to (or received from) the neighbours, laid end to end
// index   [slot]               the point behind each slot
// offsets [target + 1], slots [contribution]: compressed rows, contributions of a target in ascending rank,
//         so that sums are the same in every run.
//
// Between devices whose kernels write each other's memory (peer_memory.py) no host takes part: peer_send writes what a
// neighbour waits for into memory of that one's device, and then the number of the exchange; peer_receive waits for the
// numbers of all neighbours. Two places serve in turn: a neighbour whose number has come has read what the last but one
// exchange brought. `state` (number of the last exchange, work-groups that are done) counts exchanges, so that a launch
// can be repeated as it is.
//
// needs: COMPONENTS GROUP PTX

#if PTX
#define FENCE() asm volatile("fence.acq_rel.sys;" ::: "memory")
#else
#define FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif

__kernel void halo_pack(__global const real *values, __global const int *index, __global real *packed, int count)
{
  const int i = (int)get_global_id(0);
  if (i < count) packed[i] = values[index[i / COMPONENTS] * COMPONENTS + i % COMPONENTS];
}

__kernel void halo_unpack(__global const real *packed, __global const int *index, __global real *values, int count)
{
  const int i = (int)get_global_id(0);
  if (i < count) values[index[i / COMPONENTS] * COMPONENTS + i % COMPONENTS] = packed[i];
}

__kernel void halo_add(__global const real *packed, __global const int *targets, __global const int *offsets,
                       __global const int *slots, __global real *values, int count)
{
  const int i = (int)get_global_id(0);
  if (i >= count) return;
  const int row = i / COMPONENTS, component = i % COMPONENTS;
  const int place = targets[row] * COMPONENTS + component;
  real sum = values[place];
  for (int k = offsets[row]; k < offsets[row + 1]; ++k) sum += packed[slots[k] * COMPONENTS + component];
  values[place] = sum;
}

// True for one work-item of the last group that comes here.
static inline int is_last(__global volatile int *state)
{
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (get_local_id(0) != 0) return 0;
  FENCE();
  if (atomic_inc(state + 1) != (int)get_num_groups(0) - 1) return 0;
  state[1] = 0;
  FENCE();
  return 1;
}

// Slots `first` … of a side to `mailbox`, of which `at` is the place of odd exchanges, `step` before that of even ones.
// index: the points behind the slots, none where `values` are packed.
static inline void send(__global const real *values, __global const int *index, int first, int count,
                        __global volatile real *mailbox, int at, int step, __global volatile int *flags, int flag,
                        __global volatile int *state)
{
  const int number = (int)((uint)state[0] + 1u);
  __global volatile real *target = mailbox + at - ((number & 1) ? 0 : step);
  for (int i = (int)get_global_id(0); i < count * COMPONENTS; i += (int)get_global_size(0)) {
    const int slot = first + i / COMPONENTS;
    target[i] = values[(index ? index[slot] : slot) * COMPONENTS + i % COMPONENTS];
  }
  if (!is_last(state)) return;
  state[0] = number;
  flags[flag] = number;
}

// What has come for all slots of a side, to `values`.
static inline void receive(__global const volatile real *mailbox, int at, int step, __global const volatile int *flags,
                           int flag, int neighbours, __global volatile int *state, __global const int *index,
                           __global real *values, int count)
{
  const int number = (int)((uint)state[0] + 1u);
  for (int n = (int)get_local_id(0); n < neighbours; n += GROUP)
    while ((int)((uint)flags[flag + n] - (uint)number) < 0) {
    }
  if ((int)get_local_id(0) < neighbours) FENCE();
  barrier(CLK_GLOBAL_MEM_FENCE);
  __global const volatile real *source = mailbox + at - ((number & 1) ? 0 : step);
  for (int i = (int)get_global_id(0); i < count * COMPONENTS; i += (int)get_global_size(0)) {
    const int slot = i / COMPONENTS;
    values[(index ? index[slot] : slot) * COMPONENTS + i % COMPONENTS] = source[i];
  }
  if (is_last(state)) state[0] = number;
}

KERNEL(GROUP) void peer_send(__global const real *values, __global const int *index, int first, int count,
                             __global volatile real *mailbox, int at, int step, __global volatile int *flags, int flag,
                             __global volatile int *state)
{
  send(values, index, first, count, mailbox, at, step, flags, flag, state);
}

KERNEL(GROUP) void peer_receive(__global const volatile real *mailbox, int at, int step,
                                __global const volatile int *flags, int flag, int neighbours,
                                __global volatile int *state, __global const int *index, __global real *values,
                                int count)
{
  receive(mailbox, at, step, flags, flag, neighbours, state, index, values, count);
}

// Both, the former for the last neighbour. All work-groups run at the same time.
KERNEL(GROUP) void peer_exchange(__global const real *values, __global const int *index, int first, int count,
                                 __global volatile real *mailbox, int at, int step, __global volatile int *flags,
                                 int flag, __global volatile int *state, __global const volatile real *own_mailbox,
                                 int own_at, int own_step, __global const volatile int *own_flags, int own_flag,
                                 int neighbours, __global volatile int *own_state, __global const int *own_index,
                                 __global real *own_values, int own_count)
{
  send(values, index, first, count, mailbox, at, step, flags, flag, state);
  receive(own_mailbox, own_at, own_step, own_flags, own_flag, neighbours, own_state, own_index, own_values, own_count);
}
