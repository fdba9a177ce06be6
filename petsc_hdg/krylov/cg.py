"""Preconditioned conjugate gradients on the device, step for step as PETSc's KSPCG (Hestenes and Stiefel 1952)."""

from __future__ import annotations

import numpy as np

from .course import Course, Reason
from .solver import DeviceSolver
from .vectors import StepSums

UPDATE_X, UPDATE_P = 1, 2  # as in krylov_cg.cl
ROW_P, ROW_R = 0, 1
FLOPS = 14  # of a step for an unknown: 3 updates, 3 products of the residual's sums, 1 of p·w


class CG(DeviceSolver):
    """Conjugate gradients: -ksp_type python -ksp_python_type petsc_hdg.CG.

    With a diagonal preconditioner one kernel updates the residual and sums what all norms need, another one solution
    and direction. On one rank step lengths are computed where they are used, and the next product begins before the
    host has seen the norm of the residual; over ranks the solution is updated while sums are under way.
    """

    def iterate(self, course: Course, b, x, guessed: bool) -> None:
        steps = self.kept(Steps)
        steps.begin(self.matrix, self.preconditioner, x)
        self._current = lambda: x
        self.operation.residual(b, x, guessed, steps.r)
        rr, zr, zz = steps.first_sums()
        if course.check(0, course.norm(rr, zr, zz)) or course.has_failed(zr):
            return
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


class Steps:
    """Buffers and launches of CG; see krylov_cg.cl for the sums and what the solution's updates wait for.

    With a diagonal preconditioner `r` holds z = B r, from which r is found again. Products that can sum p·w themselves.
    """

    def __init__(self, vectors):
        self.vectors = vectors
        self.r, self.p, self.w = (vectors.buffer(name) for name in ("r", "p", "w"))
        self.sums = StepSums(vectors, 2)
        names = {"residual": "cg_residual", "direct": "cg_direction", "advance": "cg_direction", "sums": "krylov_sums"}
        self._kernels = {what: [vectors.kernel(name) for _ in range(2)] for what, name in names.items()}
        self._total = [vectors.kernel("krylov_total") for _ in range(2)]
        self._first = vectors.kernel("cg_first")

    def begin(self, matrix, preconditioner, x) -> None:
        """A solve begins."""
        self.matrix, self.preconditioner, self.x = matrix, preconditioner, x
        self.runs_ahead = self.sums.alone and matrix.on_device and preconditioner.on_device
        self.is_fused = preconditioner.is_diagonal
        self.z = self.r if self.is_fused else self.vectors.buffer("z")
        self.diagonal = preconditioner.diagonal if self.is_fused else None
        self.parts = self.vectors.parts(matrix.num_parts)
        self.sums.begin()
        self._bind()

    def _bind(self) -> None:
        """Launches of even and odd steps, whose arguments stay during a solve."""
        vectors, (count, given) = self.vectors, self.sums.given
        self._launch: dict = {}
        for what, kernels in self._kernels.items():
            for now, kernel in enumerate(kernels):
                if what == "residual":
                    arguments = (count, now, given, self.sums.buffer, self.w, self.diagonal, self.r)
                elif what == "sums":
                    arguments = (self.p, self.w, self.sums.row(now, ROW_P), self.sums.buffer)
                else:
                    how = UPDATE_X if what == "advance" else UPDATE_P | (UPDATE_X if self.runs_ahead else 0)
                    arguments = (count, now, how, given, self.z, self.p, self.x)
                self._launch[what, now] = kernel.bound(vectors.items, vectors.count, *arguments)
        for now, kernel in enumerate(self._total if self.parts is not None else ()):
            row = self.sums.row(now, ROW_P)
            self._launch["sums", now] = kernel.bound(
                vectors.items, self.matrix.num_parts, self.parts, row, self.sums.buffer
            )

    def first_sums(self) -> np.ndarray:
        """(r·r, z·r, z·z) of the first residual. Collective."""
        if self.is_fused:
            vectors, row = self.vectors, self.sums.row(1, ROW_R)
            self._first(vectors.items, vectors.count, self.diagonal, self.r, row, self.sums.buffer)
        else:
            self._precondition(1)
        return self.sums.reduced(1, ROW_R)[:3]

    def _precondition(self, block: int) -> None:
        self.preconditioner.apply(self.r, self.z)
        self.vectors.run("sums", self.z, self.r, self.sums.row(block, ROW_R), self.sums.buffer)

    def advance(self, k: int) -> None:
        """Direction of step k (and on one rank the solution after the step before), product and p·w. Collective."""
        self._launch["direct", k % 2]()
        self.matrix.mult(self.p, self.w, self.parts)
        self._launch["sums", k % 2]()

    def step(self, k: int):
        """Step k; returns p·w, then r·r, z·r and z·z of the residual that it leaves. Collective."""
        now = k % 2
        if self.runs_ahead:
            self._reduce_residual(now)
            self.sums.read(now)
            self.advance(k + 1)
            sums = self.sums.wait()
            return sums[0, 1], *sums[1, :3]
        self.advance(k)
        pw = self.sums.reduced(now, ROW_P)[1]
        self._reduce_residual(now)
        return pw, *self.sums.reduced(now, ROW_R, meanwhile=self._launch["advance", 1 - now])[:3]

    def _reduce_residual(self, now: int) -> None:
        self._launch["residual", now]()
        if not self.is_fused:
            self._precondition(now)
