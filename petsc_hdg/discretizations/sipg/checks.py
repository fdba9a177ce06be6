"""Requirements of sipg_gpu on a physics."""

from __future__ import annotations

import numpy as np

from ...errors import PhysicsError
from ..base import check_one_degree
from ..saddle_points import dependences
from .neighbours import MOST_NATURAL

DEGREES = {"triangle": (1, 6), "tetrahedron": (1, 6), "quadrilateral": (1, 40), "hexahedron": (1, 8)}


def degrees_of(cell: str) -> tuple[int, int]:
    """Lowest and highest degree on a cell shape."""
    return DEGREES[cell]


def check_sipg(physics, dim: int) -> None:
    """Raise PhysicsError for a physics in `dim` dimensions that sipg_gpu does not discretize."""
    check_one_degree(physics, "sipg_gpu")
    if len(physics.natural) > MOST_NATURAL:
        raise PhysicsError(
            f"physics '{physics.name}' has {len(physics.natural)} natural conditions; sipg_gpu takes {MOST_NATURAL}: "
            "join boundaries under one name"
        )
    _check_own_diffusion(physics, dim)


def _check_own_diffusion(physics, dim: int) -> None:
    """Raise PhysicsError for an equation that diffuses another component alone, which depends on this one in turn.

    Penalties are of the jumps of an equation's own component, so that nothing would hold those of the other one:
    u_t = v, v_t = Δu grows without bounds where Δu belongs to the equation of v.
    """
    count = physics.num_components
    if count == 1:
        return
    depends = dependences(physics, dim)
    diffuses, follows = depends[-1], np.any(depends, axis=0)
    for c, other in np.argwhere(diffuses & follows.T):
        if not diffuses[c, c]:
            names = [f"component {i} ('{_field(physics, i)}')" for i in (c, other)]
            raise PhysicsError(
                f"physics '{physics.name}' diffuses {names[1]} in the equation of {names[0]}, which has no diffusion "
                "of its own, and penalties are of an equation's own component: exchange the two equations (f0 and f1), "
                "or give -fe_backend cg_gpu or hdg_gpu"
            )


def _field(physics, component: int) -> str:
    return next(f.name for f in physics.fields if f.offset <= component < f.offset + f.components)
