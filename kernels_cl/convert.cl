// Copies between PETSc's double vectors and the single-precision vectors of our kernels, on the device.
//
// wide [count] double, narrow [count] float
//
// needs: REAL_BYTES

#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void convert_narrow(__global const double *wide, __global float *narrow, int count)
{
  const int i = (int)get_global_id(0);
  if (i < count) narrow[i] = (float)wide[i];
}

__kernel void convert_widen(__global const float *narrow, __global double *wide, int count)
{
  const int i = (int)get_global_id(0);
  if (i < count) wide[i] = (double)narrow[i];
}
