"""Burgers' equation, u_t + ∇·(½ u² w) = ∇·(ν ∇u), with a constant direction w = (1, …, 1)."""

from __future__ import annotations

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.library import artificial_viscosity as artificial
from petsc_hdg.physics.pointwise import Physics

_FLUX = "for (PetscInt d = 0; d < dim; ++d) f1[d] = viscosity * u_x[d] - 0.5 * u[0] * u[0];"
# |u w·n| rounded at 0, and ν over a length of 1
_STABILIZATION = """\
PetscReal along = 0.0;
for (PetscInt d = 0; d < dim; ++d) along += n[d];
tau[0] = viscosity + PetscSqrtReal(u[0] * u[0] * along * along + 0.01);"""


def burgers(f0: object = None, *, viscosity: float = 0.0, artificial_viscosity: bool = False, **others) -> Physics:
    """Field u; f0 = -s, or u_t - s in time. viscosity: ν ≥ 0, a constant of the physics; artificial_viscosity as in
    `euler`."""
    if not viscosity >= 0:
        raise PhysicsError(f"physics 'burgers': viscosity is {viscosity}; give 0 or a number above 0")
    others.setdefault("name", "burgers")
    f1, stabilization = artificial.added(artificial_viscosity, "1", _FLUX, _STABILIZATION, others)
    others.setdefault("stabilization", stabilization)
    others["constants"] = {"viscosity": viscosity, **dict(others.get("constants") or {})}
    return Physics({"u": 1}, f0, f1, **others)
