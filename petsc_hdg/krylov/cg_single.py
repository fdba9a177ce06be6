"""Buffers and launches of conjugate gradients with one sum over ranks a step (Chronopoulos and Gear 1989)."""

from __future__ import annotations

import numpy as np

from . import cg_steps
from .cg_steps import ROW_P, ROW_R, Steps, step_length
from .vectors import BlockSums, Rows, StepSums


class SingleSteps(Steps):
    """Steps whose w = A p and p·w follow from s = A z and z·s by recursion: one kernel updates all vectors, and one sum
    over ranks after the product has all that the next step and the norms need; see krylov_cg.cl, cg_single.

    Where kernels have the sums over all ranks (`Vectors.sums_on_device`) this one computes step lengths itself, and
    begins before the host has seen the norm. Elsewhere the host hands them over, and a piece of the solution is updated
    while the sum is under way.
    """

    flops = 16  # 4 updates, 3 products of the residual's sums, 1 of z·s

    def __init__(self, vectors):
        super().__init__(vectors)
        self.p, self.s = vectors.buffer("p"), vectors.buffer("s")
        kind = StepSums if vectors.comm.size == 1 else BlockSums
        self.sums = kind(vectors, 2) if vectors.sums_on_device else Rows(vectors, 4)
        self._lengths = vectors.arrays.zeros(8)
        self._piece = min(vectors.count, cg_steps.PIECE) if vectors.count >= cg_steps.LEAST else 0
        names = ("cg_single", "krylov_sums", "krylov_total")
        self._kernels = {name: [vectors.kernel(name) for _ in range(2)] for name in names}
        self._solution = vectors.kernel("cg_solution")

    def begin(self, matrix, preconditioner, x) -> None:
        super().begin(matrix, preconditioner, x)
        self.runs_ahead = isinstance(self.sums, StepSums) and matrix.on_device and preconditioner.on_device
        self.sums.clear()
        self.vectors.arrays.fill(self._lengths)
        self._zs = self._zr = self._zr_before = self._pw = 0.0
        kernels = zip(self._kernels["krylov_sums"], self._kernels["krylov_total"], (0, 1), strict=True)
        buffer = self.sums.buffer
        self._sum = [self._bound_sums(*pair, self.z, self.s, 2 * block + ROW_P, buffer) for *pair, block in kernels]
        self._update = [self._bound(now) for now in range(2)] if self.runs_ahead else None

    def first_sums(self) -> np.ndarray:
        """(r·r, z·r, z·z) of the first residual. Collective."""
        self._sum_first(ROW_R, self.sums.buffer)
        self._multiply(0)
        self._read(0)
        return self._totals()

    def advance(self, k: int) -> None:
        """Solution after the step before, then step k but for its sums over ranks."""
        self._update[k % 2]()
        self._end(1 - k % 2)

    def step(self, k: int):
        """Step k; returns p·w, then r·r, z·r and z·z of the residual that it leaves. Collective."""
        now, left = k % 2, 1 - k % 2
        beta = self._zr / self._zr_before if self._zr_before != 0 else 0.0
        pw = self._zs - beta * beta * self._pw
        alpha = step_length(self._zr, pw, self._pw)
        if not self.runs_ahead:
            self._kernels["cg_single"][now](*self._arguments(now, beta, alpha))
            self._end(left)
        self._read(left)
        if self.runs_ahead:
            self.advance(k + 1)
        elif self._piece:
            self._solution(self.vectors.items, 0, self._piece, alpha, self.p, self.x)
        self._pw, self._zr_before = pw, self._zr
        return pw, *self._totals()

    def _bound(self, now: int):
        return self._kernels["cg_single"][now].bound(*self._arguments(now, 0.0, 0.0))

    def _arguments(self, now: int, beta: float, alpha: float) -> tuple:
        """Arguments of the kernel of a step, which computes step lengths from the sums of rows, or is given them."""
        vectors, z, buffer = self.vectors, None if self.is_fused else self.z, self.sums.buffer
        count, given = self.sums.given if self.runs_ahead else (0, buffer)
        numbers = vectors.items, vectors.count, count, now, beta, alpha, self._piece
        return *numbers, given, self._lengths, buffer, self.s, self.diagonal, z, self.r, self.p, self.w, self.x

    def _end(self, block: int) -> None:
        """z = B r where the kernel has not left it, the product with z, and the groups' sums of a block."""
        if not self.is_fused:
            self._precondition(2 * block + ROW_R, self.sums.buffer)
        self._multiply(block)

    def _read(self, block: int) -> None:
        """Begin to copy the sums of a block to the host."""
        if self.runs_ahead:
            self.sums.read_block(block)
        else:
            self.sums.read(2 * block, 2)

    def _multiply(self, block: int) -> None:
        self.matrix.mult(self.z, self.s, self.parts)
        self._sum[block]()
        if self.runs_ahead:
            self.sums.share(block)

    def _totals(self) -> np.ndarray:
        """(r·r, z·r, z·z) of the block that was read, over ranks; z·s stays here. Collective."""
        total = self.sums.wait_block() if self.runs_ahead else self.vectors.over_ranks(self.sums.wait())
        self._zs, self._zr = total[ROW_P, 1], total[ROW_R, 1]
        return total[ROW_R, :3]
