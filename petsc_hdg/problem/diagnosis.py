"""What a solve came to: a solution, or numbers that are not finite in the state, the residual, or the Jacobian."""

from __future__ import annotations

from petsc4py import PETSc

from ..operators.finite import fault
from . import solvers, true_residual

_KSP = PETSc.KSP.ConvergedReason
_NO_NUMBER = -4  # of SNES, under another name since PETSc 3.25


def check_solved(problem, u: PETSc.Vec) -> None:
    """Raise SolveError, on all ranks, if the problem's solver stopped without a solution u; warn if a linear one came
    to something else. Collective."""
    solvers.check_converged(problem.snes, problem.operator.failure, lambda: of_solve(problem, problem.snes, u))
    true_residual.check(problem, u)


def met_no_number(snes: PETSc.SNES) -> bool:
    """Whether a solver stopped because of a number that is not finite, or a preconditioner that failed over one."""
    by_ksp = (_KSP.DIVERGED_NANORINF, _KSP.DIVERGED_PCSETUP_FAILED)
    return snes.getConvergedReason() == _NO_NUMBER or snes.getKSP().getConvergedReason() in by_ksp


def of_solve(problem, snes: PETSc.SNES, u: PETSc.Vec, t: float = 0.0) -> str:
    """What is not finite after a solve that failed at u and t, in words; "" if all is, or it failed of something else.

    Collective.
    """
    if not met_no_number(snes):
        return ""
    return (
        fault(problem.discretization, u.getArray(readonly=True), "the state")
        or _of_residual(problem, u, t)
        or _of_jacobian(problem, u)
    )


def _of_residual(problem, u: PETSc.Vec, t: float) -> str:
    f = u.duplicate()
    problem.callbacks.ifunction(None, t, u, None, f)
    text = fault(problem.discretization, f.getArray(readonly=True), "the residual")
    f.destroy()
    return text


def _of_jacobian(problem, u: PETSc.Vec) -> str:
    ones, product = u.duplicate(), u.duplicate()
    ones.set(1.0)
    problem.callbacks.jacobian.mult(ones, product)
    text = fault(problem.discretization, product.getArray(readonly=True), "the Jacobian")
    for vector in (ones, product):
        vector.destroy()
    return text
