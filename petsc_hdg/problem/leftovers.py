"""PETSc objects that Python gave up, which petsc4py only lists: they are destroyed where all ranks can."""

from __future__ import annotations

import atexit
import gc

from petsc4py import PETSc

MANY = 1e5  # unknowns of problems, at some kilobytes each, after which Python's cycles are looked for
ROUNDS = 3  # PETSc's objects hold others in cycles: solvers matrices, and those operators
_unknowns = 0  # of the problems made since the last time, the same on all ranks


def destroy(comm=None, collect: bool = True) -> None:
    """Destroy what was given up on a communicator, all of PETSc's ranks if None, and on this rank alone. Collective.

    collect: whether to find first what Python holds in cycles alone, which problems are.
    """
    for _ in range(ROUNDS if collect else 1):
        if collect:
            gc.collect()
        PETSc.garbage_cleanup(PETSc.COMM_SELF)
        PETSc.garbage_cleanup(comm)


def make_room(problem) -> None:
    """Destroy the problems that were given up, if they may hold much memory, before another takes more. Collective."""
    global _unknowns
    collect = _unknowns > MANY
    destroy(problem.comm, collect)
    _unknowns = problem.num_unknowns + (0 if collect else _unknowns)


# PetscFinalize would, but after Python, which their contexts need.
atexit.register(destroy)
