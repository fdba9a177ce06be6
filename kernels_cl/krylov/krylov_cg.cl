// Conjugate gradients, fused: 24 bytes an unknown for the residual (32 with a diagonal), 40 for solution and direction.
// p·w is 16 more unless the product sums it, see krylov_total. With one sum over ranks a step, cg_single takes 72 (80),
// and z·s, of the product s with z, 16 more unless the product sums it.
//
// Steps are numbered k = 0, 1, ... Sums of a step stand in its block, k mod 2, of `sums` [block, 2, group] real4:
// row 0 holds (w·w, p·w, p·p, .) of its direction, row 1 (r·r, z·r, z·z, .) of the residual that it leaves; before the
// first step the latter stand in block 1, and all others are zero. `given` [block, 2, count] real4 holds the same sums, of
// the groups or over ranks.
//
// z, r, s, w, p, x, d [n] real: z = d r with the inverse diagonal d, or r itself without d
//
// needs: GROUP FOR_UNKNOWNS

#define ROW_P 0
#define ROW_R 1
#define UPDATE_X 1
#define UPDATE_P 2

// The step length; none where PETSc's CG stops: p·w is zero, not finite or of another sign than before.
static inline real cg_length(real zr, real pw, real pw_before)
{
  return pw == 0 || !isfinite(pw) || pw * sign(pw_before) < 0 ? 0 : zr / pw;
}

static inline __global const real4 *cg_row(__global const real4 *given, int count, int block, int row)
{
  return given + (2 * block + row) * count;
}

// In step k of block `now`: r -= alpha w, as z, and its sums.
KERNEL(GROUP) void cg_residual(int n, int count, int now, __global const real4 *given, __global real4 *sums,
                               __global const real *restrict w, __global const real *restrict d, __global real *restrict z)
{
  __local real4 scratch[GROUP];
  real4 mine = 0;
  for (int k = (int)get_local_id(0); k < count; k += GROUP)
    mine += (real4)(cg_row(given, count, 1 - now, ROW_R)[k].y, cg_row(given, count, now, ROW_P)[k].y,
                    cg_row(given, count, 1 - now, ROW_P)[k].y, 0);
  const real4 total = group_sum(mine, scratch);
  const real alpha = cg_length(total.x, total.y, total.z);
  real4 sum = 0;
  FOR_UNKNOWNS(i, n) {
    const real wi = w[i], di = d ? d[i] : 1;
    const real zi = z[i] - alpha * (d ? di * wi : wi);
    const real ri = d ? zi / di : zi;
    z[i] = zi;
    sum += (real4)(ri * ri, zi * ri, zi * zi, 0);
  }
  store_sum(sum, scratch, sums + (2 * now + ROW_R) * get_num_groups(0));
}

// Before the step of block `now`: x += alpha p of the step before, then p = z + beta p; `what` says which.
KERNEL(GROUP) void cg_direction(int n, int count, int now, int what, __global const real4 *given,
                                __global const real *restrict z, __global real *restrict p, __global real *restrict x)
{
  __local real4 scratch[GROUP];
  real4 mine = 0;
  for (int k = (int)get_local_id(0); k < count; k += GROUP)
    mine += (real4)(cg_row(given, count, 1 - now, ROW_R)[k].y, cg_row(given, count, now, ROW_R)[k].y,
                    cg_row(given, count, 1 - now, ROW_P)[k].y, cg_row(given, count, now, ROW_P)[k].y);
  const real4 total = group_sum(mine, scratch);
  const real alpha = what & UPDATE_X ? cg_length(total.y, total.z, total.w) : 0;
  const real beta = total.y == 0 ? 0 : total.x / total.y;
  FOR_UNKNOWNS(i, n) {
    const real pi = alpha == 0 && beta == 0 ? 0 : p[i]; // before the first step p holds anything
    if (alpha != 0) x[i] += alpha * pi;
    if (what & UPDATE_P) p[i] = z[i] + (beta == 0 ? 0 : beta * pi);
  }
}

// With one sum over ranks (Chronopoulos and Gear 1989), step k of block `now`: p = z + beta p, w = s + beta w = A p,
// r -= alpha w, and the sums of r, which go to the other block. Row 0 of a block holds (., z·s, ., .), row 1 (r·r, z·r,
// z·z, .) of what the step begins with; p·w = z·s - beta² (p·w of the step before). `lengths` [block] real4 holds (z·r, p·w,
// alpha, .) of steps, zero before the first. x += alpha p is that of the step before: this kernel may begin before the host
// has seen its norm.
//
// z: none with a diagonal preconditioner, where r holds d r; its sums of r are right only there
KERNEL(GROUP) void cg_single(int n, int count, int now,
                             __global const real4 *given, __global real4 *lengths, __global real4 *sums,
                             __global const real *restrict s, __global const real *restrict d,
                             __global const real *restrict z, __global real *restrict r, __global real *restrict p,
                             __global real *restrict w, __global real *restrict x)
{
  __local real4 scratch[GROUP];
  real4 mine = 0;
  for (int k = (int)get_local_id(0); k < count; k += GROUP)
    mine += (real4)(cg_row(given, count, now, ROW_R)[k].y, cg_row(given, count, now, ROW_P)[k].y, 0, 0);
  const real4 total = group_sum(mine, scratch), last = lengths[1 - now];
  const real beta = last.x == 0 ? 0 : total.x / last.x, alpha_before = last.z;
  const real pw = total.y - beta * beta * last.y, alpha = cg_length(total.x, pw, last.y);
  if (get_global_id(0) == 0) lengths[now] = (real4)(total.x, pw, alpha, 0);
  real4 sum = 0;
  FOR_UNKNOWNS(i, n) {
    const real ri = r[i], zi = z ? z[i] : ri, di = d ? d[i] : 1;
    const real before = beta == 0 && alpha_before == 0 ? 0 : p[i]; // before the first step p and w hold anything
    const real pi = zi + (beta == 0 ? 0 : beta * before);
    const real wi = s[i] + (beta == 0 ? 0 : beta * w[i]);
    if (alpha_before != 0) x[i] += alpha_before * before;
    const real left = ri - alpha * (d ? di * wi : wi), plain = d ? left / di : left;
    p[i] = pi;
    w[i] = wi;
    r[i] = left;
    sum += (real4)(plain * plain, left * plain, left * left, 0);
  }
  store_sum(sum, scratch, sums + (2 * (1 - now) + ROW_R) * get_num_groups(0));
}
