"""A physics on a mesh, ready for PETSc's solvers."""

from .problem import Problem

__all__ = ["Problem"]
