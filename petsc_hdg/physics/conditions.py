"""Boundary conditions, by label name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Dirichlet:
    """u = g on `label`. `g` writes g[c] for each component c of the field and may use x, t, a and constants; "exact"
    takes the physics' exact solution, the name of an auxiliary field its values.

    field       name of the field; may be left out if there is one
    components  numbers of the constrained components; all if None
    """

    label: str
    g: object
    field: str | None = None
    components: Sequence[int] | None = None


@dataclass(frozen=True)
class Neumann:
    """f1·n = g on `label`, so f0_bd = -g. `g` writes g[c] and may use x, t, n, a, a_x and constants; the name of an
    auxiliary field takes its values.

    side  name of a region: the facets of `label` as its cells see them, also inside the mesh
    """

    label: str
    g: object
    field: str | None = None
    side: str | None = None


@dataclass(frozen=True)
class Robin:
    """∫ φ·f0 + ∇φ:f1 ds on `label`, PETSc's boundary functions f0_bd and f1_bd: they write f0[c] and f1[c*dim + d], and
    may use the solution and its gradient as well. f0 alone says f1·n = -f0; None is zero.

    side  name of a region: n, gradients, auxiliary values and ∇φ are those of its cells, also inside the mesh, where u
          and φ have one value, with discontinuous functions the mean of both sides
    """

    label: str
    f0: object = None
    field: str | None = None
    f1: object = None
    side: str | None = None


@dataclass(frozen=True)
class BoundaryFlux:
    """b(û, u, q) = 0 on `label` in the place of f̂·n = 0, for conservation laws by `hdg_gpu`.

    `b` writes b[c] for each component c of all fields. It may use `u`, the trace û; `u_in`, the value in the cell;
    `u_x`, the gradient q; `f_hat`, the numerical flux f̂·n out of the cell with the sign of f1; and x, n, t, a, a_x and
    constants. Examples: u[c] - g (the value g), f_hat[c] (no flux), u[c] - u_in[c] (outflow).

    suits: (expression of u, n, x, t, constants; what to do where it is false), or None. Solutions that do not suit the
    condition on most of the boundary cause a warning.
    """

    label: str
    b: object
    suits: tuple[str, str] | None = None
