"""Preconditioned conjugate gradients on the device, step for step as PETSc's KSPCG (Hestenes and Stiefel 1952)."""

from __future__ import annotations

import numpy as np

from ..options import given_truth, is_given
from . import cg_steps
from .cg_single import SingleSteps
from .convergence import ConvergenceMonitor, Reason
from .solver import DeviceSolver


class CG(DeviceSolver):
    """Conjugate gradients: -ksp_type python -ksp_python_type petsc_hdg.CG.

    With a diagonal preconditioner one kernel updates the residual and sums what all norms need, another one solution
    and direction. Where kernels have the sums over all ranks, which may write each other's memory, step lengths are
    computed where they are used, and the next product begins before the host has seen the norm of the residual.
    Elsewhere the solution is updated while sums are under way (cg_steps.py). A solve
    that ends by the norm of the residual does not apply other preconditioners to the last residual.

    Option: -ksp_cg_single_reduction, one sum over ranks a step instead of two (cg_single.py), and two applications of
    the preconditioner more; by default on several ranks with a preconditioner of few launches, whose kernels have the
    sums, or with so few unknowns that a sum takes longer than what it saves.
    """

    single_reduction: bool | None = None  # None: by the number of unknowns

    def setFromOptions(self, ksp) -> None:
        """Read the options. Raises OptionError."""
        before, prefix = self.single_reduction, ksp.getOptionsPrefix() or ""
        if is_given(prefix, "ksp_cg_single_reduction"):
            self.single_reduction = given_truth(prefix, "ksp_cg_single_reduction", False)
        if self.single_reduction != before:
            self._kept = None

    def _sums_once(self) -> bool:
        """Return True if a step has one sum over ranks. The same on all ranks."""
        if self.single_reduction is not None:
            return self.single_reduction
        ranks = self.vectors.comm.size
        few = self.matrix.mat.getSize()[0] < cg_steps.LEAST * ranks
        return ranks > 1 and (self.preconditioner.is_short if self.vectors.has_peers else few)

    def view(self, ksp, viewer) -> None:
        super().view(ksp, viewer)
        if self.vectors is not None and self._sums_once():
            viewer.printfASCII("    one sum over ranks an iteration\n")

    def iterate(self, monitor: ConvergenceMonitor, b, x, guessed: bool) -> None:
        steps = self.kept(SingleSteps if self._sums_once() else cg_steps.steps_of)
        steps.begin(self.matrix, self.preconditioner, x)
        self._current = lambda: (steps.finish(), x)[1]
        self.operation.residual(b, x, guessed, steps.r)
        self._steps_until_done(monitor, steps)
        steps.finish()

    def _steps_until_done(self, monitor: ConvergenceMonitor, steps) -> None:
        rr, zr, zz = steps.first_sums()
        if monitor.check(0, monitor.norm(rr, zr, zz)) or monitor.has_failed(zr):
            return None
        if steps.runs_ahead:
            steps.advance(0)
        zr_before = pw_before = 0.0
        for k in range(max(1, monitor.max_it)):
            monitor.begin(k + 1)
            if zr == 0:
                return monitor.stop(Reason.CONVERGED_ATOL)
            if zr * np.sign(zr_before) < 0:
                return monitor.stop(Reason.DIVERGED_INDEFINITE_PC)
            zr_before = zr
            splits = steps.can_split and monitor.may_end()  # the norm is checked before B r is computed
            pw, rr, zr, zz = steps.residual(k) if splits else steps.step(k)
            monitor.flops += steps.flops
            if monitor.has_failed(pw):
                return None
            if pw == 0 or pw * np.sign(pw_before) < 0:
                return monitor.stop(Reason.DIVERGED_INDEFINITE_MAT)
            pw_before = pw
            if monitor.check(k + 1, monitor.norm(rr, zr, zz)):
                return None
            if splits:
                zr, zz = steps.rest(k)
            if monitor.has_failed(zr):
                return None
        return monitor.stop(Reason.DIVERGED_MAX_IT)
