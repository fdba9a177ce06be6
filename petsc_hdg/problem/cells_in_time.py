"""Problems whose cells have a state in time: hdg_gpu with u_t, where PETSc's vectors hold trace and cells."""

from __future__ import annotations

from petsc4py import PETSc

from .. import operators

CELLS = "cells_"  # prefix of the solver around the elimination, behind the problem's own


def num_owned(problem) -> int:
    """Values of this rank in a vector of the problem."""
    return problem.operator.state_size if problem.has_cell_states else problem.discretization.dofmap.num_owned


def callbacks(problem, trace: PETSc.Mat, assembled, conforming) -> operators.Callbacks:
    """Callbacks of trace and cells, from the matrices of the trace. Collective."""
    coarse = assembled.mat if assembled is not None else trace
    system = operators.StateMatrix(problem.operator, problem.access, trace, coarse, problem.create_vec())
    return operators.StateCallbacks(
        problem.operator, problem.access, system, problem.petsc_comm, problem.vec_type, assembled, conforming
    )


def trace_solver(problem, ksp: PETSc.KSP) -> PETSc.KSP:
    """The solver of the trace inside a KSP of trace and cells, which is set up so if it is not yet; else the KSP.

    The user's -ksp_* and -pc_* are those of the trace. Collective.
    """
    if not problem.has_cell_states:
        return ksp
    pc = ksp.getPC()
    if pc.getType() == "python" and isinstance(pc.getPythonContext(), operators.CellElimination):
        return pc.getPythonContext().ksp
    inner = PETSc.KSP().create(ksp.comm)
    inner.setOptionsPrefix(ksp.getOptionsPrefix() or "")
    inner.setTolerances(rtol=ksp.getTolerances()[0])
    ksp.appendOptionsPrefix(CELLS)
    ksp.setType("preonly")
    pc.setType("python")
    pc.setPythonContext(operators.CellElimination(problem.callbacks.system, inner))
    return inner


def iterations(problem, ksp: PETSc.KSP, counted: int) -> int:
    """Iterations of the trace's solver so far, or those that are counted by PETSc."""
    return ksp.getPC().getPythonContext().iterations if problem.has_cell_states else counted
