"""Poisson's equation, -∇·(κ∇u) = f."""

from __future__ import annotations

from petsc_hdg.physics.layout import Auxiliary
from petsc_hdg.physics.pointwise import Physics


def poisson(f0: object = "f0[0] = -1.0;", *, kappa: float | Auxiliary = 1.0, **others) -> Physics:
    """Field u with f0 = -f and f1 = κ∇u.

    kappa   a number (then it is the constant "kappa"), or an Auxiliary field of one component, called "kappa"
    others  boundary, exact, helpers, … as of Physics
    """
    others.setdefault("name", "poisson")
    if isinstance(kappa, Auxiliary):
        others["auxiliary"] = {"kappa": kappa, **dict(others.get("auxiliary") or {})}
        return Physics({"u": 1}, f0, "for (PetscInt d = 0; d < dim; ++d) f1[d] = a[0] * u_x[d];", **others)
    others["constants"] = {"kappa": kappa, **dict(others.get("constants") or {})}
    return Physics({"u": 1}, f0, "for (PetscInt d = 0; d < dim; ++d) f1[d] = kappa * u_x[d];", **others)
