"""Preconditioned conjugate gradients on the device, step for step as PETSc's KSPCG (Hestenes and Stiefel 1952)."""

from __future__ import annotations

import numpy as np

from .cg_steps import steps_of
from .course import Course, Reason
from .solver import DeviceSolver

FLOPS = 14  # of a step for an unknown: 3 updates, 3 products of the residual's sums, 1 of p·w


class CG(DeviceSolver):
    """Conjugate gradients: -ksp_type python -ksp_python_type petsc_hdg.CG.

    With a diagonal preconditioner one kernel updates the residual and sums what all norms need, another one solution
    and direction. On one rank step lengths are computed where they are used, and the next product begins before the
    host has seen the norm of the residual; over ranks the solution is updated while sums are under way (cg_steps.py).
    """

    def iterate(self, course: Course, b, x, guessed: bool) -> None:
        steps = self.kept(steps_of)
        steps.begin(self.matrix, self.preconditioner, x)
        self._current = lambda: (steps.finish(), x)[1]
        self.operation.residual(b, x, guessed, steps.r)
        self._steps_until_done(course, steps)
        steps.finish()

    def _steps_until_done(self, course: Course, steps) -> None:
        rr, zr, zz = steps.first_sums()
        if course.check(0, course.norm(rr, zr, zz)) or course.has_failed(zr):
            return None
        if steps.runs_ahead:
            steps.advance(0)
        zr_before = pw_before = 0.0
        for k in range(max(1, course.max_it)):
            course.begin(k + 1)
            if zr == 0:
                return course.stop(Reason.CONVERGED_ATOL)
            if zr * np.sign(zr_before) < 0:
                return course.stop(Reason.DIVERGED_INDEFINITE_PC)
            zr_before = zr
            pw, rr, zr, zz = steps.step(k)
            course.flops += FLOPS
            if course.has_failed(pw):
                return None
            if pw == 0 or pw * np.sign(pw_before) < 0:
                return course.stop(Reason.DIVERGED_INDEFINITE_MAT)
            pw_before = pw
            if course.check(k + 1, course.norm(rr, zr, zz)) or course.has_failed(zr):
                return None
        return course.stop(Reason.DIVERGED_MAX_IT)
