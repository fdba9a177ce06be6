"""Advice where a linear solver stopped without a solution."""

from __future__ import annotations

from petsc4py import PETSc

_REASON = PETSc.KSP.ConvergedReason
INDEFINITE = (_REASON.DIVERGED_INDEFINITE_PC, _REASON.DIVERGED_INDEFINITE_MAT)
SLOW = (_REASON.DIVERGED_MAX_IT, _REASON.DIVERGED_DTOL, _REASON.DIVERGED_BREAKDOWN)

_DEFINITE = "conjugate gradients need a matrix that is definite; -{0}ksp_type fgmres takes any"
_COURSE = "-{0}ksp_monitor_true_residual shows its course, -{0}ksp_type and -{0}pc_type choose another"
_DIRECT = (
    "; -{0}ksp_type preonly -{0}pc_type {1} solves directly what iterations do not, such as "
    "Helmholtz' equation or waves"
)


def advice(ksp: PETSc.KSP) -> str:
    """Options for a linear solver that stopped, in words."""
    prefix, stopped = ksp.getOptionsPrefix() or "", ksp.getConvergedReason()
    if stopped in INDEFINITE:
        return _DEFINITE.format(prefix)
    if stopped not in SLOW or ksp.getType() == "preonly":
        return _COURSE.format(prefix)
    return (_COURSE + _DIRECT).format(prefix, "lu" if ksp.comm.size == 1 else "redundant")
