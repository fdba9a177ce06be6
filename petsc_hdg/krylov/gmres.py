"""Restarted GMRES on the device, step for step as PETSc's KSPGMRES and KSPFGMRES (Saad and Schultz 1986, Saad 1993)."""

from __future__ import annotations

from math import hypot, sqrt

import numpy as np

from ..database import given_numbers
from .arnoldi import Basis
from .preconditioners import LEFT, RIGHT
from .solver import ConvergenceMonitor, DeviceSolver, Norm, Reason


class Hessenberg:
    """Triangular factor of the Hessenberg matrix, `size` columns so far, and `right`, the rotated right-hand side."""

    def __init__(self, most: int):
        self.size = 0
        self.right = np.zeros(most + 1)
        self._columns = np.zeros((most + 1, most))
        self._rotations: list[tuple[float, float]] = []

    def begin(self, norm: float) -> None:
        """The residual's norm is the first entry of the right-hand side."""
        self.right[0] = norm

    def add(self, products: np.ndarray, below: float, ends: bool) -> float | None:
        """Take a column [size + 1] and what stands below it; returns the residual's norm, None if the column is zero.

        ends: whether nothing stands below, so that the residual is zero.
        """
        k = self.size
        column = np.append(products, below)
        for j, (cosine, sine) in enumerate(self._rotations):
            first, second = column[j], column[j + 1]
            column[j : j + 2] = cosine * first + sine * second, cosine * second - sine * first
        norm = 0.0
        if not ends:
            length = hypot(column[k], column[k + 1])
            if length == 0:
                return None
            cosine, sine = column[k] / length, column[k + 1] / length
            self._rotations.append((cosine, sine))
            self.right[k : k + 2] = cosine * self.right[k], -sine * self.right[k]
            column[k] = cosine * column[k] + sine * column[k + 1]
            norm = abs(self.right[k + 1])
        self._columns[: k + 1, k] = column[: k + 1]
        self.size += 1
        return float(norm)

    def solve(self) -> np.ndarray | None:
        """Coefficients [size] of the basis in the solution's correction; None if the factor is singular."""
        size = self.size
        if not self._columns.diagonal()[:size].all():
            return None
        found = np.zeros(size)
        for k in range(size - 1, -1, -1):
            found[k] = (self.right[k] - self._columns[k, k + 1 : size] @ found[k + 1 :]) / self._columns[k, k]
        return found


class GMRES(DeviceSolver):
    """GMRES for any matrix: -ksp_type python -ksp_python_type petsc_hdg.GMRES.

    Options: -ksp_gmres_restart (30), -ksp_gmres_haptol, -ksp_gmres_breakdown_tolerance; -ksp_pc_side left or right.
    Orthogonalization is PETSc's default, classical Gram-Schmidt in one reduction, without refinement.
    """

    petsc_type = "gmres"
    norms = ((Norm.PRECONDITIONED, LEFT), (Norm.UNPRECONDITIONED, RIGHT))
    is_flexible = False
    restart, haptol, breakdown_tolerance = 30, 1e-30, 0.1

    def __init__(self):
        super().__init__()
        self._basis = None
        self._directions: list = []  # preconditioned vectors, if flexible

    def setFromOptions(self, ksp) -> None:
        """Read the options. Raises OptionError."""
        prefix = ksp.getOptionsPrefix() or ""
        (self.restart,) = given_numbers(prefix, "ksp_gmres_restart", (self.restart,), least=0)
        self.restart = max(1, self.restart)
        (self.haptol,) = given_numbers(prefix, "ksp_gmres_haptol", (self.haptol,), least=0)
        name = "ksp_gmres_breakdown_tolerance"
        (self.breakdown_tolerance,) = given_numbers(prefix, name, (self.breakdown_tolerance,), least=0)
        self._basis = None

    def reset(self, ksp) -> None:
        super().reset(ksp)
        self._basis, self._directions = None, []

    def view(self, ksp, viewer) -> None:
        super().view(ksp, viewer)
        viewer.printfASCII(f"    restart {self.restart}, classical Gram-Schmidt without refinement\n")

    def iterate(self, monitor: ConvergenceMonitor, b, x, guessed: bool) -> None:
        if self._basis is None:
            self._basis = Basis(self.vectors, self.restart)
        before = None  # norm by recursion at the end of the last cycle, and by computation at its begin
        while not monitor.stopped:
            self.operation.first_residual(b, x, guessed, self.vectors.buffer("w"))
            before = self._cycle(monitor, x, before)
            guessed = True
            if not monitor.stopped and monitor.iteration >= monitor.max_it:
                monitor.stop(Reason.DIVERGED_MAX_IT)

    def _cycle(self, monitor: ConvergenceMonitor, x, before) -> tuple[float, float] | None:
        """At most `restart` iterations, the residual being in w."""
        w, small = self.vectors.buffer("w"), Hessenberg(self.restart)
        self._current = lambda: self._solution(small, x)
        norm = first = _root(self._basis.begin(w))
        if monitor.has_failed(norm):
            return None
        if before and not self.is_flexible and abs(norm - before[0]) > self.breakdown_tolerance * before[1]:
            monitor.stop(Reason.DIVERGED_BREAKDOWN)
            return None
        small.begin(norm)
        monitor.tell(monitor.iteration, norm)
        if norm == 0 and not self.is_flexible:
            monitor.stop(Reason.CONVERGED_ATOL)
            return None
        monitor.test(monitor.iteration, norm)
        if monitor.stopped:
            return None
        self._multiply(0, w)
        while not monitor.stopped and small.size < self.restart and monitor.iteration < monitor.max_it:
            if small.size:
                monitor.tell(monitor.iteration, norm)
            norm = self._step(monitor, small, w)
            if norm is None:
                return None
        if not monitor.stopped and monitor.iteration >= monitor.max_it:
            monitor.stop(Reason.DIVERGED_MAX_IT)
        if small.size and monitor.stopped:
            monitor.tell(monitor.iteration, norm)
        self._add_to(small, x)
        return norm, first

    def _step(self, monitor: ConvergenceMonitor, small: Hessenberg, w) -> float | None:
        """Make the basis larger by one vector; returns the norm of the residual, None where the solve has failed."""
        used = small.size + 1
        monitor.flops += 4 * used + 3
        self._basis.extend(used, w, self.vectors.buffer("between"), self._diagonal)
        if self.operation.on_device and used < self.restart:
            self._multiply(used, w)  # before the host has seen the sums
        products, square = self._basis.wait(used)
        size = _root(square)
        if monitor.has_failed(size):
            return None
        ends = size < min(self.haptol, abs(size / small.right[small.size]))
        norm = small.add(products, size, ends)
        if norm is None:
            monitor.stop(Reason.DIVERGED_NULL)
            return None
        monitor.begin(monitor.iteration + 1)
        monitor.ksp.setResidualNorm(norm)
        monitor.test(monitor.iteration, norm)
        if ends and not monitor.stopped:
            happy = monitor.norm_type == Norm.NONE and not self.is_flexible
            monitor.stop(Reason.CONVERGED_HAPPY_BREAKDOWN if happy else Reason.DIVERGED_BREAKDOWN)
        if not self.operation.on_device and not monitor.stopped and used < self.restart:
            self._multiply(used, w)
        return norm

    def _multiply(self, k: int, w) -> None:
        """w = the operator times vector k, or without the diagonal that `extend` multiplies by."""
        if self._diagonal is not None:
            self.operation.matrix.mult(self._basis.buffers[k], self.vectors.buffer("between"))
            return
        if not self.is_flexible:
            self.operation.apply(self._basis.buffers[k], w)
            return
        while len(self._directions) <= k:
            self._directions.append(self.vectors.arrays.empty(self.vectors.count))
        self.operation.preconditioner.apply(self._basis.buffers[k], self._directions[k])
        self.operation.matrix.mult(self._directions[k], w)

    @property
    def _diagonal(self):
        """The preconditioner where it stands on the left and is a diagonal."""
        preconditioner = self.operation.preconditioner
        is_fused = self.operation.is_left and preconditioner.is_diagonal and not self.is_flexible
        return preconditioner.diagonal if is_fused else None

    # The solution ----------------------------------------------------------------------------------------

    def _add_to(self, small: Hessenberg, out) -> None:
        """out += the correction of a cycle."""
        coefficients = small.solve()
        if coefficients is None or not len(coefficients):
            return
        if self.is_flexible:
            self._basis.combine(coefficients, out, False, self._directions)
        elif self.operation.is_left:
            self._basis.combine(coefficients, out, False)
        else:
            change = self.vectors.buffer("change")
            self._basis.combine(coefficients, change, True)
            self.operation.add(change, out)

    def _solution(self, small: Hessenberg, x):
        now = self.vectors.buffer("solution")
        self.vectors.copy(x, now)
        self._add_to(small, now)
        return now


class FGMRES(GMRES):
    """GMRES whose preconditioner may change from step to step: -ksp_type python -ksp_python_type petsc_hdg.FGMRES."""

    petsc_type = "fgmres"
    norms = ((Norm.UNPRECONDITIONED, RIGHT),)
    is_flexible = True


def _root(square: float) -> float:
    return sqrt(square) if np.isfinite(square) else float("nan")
