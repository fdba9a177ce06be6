"""Shallow water over flat ground, u_t + ∇·F = s with u = (h, h v) and F = (h v, h v⊗v + ½ g h² I)."""

from __future__ import annotations

from petsc_hdg.physics.library import gas
from petsc_hdg.physics.pointwise import Physics

_HELPERS = """\
static inline PetscReal water_depth(PetscReal depth) { return depth > 0.0 ? depth : PetscSqrtReal(-1.0); }"""
_FLUX = """\
const PetscReal h = water_depth(u[0]);
for (PetscInt d = 0; d < dim; ++d) {
  f1[d] = -u[1 + d];
  for (PetscInt c = 0; c < dim; ++c)
    f1[(1 + c) * dim + d] = -u[1 + c] * u[1 + d] / h - (c == d ? 0.5 * gravity * h * h : 0.0);
}"""
_STABILIZATION = """\
PetscReal along = 0.0;
for (PetscInt d = 0; d < dim; ++d) along += u[1 + d] * n[d];
for (PetscInt c = 0; c <= dim; ++c) tau[c] = fabs(along / u[0]) + PetscSqrtReal(gravity * water_depth(u[0]));"""


def shallow_water(dim: int = 2, f0: object = None, *, gravity: float = 9.81, **others) -> Physics:
    """Field u = (h, h v) of dim + 1 components; f0 = -s, or u_t - s in time. gravity: g > 0, a constant."""
    gas.require_numbers("shallow_water", dim, gravity=gravity)
    others.setdefault("name", "shallow_water")
    others.setdefault("stabilization", _STABILIZATION)
    others["constants"] = {"gravity": gravity, **dict(others.get("constants") or {})}
    helpers = "\n".join(filter(None, (_HELPERS, others.pop("helpers", ""))))
    return Physics({"u": dim + 1}, f0, _FLUX, helpers=helpers, **others)
