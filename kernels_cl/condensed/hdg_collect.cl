// Coefficients of each cell in one array: those inside, then those of its trace, one thread an entry.
// needs: NDOF NINT
//
// Sizes
//   NINT  coefficients inside a cell;  NDOF of its trace
// Arrays
//   interior  [NINT, stride];  dofs, owned, tail as in gather_tvector.clh
//   out       [NINT + NDOF, stride]

__kernel void hdg_collect(int num_cells, int stride, int n_owned, __global const int *dofs,
                          __global const real *interior, __global const real *owned, __global const real *tail,
                          __global real *out)
{
  const size_t item = get_global_id(0);
  const int cell = item % stride, row = item / stride;
  if (cell >= num_cells || row >= NINT + NDOF) return;
  out[item] = row < NINT ? interior[item] : gather_dof(owned, tail, n_owned, dofs, stride, cell, row - NINT);
}
