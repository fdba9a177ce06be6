"""Saddle points: fields that only couple to others by gradient and divergence."""

from __future__ import annotations

import numpy as np

from ..errors import PhysicsError
from .symmetry import fields_without_own_terms, random_inputs


def dependences(physics, dim: int) -> list[np.ndarray]:
    """True where the equation of a component reads another one [component, component], for g0, g1, g2 and g3 each."""
    state, rest, _ = random_inputs(physics, dim, 0)
    blocks = physics.interpreter(dim).g_blocks(*state, *rest)
    count = physics.num_components
    return [np.abs(block).reshape(count, count, -1).max(axis=2) > 0 for block in blocks]


def constraints(physics, dim: int) -> list[str]:
    """Names of fields that constrain others, as the pressure of incompressible flow or of nearly incompressible bodies:
    their own equation reads nothing of them but their value, and they couple to others by gradient and divergence, or
    it does not read them at all. None if components that they couple to have no diffusion."""
    depends, without, names = dependences(physics, dim), fields_without_own_terms(physics, dim), []
    derivatives, own = depends[1] | depends[2] | depends[3], np.zeros(physics.num_components, bool)
    coupled = (depends[1] | depends[2]) & (depends[1] | depends[2]).T
    for f in physics.fields:
        part = slice(f.offset, f.offset + f.components)
        if f.name in without or (coupled[part].any() and not derivatives[part, part].any()):
            names.append(f.name)
            own[part] = True
    read = coupled[own].any(axis=0)
    return names if read.any() and depends[3].diagonal()[read].all() else []


def reason(physics, dim: int, name: str) -> str:
    """Why a field makes the matrix a saddle point, as a part of a sentence."""
    what = "terms" if name in fields_without_own_terms(physics, dim) else "derivatives"
    return f"it is a saddle point: the equation of '{name}' has no {what} of '{name}'"


def check_stable(physics, dim: int, scheme: str) -> None:
    """Raise PhysicsError for a field that only couples to another one by gradient and divergence, as the pressure of
    Stokes flow, in spaces of one degree: no such pair is stable. In discontinuous spaces nothing bounds its jumps."""
    if len(physics.fields) < 2:
        return
    depends, fields = dependences(physics, dim), physics.fields
    starts = [f.offset for f in fields]
    by_fields = np.logical_or.reduceat(np.logical_or.reduceat(depends[1] | depends[2], starts, 0), starts, 1)
    pairs = [(fields[i], fields[j]) for i, j in np.argwhere(by_fields & by_fields.T)]
    if scheme == "cg_gpu":
        pairs = [(own, other) for own, other in pairs if own.degree_offset >= other.degree_offset]
    without = fields_without_own_terms(physics, dim) if pairs else []
    for own, other in pairs:
        if own.name in without:
            raise PhysicsError(
                f"physics '{physics.name}' has no '{own.name}' in the equation of '{own.name}', which couples to "
                f"'{other.name}' by gradient and divergence (a saddle point), and fields of one degree are stable "
                "there by hdg_gpu alone; give -fe_backend hdg_gpu, -fe_backend cg_gpu with degree_offset=-1 of "
                f"'{own.name}', or add a term of '{own.name}' to its equation"
            )
