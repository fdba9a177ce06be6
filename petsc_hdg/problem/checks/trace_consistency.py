"""Check of a solution of hybridizable DG: the trace must be that of u."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ...errors import warn_user

MOST = 2.0  # jumps u - û over the size of the solution; coarse meshes and unresolved layers of use stay below 1.5
JUMPS = "petsc_hdg_jumps"  # attribute of a solution: its state and time, what `worst` found
TORN = 0.2  # the same of nonlinear physics of degree 1 and more, whose discrete equations have other solutions, too


def check(problem, u: PETSc.Vec, t: float = 0.0) -> None:
    """Warn, on rank 0, of a solution whose cells do not hold to their trace. Collective.

    It costs a recovery of the cells from the trace.
    """
    field, jumps = worst(problem, u, t)
    most = bound(problem)
    if jumps <= most or problem.comm.rank > 0:
        return
    prefix = problem.prefix
    if most == MOST:
        sense = (
            f"which means nothing from {MOST:g} on: the stabilization is too small for the physics, or cells are too "
            f"large for the solution; give a larger -{prefix}hdg_tau or a finer mesh"
        )
    else:
        sense = (
            "so that it may be one of the discrete equations alone: cells are too large for the solution, or Newton's "
            "method came to another one; compare it with a finer mesh, give a guess that is nearer, or take "
            f"-{prefix}fe_backend cg_gpu"
        )
    warn_user(f"the jumps u - û of the field '{field}' are {jumps:.1e} times as large as the solution, {sense}")


def is_sound(problem, u: PETSc.Vec) -> bool:
    """Return True if the cells of a solution hold to their trace. Collective."""
    return worst(problem, u)[1] <= bound(problem)


def bound(problem) -> float:
    """Return the largest ratio of jumps of a solution to trust."""
    return MOST if problem.physics.is_linear or problem.options.degree == 0 else TORN


def worst(problem, u: PETSc.Vec, t: float = 0.0) -> tuple[str, float]:
    """Return the field whose jumps between cells and trace are largest beside it, and that ratio; 0 of other schemes.
    Collective.

    It is kept with the vector: Newton's method asks for it before this check does.
    """
    disc = problem.discretization
    if not (problem.is_condensed and disc.has_jumps):
        return "", 0.0
    state, known = (u.stateGet(), t), u.getAttr(JUMPS) or (None, None)
    if known[0] == state:
        return known[1]
    with problem.access.read(u) as x:
        jumps = problem.operator.recovery.jumps(x, t)
    found = problem.physics.fields[int(np.argmax(jumps))].name, float(jumps.max())
    u.setAttr(JUMPS, (state, found))
    return found
