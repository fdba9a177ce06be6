"""Preconditioned conjugate gradients on the device, step for step as PETSc's KSPCG (Hestenes and Stiefel 1952)."""

from __future__ import annotations

import numpy as np

from ..options import given_truth
from .cg_single import SingleSteps
from .cg_steps import steps_of
from .convergence import ConvergenceMonitor, Reason
from .solver import DeviceSolver


class CG(DeviceSolver):
    """Conjugate gradients: -ksp_type python -ksp_python_type petsc_hdg.CG.

    With a diagonal preconditioner one kernel updates the residual and sums what all norms need, another one solution
    and direction. On one rank step lengths are computed where they are used, and the next product begins before the
    host has seen the norm of the residual; over ranks the solution is updated while sums are under way (cg_steps.py).

    Option: -ksp_cg_single_reduction, one sum over ranks a step instead of two (cg_single.py).
    """

    single_reduction = False

    def setFromOptions(self, ksp) -> None:
        """Read the options. Raises OptionError."""
        before, name = self.single_reduction, "ksp_cg_single_reduction"
        self.single_reduction = given_truth(ksp.getOptionsPrefix() or "", name, before)
        if self.single_reduction != before:
            self._kept = None

    def view(self, ksp, viewer) -> None:
        super().view(ksp, viewer)
        if self.single_reduction:
            viewer.printfASCII("    one sum over ranks an iteration\n")

    def iterate(self, monitor: ConvergenceMonitor, b, x, guessed: bool) -> None:
        steps = self.kept(SingleSteps if self.single_reduction else steps_of)
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
            pw, rr, zr, zz = steps.step(k)
            monitor.flops += steps.flops
            if monitor.has_failed(pw):
                return None
            if pw == 0 or pw * np.sign(pw_before) < 0:
                return monitor.stop(Reason.DIVERGED_INDEFINITE_MAT)
            pw_before = pw
            if monitor.check(k + 1, monitor.norm(rr, zr, zz)) or monitor.has_failed(zr):
                return None
        return monitor.stop(Reason.DIVERGED_MAX_IT)
