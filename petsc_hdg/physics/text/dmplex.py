"""The small helper functions of PETSc that pointwise functions of its tutorials call: of its private DMPlex header, and
sorting.
"""

PREFIXES = ("DMPlex_", "PetscSortReal")  # of their names

TEXT = """
static inline void DMPlex_Det2D_Internal(PetscReal *detJ, const PetscReal J[])
{
  *detJ = J[0] * J[3] - J[1] * J[2];
}
static inline void DMPlex_Det3D_Internal(PetscReal *detJ, const PetscReal J[])
{
  *detJ = J[0] * (J[4] * J[8] - J[5] * J[7]) + J[1] * (J[5] * J[6] - J[3] * J[8]) + J[2] * (J[3] * J[7] - J[4] * J[6]);
}
static inline void DMPlex_Det2D_Scalar_Internal(PetscReal *detJ, const PetscScalar J[])
{
  DMPlex_Det2D_Internal(detJ, J);
}
static inline void DMPlex_Det3D_Scalar_Internal(PetscReal *detJ, const PetscScalar J[])
{
  DMPlex_Det3D_Internal(detJ, J);
}
static inline void DMPlex_Invert2D_Internal(PetscReal invJ[], const PetscReal J[], PetscReal detJ)
{
  invJ[0] = J[3] / detJ;
  invJ[1] = -J[1] / detJ;
  invJ[2] = -J[2] / detJ;
  invJ[3] = J[0] / detJ;
}
static inline void DMPlex_Invert3D_Internal(PetscReal invJ[], const PetscReal J[], PetscReal detJ)
{
  for (PetscInt i = 0; i < 3; ++i)
    for (PetscInt j = 0; j < 3; ++j) {
      const PetscInt p = (j + 1) % 3, q = (j + 2) % 3, r = (i + 1) % 3, s = (i + 2) % 3;
      invJ[i * 3 + j] = (J[p * 3 + r] * J[q * 3 + s] - J[p * 3 + s] * J[q * 3 + r]) / detJ;
    }
}
static inline PetscScalar DMPlex_DotD_Internal(PetscInt dim, const PetscScalar *x, const PetscReal *y)
{
  PetscScalar sum = 0.0;
  for (PetscInt d = 0; d < dim; ++d) sum += x[d] * y[d];
  return sum;
}
static inline PetscReal DMPlex_DotRealD_Internal(PetscInt dim, const PetscReal *x, const PetscReal *y)
{
  return DMPlex_DotD_Internal(dim, x, y);
}
static inline PetscReal DMPlex_NormD_Internal(PetscInt dim, const PetscReal *x)
{
  return PetscSqrtReal(DMPlex_DotD_Internal(dim, x, x));
}
static inline void PetscSortReal(PetscInt n, PetscReal v[])
{
  for (PetscInt i = 1; i < n; ++i) {
    const PetscReal value = v[i];
    PetscInt j;
    for (j = i; j > 0; --j) {
      if (v[j - 1] <= value) break;
      v[j] = v[j - 1];
    }
    v[j] = value;
  }
}
"""
