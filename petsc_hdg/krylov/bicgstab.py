"""Stabilized biconjugate gradients on the device, step for step as PETSc's KSPBCGS (van der Vorst 1992)."""

from __future__ import annotations

from functools import partial

import numpy as np

from .preconditioners import LEFT, RIGHT, Operation
from .solver import ConvergenceMonitor, DeviceSolver, Norm, Reason
from .vectors import StepSums

ROW_V, ROW_T, ROW_Q = 0, 1, 2  # as in krylov_bicg.cl
FLOPS = 22  # of a step for an unknown


class BiCGStab(DeviceSolver):
    """BiCGStab for nonsymmetric matrices: -ksp_type python -ksp_python_type petsc_hdg.BiCGStab.

    -ksp_pc_side left (default) or right.
    """

    norms = ((Norm.PRECONDITIONED, LEFT), (Norm.UNPRECONDITIONED, RIGHT))

    def iterate(self, monitor: ConvergenceMonitor, b, x, guessed: bool) -> None:
        steps, operation = self.kept(Steps), self.operation
        change = x
        if not operation.is_left:  # B of it is added to the first guess in the end
            change = self.vectors.buffer("change")
            self.vectors.arrays.fill(change)
        self._current = partial(_solution, operation, change, x)
        operation.first_residual(b, x, guessed, steps.r)
        rr = steps.begin(operation, change)
        if not monitor.check(0, monitor.norm(rr, 0.0, rr)):
            self._steps_until_done(monitor, steps, rr)
        if change is not x:
            operation.add(change, x)

    def _steps_until_done(self, monitor: ConvergenceMonitor, steps: Steps, rho: float) -> None:
        if steps.runs_ahead:
            steps.advance(0)
        for k in range(max(1, monitor.max_it)):
            vq, (tt, _, ss), (rr, rho_next) = steps.step(k)
            monitor.flops += FLOPS
            if monitor.has_failed(vq, tt):
                return None
            if vq == 0 or (tt == 0 and ss != 0):
                return monitor.stop(Reason.DIVERGED_BREAKDOWN)
            monitor.begin(k + 1)
            if tt == 0:
                monitor.tell(k + 1, 0.0)
                return monitor.stop(Reason.CONVERGED_RTOL)
            if monitor.check(k + 1, monitor.norm(rr, 0.0, rr)):
                return None
            if rho == 0:
                return monitor.stop(Reason.DIVERGED_BREAKDOWN)
            rho = rho_next
        return monitor.stop(Reason.DIVERGED_MAX_IT)


def _solution(operation: Operation, change, x):
    """The present iterate, where `change` is not in x yet."""
    if change is x:
        return x
    now = operation.vectors.buffer("solution")
    operation.vectors.copy(x, now)
    operation.add(change, now)
    return now


class Steps:
    """Buffers and launches of BiCGStab; see krylov_bicg.cl for the sums."""

    def __init__(self, vectors):
        self.vectors = vectors
        self.r, self.q, self.p, self.v, self.s, self.t = (vectors.buffer(name) for name in "rqpvst")
        self.sums = StepSums(vectors, 3)
        names = ("direction", "half", "update")
        self._kernels = {name: [vectors.kernel(f"bicg_{name}") for _ in range(2)] for name in names}

    def begin(self, operation: Operation, x) -> float:
        """A solve begins with the residual in r; returns its square. Collective."""
        self.operation, self.x = operation, x
        self.runs_ahead = self.sums.alone and operation.on_device
        self.sums.begin()
        self.vectors.copy(self.r, self.q)
        self.vectors.run("sums", self.r, self.r, self.sums.row(1, ROW_Q), self.sums.buffer)
        return self.sums.reduced(1, ROW_Q)[0]

    def advance(self, k: int) -> None:
        """Direction of step k, its product and sums. Collective."""
        self._run("direction", k, self.r, self.v, self.p)
        self._multiply(self.p, self.v, self.q, self.sums.row(k % 2, ROW_V))

    def step(self, k: int):
        """Step k; returns v·q, (t·t, s·t, s·s), (r·r, r·q). Collective."""
        now, sums = k % 2, self.sums
        if self.runs_ahead:
            self._half(k)
            self._update(k)
            sums.read_block(now)
            self.advance(k + 1)
            rows = sums.wait_block()
        else:
            rows = np.zeros((3, 4))
            self.advance(k)
            rows[ROW_V] = sums.reduced(now, ROW_V)
            self._half(k)
            rows[ROW_T] = sums.reduced(now, ROW_T)
            self._update(k)
            rows[ROW_Q] = sums.reduced(now, ROW_Q)
        return rows[ROW_V, 1], rows[ROW_T, :3], rows[ROW_Q, :2]

    def _half(self, k: int) -> None:
        self._run("half", k, self.r, self.v, self.s)
        self._multiply(self.s, self.t, self.s, self.sums.row(k % 2, ROW_T))

    def _update(self, k: int) -> None:
        self._run("update", k, self.sums.buffer, self.p, self.s, self.t, self.q, self.x, self.r)

    def _multiply(self, x, y, other, row: int) -> None:
        self.operation.apply(x, y)
        self.vectors.run("sums", other, y, row, self.sums.buffer)

    def _run(self, name: str, k: int, *arguments) -> None:
        count, given = self.sums.given
        self._kernels[name][k % 2](self.vectors.items, self.vectors.count, count, k % 2, given, *arguments)
