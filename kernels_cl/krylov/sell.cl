// Products with a sparse matrix whose rows stand in slices of SLICE, entries interleaved so that neighbouring work-items read
// neighbouring numbers (Kreutzer, Hager, Wellein, Fehske and Bishop 2014, sliced ELLPACK), joined with what follows them:
//
//   y = keep y + mix x + scale (d ∘) (b - A x)
//
// needs: SLICE TEAM STORED SQUARE DIAGONAL GIVEN GHOSTS REAL_BYTES
//
// Sizes
//   TEAM      work-items that share a row;  STORED type of the entries: real or float
//   SQUARE    whether `mix` and y's rows are those of x;  DIAGONAL whether there is d;  GIVEN whether there is b
//   GHOSTS    whether some columns belong to other ranks: numbers from num_owned on stand in `tail`
// Arrays
//   starts  [slice + 1]  first entry of a slice;  columns, values [entry of the slice, SLICE]; padding has the value 0
//   listed  [slice of the launch] slices with GHOSTS, which are computed in two launches
//   x [num_owned], tail [ghosts], b, d, y [row]

#if GHOSTS
#define AT_COLUMN(k) ((k) < num_owned ? x[k] : tail[(k) - num_owned])
#define SLICE_OF(group) listed[group]
#else
#define SLICE_OF(group) (group)
#define AT_COLUMN(k) x[k]
#endif

KERNEL(SLICE * TEAM) void sell_step(int rows, int num_owned, __global const int *listed, __global const int *starts,
                                    __global const int *columns, __global const STORED *values,
                                    __global const real *x, __global const real *tail, __global const real *b,
                                    __global const real *d, real keep, real mix, real scale, __global real *y)
{
  const int lane = (int)get_local_id(0) % SLICE, member = (int)get_local_id(0) / SLICE;
  const int slice = SLICE_OF(get_group_id(0));
  const int row = slice * SLICE + lane;
  real sum = 0;
  for (int k = starts[slice] + member * SLICE + lane; k < starts[slice + 1]; k += TEAM * SLICE)
    sum += values[k] * AT_COLUMN(columns[k]);
#if TEAM > 1
  __local real part[TEAM * SLICE];
  part[get_local_id(0)] = sum;
  BARRIER_LOCAL();
  sum = 0;
  for (int m = 0; m < TEAM; ++m) sum += part[m * SLICE + lane];
#endif
  if (member == 0 && row < rows) {
#if GIVEN
    real out = scale * (b[row] - sum);
#else
    real out = -scale * sum;
#endif
#if DIAGONAL
    out *= d[row];
#endif
#if SQUARE
    out += mix * x[row];
#endif
    y[row] = keep == 0 ? out : keep * y[row] + out;
  }
}

// The same where A x is known: y = keep y + mix x + scale (d ∘) (b - product), in which product, x may be left out.
__kernel void sell_update(int rows, int with_product, __global const real *product, int with_x, __global const real *x,
                          __global const real *b, __global const real *d, real keep, real mix, real scale,
                          __global real *y)
{
  const int row = get_global_id(0);
  if (row >= rows) return;
  real out = b[row];
  if (with_product) out -= product[row];
  out *= scale;
#if DIAGONAL
  out *= d[row];
#endif
  if (with_x) out += mix * x[row];
  y[row] = keep == 0 ? out : keep * y[row] + out;
}
