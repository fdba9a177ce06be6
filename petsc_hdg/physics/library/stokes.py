"""Stokes flow, -∇·(μ(∇v + ∇vᵀ) - p I) = b, ∇·v = 0, in Taylor-Hood form (the pressure one degree lower)."""

from __future__ import annotations

from petsc_hdg.physics.layout import Field
from petsc_hdg.physics.pointwise import Physics

_STRESS = """\
for (PetscInt c = 0; c < dim; ++c) {
  for (PetscInt d = 0; d < dim; ++d) f1[c * dim + d] = mu * (u_x[c * dim + d] + u_x[d * dim + c]);
  f1[c * dim + c] -= u[uOff[1]];
}"""

_DIVERGENCE = """\
f0[0] = 0.0;
for (PetscInt d = 0; d < dim; ++d) f0[0] += u_x[d * dim + d];"""


def stokes(dim: int, f0: object = None, *, mu: float = 1.0, **others) -> Physics:
    """Fields velocity (`dim` components) and pressure; f0 = -b of the velocity writes f0[c]. `mu` is the viscosity, a
    constant.
    """
    others.setdefault("name", "stokes")
    others["constants"] = {"mu": mu, **dict(others.get("constants") or {})}
    fields = {"velocity": Field(dim), "pressure": Field(1, degree_offset=-1)}
    return Physics(fields, {"velocity": f0, "pressure": _DIVERGENCE}, {"velocity": _STRESS}, **others)
