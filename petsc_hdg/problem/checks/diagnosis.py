"""Diagnosis of a solve: a solution, or numbers that are not finite in the state, the residual, or the Jacobian."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ...errors import SolveError
from ...operators.assembled import fault
from ...value_checks import plural
from ..linear import solvers
from . import boundary_states, trace_consistency, true_residual

_KSP = PETSc.KSP.ConvergedReason
_TOO_SLOW = {_KSP.DIVERGED_MAX_IT, PETSc.SNES.ConvergedReason.DIVERGED_MAX_IT}
_NO_NUMBER = -4  # of SNES, under another name since PETSc 3.25


def check_solved(problem, u: PETSc.Vec) -> None:
    """Raise SolveError, on all ranks, if the problem's solver stopped without a solution u, or with numbers that are
    not finite; warn if a linear one came to something else. Collective.

    It costs a residual of linear physics, or in single precision, and what `check_meaning` does.
    """
    explain = lambda: of_solve(problem, problem.snes, u)  # noqa: E731
    solvers.check_converged(problem.snes, problem.operator.failure, explain, solvers.told(problem.tried))
    if problem.physics.is_linear or problem.options.precision == "single":
        residual = u.duplicate()
        problem.callbacks.residual(problem.snes, u, residual)
        require_finite(problem, u, residual)
        true_residual.check_rounding(problem, u, residual)
        if problem.physics.is_linear:  # SNES has the residual of others
            true_residual.check(problem, u, residual)
        residual.destroy()
    else:
        require_finite(problem, u)
    check_meaning(problem, u)


def iterations(problem) -> str:
    """The iterations of the last run, in words."""
    return f"{plural(problem.newton_iterations, 'Newton iteration')} and {problem.linear_iterations} linear"


def check_meaning(problem, u: PETSc.Vec, t: float = 0.0) -> None:
    """Warn of a solution, of its discrete equations, that may not be one of the physics. Collective."""
    trace_consistency.check(problem, u, t)
    boundary_states.check(problem, u, t)


def require_finite(problem, u: PETSc.Vec, residual: PETSc.Vec | None = None, t: float = 0.0) -> None:
    """Raise SolveError, on all ranks, if a solution or its residual is not finite, as direct solvers let pass.
    Collective."""
    sums = [vector.norm(PETSc.NormType.NORM_1) for vector in (u, residual) if vector is not None]
    if not np.isfinite(sums).all():
        raise SolveError(f"the solver came to no solution: {_cause(problem, u, t)}")


def _cause(problem, u: PETSc.Vec, t: float) -> str:
    """Say what is not finite: of linear physics the residual at zero, which is that of the data, or else the
    solution. Collective."""
    text = ""
    if problem.physics.is_linear:
        zero = u.duplicate()
        zero.set(0.0)
        text = _of_residual(problem, zero, t)
        zero.destroy()
    text = text or _of_state(problem, u) or _of_residual(problem, u, t)
    return text or "its numbers are too large to be added up"


def _of_state(problem, u: PETSc.Vec, what: str = "the solution") -> str:
    return fault(problem.discretization, u.getArray(readonly=True), what)


def met_no_number(snes: PETSc.SNES) -> bool:
    """True if a solver stopped because of a number that is not finite, or a preconditioner that failed over one."""
    by_ksp = (_KSP.DIVERGED_NANORINF, _KSP.DIVERGED_PCSETUP_FAILED)
    return snes.getConvergedReason() == _NO_NUMBER or snes.getKSP().getConvergedReason() in by_ksp


def of_solve(problem, snes: PETSc.SNES, u: PETSc.Vec, t: float = 0.0) -> str:
    """Say what is not finite after a solve that failed at u and t, that rounding may have ended it, or steps inside of
    cells slowed it down; "" if it failed of something else. Collective."""
    if not met_no_number(snes):
        is_slow = {snes.getKSP().getConvergedReason(), snes.getConvergedReason()} & _TOO_SLOW
        if is_slow and problem.options.backend in ("sipg_gpu", "poly_gpu") and problem.discretization.has_steps:
            return (
                "f1 steps with x, and by interior penalty a step inside of cells costs many iterations: let facets "
                "follow it, or take -fe_backend hdg_gpu"
            )
        if problem.options.precision == "single" and not is_slow:
            return "rounding in single precision may hide smaller residuals, -fe_precision double helps then"
        return ""
    return _of_state(problem, u, "the state") or _of_residual(problem, u, t) or _of_jacobian(problem, u)


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
