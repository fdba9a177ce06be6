"""What the scheme sipg_gpu asks of a physics."""

from __future__ import annotations

import numpy as np

from ...errors import PhysicsError
from ..condensed.symmetry import fields_without_own_terms
from ..degree_checks import check_one_degree
from ..samples import random_inputs
from .neighbours import MOST_NATURAL

DEGREES = {"triangle": (1, 6), "tetrahedron": (1, 6), "quadrilateral": (1, 16), "hexahedron": (1, 8)}


def degrees_of(cell: str) -> tuple[int, int]:
    """Lowest and highest degree on a cell shape."""
    return DEGREES[cell]


def check_sipg(physics, dim: int) -> None:
    """Raise PhysicsError for a physics in `dim` dimensions that sipg_gpu does not discretize."""
    if len(physics.fields) > 1:
        _check_saddle(physics, dim)
    check_one_degree(physics, "sipg_gpu")
    if len(physics.natural) > MOST_NATURAL:
        raise PhysicsError(
            f"physics '{physics.name}' has {len(physics.natural)} natural conditions; sipg_gpu takes {MOST_NATURAL}: "
            "join boundaries under one name"
        )
    _check_own_diffusion(physics, dim)


def _dependences(physics, dim: int) -> list[np.ndarray]:
    """Whether the equation of a component depends on one [component, component], by g0, g1, g2 and g3."""
    state, rest, _ = random_inputs(physics, dim, 0)
    blocks = physics.interpreter(dim).g_blocks(*state, *rest)
    count = physics.num_components
    return [np.abs(block).reshape(count, count, -1).max(axis=2) > 0 for block in blocks]


def _check_saddle(physics, dim: int) -> None:
    """Raise PhysicsError for a field that only couples to another one by gradient and divergence, as the pressure of
    Stokes flow: nothing holds its jumps, and in spaces of one degree no stable pair does without."""
    depends = _dependences(physics, dim)
    starts = [f.offset for f in physics.fields]
    by_fields = np.logical_or.reduceat(np.logical_or.reduceat(depends[1] | depends[2], starts, 0), starts, 1)
    without = fields_without_own_terms(physics, dim)
    for own, other in np.argwhere(by_fields & by_fields.T):
        names = [physics.fields[i].name for i in (own, other)]
        if names[0] in without:
            raise PhysicsError(
                f"physics '{physics.name}' has no '{names[0]}' in the equation of '{names[0]}', which couples to "
                f"'{names[1]}' by gradient and divergence (a saddle point), and discontinuous fields of one degree are "
                f"unstable there; give -fe_backend hdg_gpu, -fe_backend cg_gpu with degree_offset=-1 of '{names[0]}', "
                f"or add a term of '{names[0]}' to its equation"
            )


def _check_own_diffusion(physics, dim: int) -> None:
    """Raise PhysicsError for an equation that diffuses another component alone, which depends on this one in turn.

    Penalties are of the jumps of an equation's own component, so that nothing would hold those of the other one:
    u_t = v, v_t = Δu grows without bounds where Δu belongs to the equation of v.
    """
    count = physics.num_components
    if count == 1:
        return
    depends = _dependences(physics, dim)
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
