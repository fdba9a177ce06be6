"""The assembled trace matrix in the place of two levels that turn out not to suit it."""

from __future__ import annotations

from petsc4py import PETSc

from ..discretizations import HybridizedDG
from ..errors import collectively
from ..operators.advice import INDEFINITE
from ..options import MATRIX_FREE_PCS, is_given
from . import matrices, preconditioners, solvers

# An indefinite matrix, as of Helmholtz' equation, and methods that its levels mislead.
_REASON = PETSc.KSP.ConvergedReason
FAILURES = (*INDEFINITE, _REASON.DIVERGED_DTOL, _REASON.DIVERGED_BREAKDOWN, _REASON.DIVERGED_BREAKDOWN_BICG)


def changes_course(problem, snes: PETSc.SNES) -> bool:
    """Whether the linear solver failed in a way for which there is another, which the next solve takes. Collective."""
    indefinite = preconditioners.met_indefinite(problem, snes)
    return _take(problem, snes) or indefinite


def follow_user(problem, snes: PETSc.SNES) -> None:
    """Assemble the trace matrix if the user gave the solver itself a PC that takes one. Collective."""
    if _are_levels_ours(problem) and snes.getKSP().getPC().getType() not in ("mg", *MATRIX_FREE_PCS):
        _assemble(problem, snes)


def _take(problem, snes: PETSc.SNES) -> bool:
    """Assemble the trace matrix if the linear solver failed with two levels that the user did not ask for; solves from
    now on take it, with the solvers that go with it. Collective."""
    is_ours = _are_levels_ours(problem) and not is_given(problem.prefix, "pc_type")
    if not is_ours or snes.getKSP().getConvergedReason() not in FAILURES:
        return False
    _assemble(problem, snes)
    _set_solver(problem, snes)
    return True


def _are_levels_ours(problem) -> bool:
    """Whether the problem has two levels that `-fe_pmat auto` chose for a trace."""
    is_trace = isinstance(problem.discretization, HybridizedDG)
    return is_trace and problem.options.pmat == "auto" and problem.pmat == "conforming"


def _assemble(problem, snes: PETSc.SNES) -> None:
    """Have the trace matrix in the place of the levels. Collective."""
    problem.pmat = "aij"
    with collectively(problem.comm):
        problem.operator.compile(matrices=True)
    calls, sizes = problem.callbacks, (problem.discretization.dofmap.num_owned, problem.num_unknowns)
    calls.assemble(matrices.assembled_matrix(problem, sizes))
    solvers.share_constants(calls)
    snes.setJacobian(calls.linearize, calls.jacobian, calls.preconditioning)


def _set_solver(problem, snes: PETSc.SNES) -> None:
    """The solver of assembled trace matrices, and the user's options on top. Collective."""
    calls, ksp = problem.callbacks, snes.getKSP()
    ksp.getPC().reset()
    ksp.setOperators(calls.jacobian, calls.preconditioning)
    preconditioners.set_defaults(problem, ksp)
    solvers.set_from_options(ksp)
