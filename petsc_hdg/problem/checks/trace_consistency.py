"""Check of a solution of hybridizable DG: the trace must be that of u."""

from __future__ import annotations

import warnings

import numpy as np
from petsc4py import PETSc

MOST = 2.0  # jumps u - û over the size of the solution; coarse meshes and unresolved layers of use stay below 1.5


def check(problem, u: PETSc.Vec, t: float = 0.0) -> None:
    """Warn, on rank 0, of a solution whose jumps between cells and trace are larger than itself. Collective.

    It costs a recovery of the cells from the trace.
    """
    disc = problem.discretization
    if not (problem.is_condensed and disc.has_jumps):
        return
    with problem.access.read(u) as x:
        jumps = problem.operator.recovery.jumps(x, t)
    worst = int(np.argmax(jumps))
    if jumps[worst] > MOST and problem.comm.rank == 0:
        warnings.warn(
            f"the jumps u - û of the field '{problem.physics.fields[worst].name}' are {jumps[worst]:.1e} times as "
            f"large as the solution, which means nothing from {MOST:g} on: the stabilization is too small for the "
            f"physics, or cells are too large for the solution; give a larger -{problem.prefix}hdg_tau or a finer mesh",
            stacklevel=2,
        )
