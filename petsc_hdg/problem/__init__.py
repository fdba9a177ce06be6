"""A physics on a mesh, ready for PETSc's solvers."""

import atexit
import gc

from petsc4py import PETSc

from .problem import Problem
from .space_time import SpaceTime

__all__ = ["Problem", "SpaceTime"]


def _destroy_leftovers() -> None:
    """Destroy PETSc objects that Python gave up: PetscFinalize would, but after Python, which their contexts need."""
    gc.collect()
    PETSc.garbage_cleanup()


atexit.register(_destroy_leftovers)
