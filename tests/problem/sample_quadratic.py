"""Poisson's equation whose solution is x² + x y - y (+ z), with the fluxes through the sides of the unit box."""

from __future__ import annotations

import numpy as np

from petsc_hdg.physics import Dirichlet, Neumann, Physics

SIDES = ("left", "right", "bottom", "top", "front", "back")
EXACT = "u[0] = x[0]*x[0] + x[0]*x[1] - x[1]; if (dim == 3) u[0] += x[2];"
# ∫ ∇u·n over each side: ∂u/∂x = 2x + y, ∂u/∂y = x - 1, ∂u/∂z = 1
FLUXES = {"left": -0.5, "right": 2.5, "bottom": 0.5, "top": -0.5, "front": -1.0, "back": 1.0, "boundary": 2.0}


def quadratic(neumann: bool = False) -> Physics:
    """The flux is given at the top if `neumann`."""
    sides = [Neumann("top", "g[0] = x[0] - 1;")] if neumann else []
    return Physics(
        {"u": 1},
        f0="f0[0] = 2;",
        f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[*sides, *(Dirichlet(label, "exact") for label in ("left", "right", "bottom")), *rest(neumann)],
        exact={"u": EXACT},
        name="quadratic",
    )


def rest(neumann: bool) -> list[Dirichlet]:
    """The remaining sides: in 3D front and back are not named where a physics is for any dimension."""
    return [] if neumann else [Dirichlet("boundary", "exact")]


def exact(x: np.ndarray) -> np.ndarray:
    """u at places [..., dim]; a third coordinate of zero changes nothing."""
    return x[..., 0] ** 2 + x[..., 0] * x[..., 1] - x[..., 1] + (x[..., 2] if x.shape[-1] == 3 else 0.0)
