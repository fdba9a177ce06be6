"""Direct solvers of small assembled matrices, for which multigrid has no levels that are worth it."""

from __future__ import annotations

from petsc4py import PETSc

FEW = 300  # unknowns up to which a direct solver is the default


def set_type_or(problem, pc: PETSc.PC, mat: PETSc.Mat, other: str) -> None:
    """Give a PC a direct solver before the user's options if its matrix is small, else another type. Collective."""
    if mat.getSize()[0] > FEW:
        pc.setType(other)
    else:
        set_type(problem, pc)


def set_type(problem, pc: PETSc.PC) -> None:
    """LU, on each rank if there are several; the singular value decomposition where the matrix may be singular.
    Collective."""
    if len(problem.callbacks.null_space.candidates):
        pc.setType("svd")
    elif pc.comm.size > 1:
        pc.setType("redundant")
    else:
        pc.setType("lu")
        pc.setFactorShift(PETSc.Mat.FactorShiftType.INBLOCKS)
