"""Linear elasticity, -∇·σ = b with σ = λ tr(ε) I + 2 μ ε and ε = (∇u + ∇uᵀ)/2."""

from __future__ import annotations

from petsc_hdg.physics.layout import Field
from petsc_hdg.physics.pointwise import Physics

_STRESS = """\
PetscScalar trace = 0.0;
for (PetscInt c = 0; c < dim; ++c) trace += u_x[c * dim + c];
for (PetscInt c = 0; c < dim; ++c) {
  for (PetscInt d = 0; d < dim; ++d) f1[c * dim + d] = mu * (u_x[c * dim + d] + u_x[d * dim + c]);
  f1[c * dim + c] += lame_lambda * trace;
}"""

_MIXED_STRESS = """\
for (PetscInt c = 0; c < dim; ++c) {
  for (PetscInt d = 0; d < dim; ++d) f1[c * dim + d] = mu * (u_x[c * dim + d] + u_x[d * dim + c]);
  f1[c * dim + c] -= u[uOff[1]];
}"""
_COMPRESSION = """\
f0[0] = u[uOff[1]] / lame_lambda;
for (PetscInt d = 0; d < dim; ++d) f0[0] += u_x[d * dim + d];"""


def elasticity(
    dim: int, f0: object = None, *, lame_lambda: float = 1.0, mu: float = 1.0, mixed: bool = False, **others
) -> Physics:
    """Displacement u of `dim` components; f0 = -b writes f0[c]. In 2D this is plane strain.

    lame_lambda, mu   Lamé's constants λ and μ, in the unit of stress; constants of the physics
    mixed             a second field, pressure p = -λ ∇·u of one degree less: cg_gpu then does not lock where λ is large
    """
    others.setdefault("name", "elasticity")
    others["constants"] = {"lame_lambda": lame_lambda, "mu": mu, **dict(others.get("constants") or {})}
    if not mixed:
        return Physics({"u": dim}, f0, _STRESS, **others)
    fields = {"u": Field(dim), "pressure": Field(1, degree_offset=-1)}
    return Physics(fields, {"u": f0, "pressure": _COMPRESSION}, {"u": _MIXED_STRESS}, **others)
