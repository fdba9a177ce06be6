"""Streamline upwinding, -cg_stabilization supg: the physics that take it, and a physics with it."""

from __future__ import annotations

import numpy as np

from ..errors import OptionError, PhysicsError
from ..physics.upwind import streamlined
from .symmetry import dependences


def upwinded(physics, options, dim: int):
    """`physics` with streamline-upwind Petrov-Galerkin terms. Raises OptionError for one that has none."""
    _, by_gradient, of_flux, _ = dependences(physics, dim)
    names = [field.name for field in physics.fields for _ in range(field.components)]
    coupled = np.argwhere((by_gradient | of_flux) & ~np.eye(len(names), dtype=bool))
    start = f"-{options.prefix}cg_stabilization supg: "
    if len(coupled):
        own, other = (names[component] for component in coupled[0])
        raise OptionError(
            f"{start}in physics '{physics.name}' a derivative of '{other}' convects another component, of '{own}'; "
            "each component may convect itself alone: leave the option out, or give -fe_backend sipg_gpu or hdg_gpu"
        )
    if any(term.kind == "f1" and "u_t" in term.program.inputs for term in physics.terms.residual):
        raise OptionError(
            f"{start}f1 of physics '{physics.name}' reads u_t, whose gradient is not known; leave the option out"
        )
    try:
        made = streamlined(physics, dim, options.degree)
        made.check(dim)
    except PhysicsError as error:
        raise OptionError(f"{start}{error}; leave the option out") from error
    return made
