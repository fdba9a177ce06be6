// Stabilized biconjugate gradients, fused: 32 bytes an unknown for the direction, 24 for s, 56 for solution and residual.
//
// Steps are numbered k = 0, 1, ... Sums of a step stand in its block, k mod 2, of `sums` [block, 3, group] real4: row 0
// holds (., v·q, ., .), row 1 (t·t, s·t, s·s, .), row 2 (r·r, r·q, ., .) of the residual that the step leaves, q being the
// first residual; before the first step row 2 stands in block 1, and all others are zero. `given` [block, 3, count] real4
// holds the same sums, of the groups, or over ranks (count 1).
//
// r, q, p, v, s, t, x [n] real
//
// needs: GROUP FOR_UNKNOWNS

#define ROW_V 0
#define ROW_T 1
#define ROW_Q 2

static inline __global const real4 *bicg_row(__global const real4 *given, int count, int block, int row)
{
  return given + (3 * block + row) * count;
}

// rho / (v·q), or 0 where PETSc's BCGS stops.
static inline real bicg_alpha(real rho, real vq) { return vq == 0 || !isfinite(vq) ? 0 : rho / vq; }

// Before the step of block `now`: p = r - omega beta v + beta p.
KERNEL(GROUP) void bicg_direction(int n, int count, int now, __global const real4 *given,
                                  __global const real *restrict r, __global const real *restrict v,
                                  __global real *restrict p)
{
  __local real4 scratch[GROUP];
  real4 mine = 0;
  for (int k = (int)get_local_id(0); k < count; k += GROUP) {
    const real4 t = bicg_row(given, count, 1 - now, ROW_T)[k];
    mine += (real4)(bicg_row(given, count, 1 - now, ROW_Q)[k].y, bicg_row(given, count, 1 - now, ROW_V)[k].y, t.x, t.y);
  }
  const real4 total = group_sum(mine, scratch);
  const real by_v = bicg_alpha(total.x, total.y);              // omega beta
  const real by_p = total.w == 0 ? 0 : by_v * (total.z / total.w); // beta
  FOR_UNKNOWNS(i, n) p[i] = r[i] - (by_v == 0 ? 0 : by_v * v[i]) + (by_p == 0 ? 0 : by_p * p[i]);
}

// s = r - alpha v
KERNEL(GROUP) void bicg_half(int n, int count, int now, __global const real4 *given, __global const real *restrict r,
                             __global const real *restrict v, __global real *restrict s)
{
  __local real4 scratch[GROUP];
  real4 mine = 0;
  for (int k = (int)get_local_id(0); k < count; k += GROUP)
    mine += (real4)(bicg_row(given, count, 1 - now, ROW_Q)[k].y, bicg_row(given, count, now, ROW_V)[k].y, 0, 0);
  const real4 total = group_sum(mine, scratch);
  const real alpha = bicg_alpha(total.x, total.y);
  FOR_UNKNOWNS(i, n) s[i] = r[i] - alpha * v[i];
}

// x += alpha p + omega s,  r = s - omega t, and sums with the first residual.
KERNEL(GROUP) void bicg_update(int n, int count, int now, __global const real4 *given, __global real4 *sums,
                               __global const real *restrict p, __global const real *restrict s,
                               __global const real *restrict t, __global const real *restrict q,
                               __global real *restrict x, __global real *restrict r)
{
  __local real4 scratch[GROUP];
  real4 first = 0, mine = 0;
  for (int k = (int)get_local_id(0); k < count; k += GROUP) {
    first += (real4)(bicg_row(given, count, 1 - now, ROW_Q)[k].y, bicg_row(given, count, now, ROW_V)[k].y, 0, 0);
    mine += bicg_row(given, count, now, ROW_T)[k];
  }
  const real4 before = group_sum(first, scratch), total = group_sum(mine, scratch);
  const int fails = before.y == 0 || (total.x == 0 && total.z != 0) || !isfinite(before.y) || !isfinite(total.x);
  const real alpha = fails ? 0 : bicg_alpha(before.x, before.y);
  const real omega = fails || total.x == 0 ? 0 : total.y / total.x;
  real4 sum = 0;
  FOR_UNKNOWNS(i, n) {
    const real si = s[i], ri = si - omega * t[i];
    x[i] += alpha * p[i] + omega * si;
    r[i] = ri;
    sum += (real4)(ri * ri, ri * q[i], 0, 0);
  }
  store_sum(sum, scratch, sums + (3 * now + ROW_Q) * get_num_groups(0));
}
