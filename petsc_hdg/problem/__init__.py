"""A physics on a mesh, ready for PETSc's solvers."""

from .problem import Problem
from .space_time import SpaceTime

__all__ = ["Problem", "SpaceTime"]
