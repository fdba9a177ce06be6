"""Compressible neo-Hookean hyperelasticity: -∇·P = b with P = μ (F - F⁻ᵀ) + λ ln(J) F⁻ᵀ, F = I + ∇u, J = det F.

Source: J. Bonet, R. D. Wood, Nonlinear Continuum Mechanics for Finite Element Analysis, 2nd ed., section 6.4.3.
"""

from __future__ import annotations

from petsc_hdg.physics.pointwise import Physics

_HELPERS = """\
/* Cofactors C of a matrix F of n rows, n = 2 or 3; F⁻ᵀ = C / det F. Indices count cyclically. */
static inline void cofactors(PetscInt n, const PetscReal F[], PetscReal C[])
{
  if (n == 2) {
    C[0] = F[3];
    C[1] = -F[2];
    C[2] = -F[1];
    C[3] = F[0];
  } else {
    for (PetscInt i = 0; i < 3; ++i)
      for (PetscInt j = 0; j < 3; ++j) {
        const PetscInt p = (i + 1) % 3, q = (i + 2) % 3, r = (j + 1) % 3, s = (j + 2) % 3;
        C[i * 3 + j] = F[p * 3 + r] * F[q * 3 + s] - F[p * 3 + s] * F[q * 3 + r];
      }
  }
}"""

_STRESS = """\
PetscReal F[dim * dim], C[dim * dim], J = 0.0;
for (PetscInt i = 0; i < dim * dim; ++i) F[i] = u_x[i];
for (PetscInt c = 0; c < dim; ++c) F[c * dim + c] += 1.0;
cofactors(dim, F, C);
for (PetscInt d = 0; d < dim; ++d) J += F[d] * C[d];
const PetscReal pressure = (lame_lambda * PetscLogReal(J) - mu) / J;
for (PetscInt i = 0; i < dim * dim; ++i) f1[i] = mu * F[i] + pressure * C[i];"""


def neo_hookean(dim: int, f0: object = None, *, lame_lambda: float = 1.0, mu: float = 1.0, **others) -> Physics:
    """Displacement u of `dim` components (2: plane strain, 3); f0 = -b writes f0[c]. An inverted point (J ≤ 0) gives
    NaN.

    lame_lambda, mu   λ and μ in the unit of stress; constants of the physics
    """
    others.setdefault("name", "neo_hookean")
    others["constants"] = {"lame_lambda": lame_lambda, "mu": mu, **dict(others.get("constants") or {})}
    helpers = "\n".join(filter(None, (_HELPERS, others.pop("helpers", ""))))
    return Physics({"u": dim}, f0, _STRESS, helpers=helpers, **others)
