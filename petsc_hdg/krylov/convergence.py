"""What a KSP is told as a method goes on: iterations, norms and the reason to stop, in the order of PETSc's own."""

from __future__ import annotations

from math import inf, isfinite, sqrt

from petsc4py import PETSc

from ..petsc.c_library import pc_has_failed

Reason = PETSc.KSP.ConvergedReason
Norm = PETSc.KSP.NormType


class ConvergenceMonitor:
    """One solve of a KSP. `stopped` is its reason as a number, 0 while it goes on."""

    def __init__(self, ksp: PETSc.KSP):
        self.ksp = ksp
        self.norm_type = ksp.getNormType()
        self.max_it = ksp.getTolerances()[3]
        self.stopped = 0
        self.iteration = 0
        self.flops = 0  # an unknown's, beside products and preconditioners
        self._norms: list[float] = []

    def begin(self, iteration: int) -> None:
        """An iteration begins; the first is 1."""
        self.iteration = iteration
        self.ksp.setIterationNumber(iteration)

    def stop(self, reason) -> None:
        """End the solve; PETSc takes the solution from its own vector once the KSP itself has a reason."""
        self.stopped = reason

    def tell(self, iteration: int, norm: float) -> None:
        """Tell log and monitors of the residual's norm. Collective."""
        self.ksp.setResidualNorm(norm)
        self.ksp.logConvergenceHistory(norm)
        self.ksp.monitor(iteration, norm)

    def has_failed(self, *values: float) -> bool:
        """True if one of the inner products is not a number; the solve then ends, as PETSc's KSPCheckDot says."""
        if all(isfinite(value) for value in values):
            return False
        failed = pc_has_failed(self.ksp.getPC())
        self.stop(Reason.DIVERGED_PCSETUP_FAILED if failed else Reason.DIVERGED_NANORINF)
        return True

    def check(self, iteration: int, norm: float) -> bool:
        """Tell log, monitors and the convergence test of the residual's norm; whether to stop. Collective."""
        self._norms.append(norm)
        self.ksp.setResidualNorm(norm if isfinite(norm) else inf)
        if self.has_failed(norm):
            return True
        self.tell(iteration, norm)
        return self.test(iteration, norm)

    def test(self, iteration: int, norm: float) -> bool:
        """True if the convergence test says to stop. Collective."""
        reason = self.ksp.callConvergenceTest(iteration, norm)
        if reason:
            self.stop(reason)
        return bool(reason)

    def may_end(self) -> bool:
        """True if the next residual may meet the tolerance: the last norm times its last reduction squared does."""
        if self.norm_type != Norm.UNPRECONDITIONED or len(self._norms) < 2:
            return False
        (rtol, atol, *_), (before, now) = self.ksp.getTolerances(), self._norms[-2:]
        return now * (now / before) ** 2 < max(rtol * self._norms[0], atol)

    def norm(self, residual: float, natural: float, preconditioned: float) -> float:
        """The norm that the KSP asks for, of the squares r·r, z·r and z·z."""
        squares = {Norm.UNPRECONDITIONED: residual, Norm.NATURAL: abs(natural), Norm.PRECONDITIONED: preconditioned}
        return sqrt(squares.get(self.norm_type, 0.0)) if isfinite(residual + natural + preconditioned) else float("nan")
