// The arithmetic peak of a device: chains of fused multiply-adds in registers, without memory.
// needs: CHAINS ROUNDS VECTOR
//
// Sizes
//   CHAINS  independent sums of a work-item;  ROUNDS  multiply-adds of each;  VECTOR  real, or a vector of them
// Arrays: out [work-item] VECTOR

__kernel void bench_fma(real factor, __global VECTOR *out)
{
  const int item = get_global_id(0);
  const VECTOR step = (VECTOR)(item * (real)1e-9), by = (VECTOR)(factor);
  VECTOR sum[CHAINS];
#pragma unroll
  for (int k = 0; k < CHAINS; ++k) sum[k] = step + (VECTOR)((real)k);
  for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
    for (int k = 0; k < CHAINS; ++k) sum[k] = fma(sum[k], by, step);
  }
  VECTOR total = sum[0];
#pragma unroll
  for (int k = 1; k < CHAINS; ++k) total += sum[k];
  out[item] = total;
}
