// Packing and unpacking of ghost values between a vector on the device and the messages to the neighbours.
//
// values  [point, component]   owned or ghost part of a vector
// packed  [slot, component]    everything sent to (or received from) the neighbours, laid end to end
// index   [slot]               the point behind each slot
// offsets [target + 1], slots [contribution]: compressed rows, contributions of a target in ascending rank,
//         so that sums are the same in every run.
//
// needs: COMPONENTS

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
