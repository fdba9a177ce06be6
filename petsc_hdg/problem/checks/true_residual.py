"""Check of a linear solver's solution by its true residual.

By default PETSc's norms are those of the preconditioned residual B r. Where B is near A⁻¹ that is the error, a better
measure than r itself, which is large in the rows of large coefficients however small the error is. Where B hides a part
of r, such as one that suits another matrix, the solver stops and the solution is wrong. D⁻¹ r with the diagonal D
of the matrix sees that: it is A's error scaled to be of its size or less, whatever the coefficients are.
"""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ...discretizations.saddle_points import constraints
from ...errors import warn_user
from ..linear import field_splits

LOOSE = 100.0  # error that is sure, over what the tolerance asks for, up to which nothing is said
ONCE = 1e-3  # error relative to the solution that is told where a preconditioner alone is the solver
ROUNDINGS = 1000.0  # the same over the rounding of the solution
ROUNDED = 1e-2  # change of a solution by its residual, relative to it, from which rounding in single precision is told
INVERSE = "petsc_hdg_inverse_diagonal"  # attribute of a Jacobian: state, 1 / diagonal
_REASON = PETSc.KSP.ConvergedReason


def check(problem, u: PETSc.Vec, residual: PETSc.Vec) -> None:
    """Warn, on rank 0, of a linear solve that met its relative tolerance and left an error far above it, or of one
    application of a preconditioner (`preonly`) that is no solution. Collective.

    residual: F(u), which changes.   With a new matrix it costs its diagonal.
    """
    ksp = problem.snes.getKSP()
    if problem.has_cell_states or not _asks(ksp):  # eliminated cells: the solver of the trace says how it stopped
        return
    rtol, error, size = ksp.getTolerances()[0], least_error(problem, residual), ksp.getSolution().norm()
    rounding = float(np.finfo(problem.arrays.real).eps) * u.norm()
    once = ksp.getType() == "preonly"
    if error > max((ONCE if once else LOOSE * rtol) * size, ROUNDINGS * rounding) and problem.comm.rank == 0:
        relative = error / size if size else np.inf
        warn_user((_of_one_application if once else _sentence)(problem, rtol, relative))


def _asks(ksp: PETSc.KSP) -> bool:
    """Return True if a solver is `preonly`, or stopped by its relative tolerance, or at a residual norm of zero.

    ITERATING is the reason of a KSP that Newton's method has not called.
    """
    reason = ksp.getConvergedReason()
    if ksp.getType() == "preonly":
        return reason == _REASON.CONVERGED_ITS
    if ksp.getNormType() == PETSc.KSP.NormType.NONE or reason in (_REASON.ITERATING, _REASON.CONVERGED_ITS):
        return False
    return reason != _REASON.CONVERGED_ATOL or ksp.getResidualNorm() == 0


def check_rounding(problem, u: PETSc.Vec, residual: PETSc.Vec) -> None:
    """Warn, on rank 0, where rounding in single precision changes a solution: another step from it, an application of
    the preconditioner to F(u), is of its size. residual: F(u). Collective."""
    ksp = problem.snes.getKSP()
    none = problem.has_cell_states or ksp.getConvergedReason() == _REASON.ITERATING
    if none or problem.options.precision == "double":
        return
    _remove_unreachable(problem, residual)
    step = u.duplicate()
    ksp.getPC().apply(residual, step)
    step, size = step.norm(), u.norm()
    if step > ROUNDED * size and problem.comm.rank == 0:
        warn_user(
            f"rounding in single precision changes the solution by {step / size:.1e} of its size or more: "
            "the system is too ill-conditioned for it; -fe_precision double is accurate"
        )


def least_error(problem, residual: PETSc.Vec) -> float:
    """Norm of D⁻¹ F(u), without what the matrix cannot reach where its null space is known, from F(u). Collective."""
    _remove_unreachable(problem, residual)
    residual.pointwiseMult(residual, _inverse_diagonal(problem))
    return residual.norm()


def _remove_unreachable(problem, residual: PETSc.Vec) -> None:
    null_space = problem.callbacks.jacobian.getTransposeNullSpace()
    if null_space.handle:
        null_space.remove(residual)


def _inverse_diagonal(problem) -> PETSc.Vec:
    """1 / |diagonal| of the Jacobian, which is kept with it; entries that are zero, and those of constraints, which are
    small beside what couples them to others, count as the largest. Collective."""
    jacobian = problem.callbacks.jacobian
    state, inverse = jacobian.getAttr(INVERSE) or (None, None)
    if state != jacobian.stateGet():
        inverse = jacobian.getDiagonal()
        inverse.abs()
        if names := constraints(problem.physics, problem.mesh.dim):
            inverse.setArray(np.where(field_splits.is_of(problem, names), 0.0, inverse.getArray(readonly=True)))
        most = inverse.max()[1] or 1.0
        if not inverse.min()[1] > (least := np.finfo(float).eps * most):
            values = inverse.getArray(readonly=True)
            inverse.setArray(np.where(values > least, values, most))
        inverse.reciprocal()
        jacobian.setAttr(INVERSE, (jacobian.stateGet(), inverse))
    return inverse


def _sentence(problem, rtol: float, relative: float) -> str:
    prefix = problem.prefix
    given = " or the Jacobian that was given is not that of f0 and f1" if problem.physics.has_jacobian else ""
    return (
        f"the linear solver met -{prefix}ksp_rtol {rtol:g} in its own norm, and the solution is off by {relative:.1e} "
        f"of its size or more: the preconditioner hides a part of the residual{given}; "
        f"-{prefix}ksp_monitor_true_residual shows its course, -{prefix}ksp_norm_type unpreconditioned or another "
        f"-{prefix}pc_type may help"
    )


def _of_one_application(problem, rtol: float, relative: float) -> str:
    prefix, pc = problem.prefix, problem.snes.getKSP().getPC().getType()
    return (
        f"-{prefix}ksp_type preonly applies the preconditioner ({pc}) once, and the solution is off by {relative:.1e} "
        f"of its size or more; -{prefix}pc_type lu solves directly, and other -{prefix}ksp_type iterate to "
        f"-{prefix}ksp_rtol {rtol:g}"
    )
