"""A linear physics whose constants and auxiliary fields are loads, which its matrix does not read, or coefficients."""

from __future__ import annotations

import numpy as np

import petsc_hdg as fe

LOADS = {"f": -2.0, "w": 0.5, "v": 3.0, "flux": 0.4}
COEFFICIENTS = {"r": 2.0, "k": 3.0, "h": 0.5}
FIRST = {"f": 1.0, "w": 0.0, "v": 1.0, "flux": 0.0, "r": 0.0, "k": 1.0, "h": 2.0}


def loaded() -> fe.Physics:
    """-∇·(k κ ∇u) + r u = f s; u = w on the left, a flux h (u - v) on the right, one that is given at the top."""
    return fe.Physics(
        {"u": 1},
        "f0[0] = r*u[0] - f*a[1];",
        "for (d = 0; d < dim; ++d) f1[d] = k*a[0]*u_x[d];",
        auxiliary={"kappa": 1, "source": 1},
        constants=FIRST,
        boundary=[
            fe.Dirichlet("left", "g[0] = w + x[1];"),
            fe.Robin("right", "f0[0] = h*(u[0] - v);"),
            fe.Neumann("top", "g[0] = flux*a[1];"),
        ],
        name="loaded",
    )


def rising(x):
    """Values of a field at x [..., dim]."""
    return 1.0 + x[..., 0]


def jumping(x):
    """Others, with jumps."""
    return np.where(x[..., 1] > 0.5, 5.0, 0.3)
