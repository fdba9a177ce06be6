"""Buffers and launches of conjugate gradients, on one rank and over several."""

from __future__ import annotations

import numpy as np

from .vectors import BlockSums, Rows, StepSums

UPDATE_X, UPDATE_P = 1, 2  # as in krylov_cg.cl
ROW_P, ROW_R = 0, 1
LEAST = 1 << 22  # unknowns of a rank from which updates of the solution take longer than a sum over ranks
PIECE = 1 << 23  # unknowns whose update takes a large GPU as long as a sum over ranks


def steps_of(vectors) -> Steps:
    """The steps for vectors whose sums over ranks kernels have, or the host."""
    return DeviceSteps(vectors) if vectors.sums_on_device else HostSteps(vectors)


class Steps:
    """What both have in common; see krylov_cg.cl for the sums.

    With a diagonal preconditioner `r` holds z = B r, from which r is found again. Products that can sum p·w themselves.
    runs_ahead: whether launches of the next step need not wait for the host.
    can_split: whether `residual` and `rest` can be called instead of `step`, to check the norm between them.
    flops: of a step for an unknown.
    """

    runs_ahead = can_split = False
    flops = 14  # 3 updates, 3 products of the residual's sums, 1 of p·w

    def __init__(self, vectors):
        self.vectors = vectors
        self.r, self.w = vectors.buffer("r"), vectors.buffer("w")
        self._first = vectors.kernel("cg_first")

    def begin(self, matrix, preconditioner, x) -> None:
        """A solve begins."""
        self.matrix, self.preconditioner, self.x = matrix, preconditioner, x
        self.is_fused = preconditioner.is_diagonal
        self.z = self.r if self.is_fused else self.vectors.buffer("z")
        self.diagonal = preconditioner.diagonal if self.is_fused else None
        self.num_parts = matrix.num_parts()
        self.parts = self.vectors.parts(self.num_parts)

    def finish(self) -> None:
        """The solution is that of the last step."""

    def _sum_first(self, row: int, sums) -> None:
        """(r·r, z·r, z·z) of the first residual."""
        if self.is_fused:
            self._first(self.vectors.items, self.vectors.count, self.diagonal, self.r, row, sums)
        else:
            self._precondition(row, sums)

    def _precondition(self, row: int, sums) -> None:
        self.preconditioner.apply(self.r, self.z)
        self.vectors.run("sums", self.z, self.r, row, sums)

    def _bound_sums(self, kernel, total, p, product, row: int, sums):
        """The launch that sums p·product, or its parts."""
        vectors = self.vectors
        if self.parts is not None:
            return total.bound(vectors.items, self.num_parts, self.parts, row, sums)
        return kernel.bound(vectors.items, vectors.count, p, product, row, sums)


class DeviceSteps(Steps):
    """Kernels compute step lengths from sums over all ranks, so that the next product begins before the host has seen
    the norm of the residual."""

    def __init__(self, vectors):
        super().__init__(vectors)
        self.p = vectors.buffer("p")
        self.sums = (StepSums if vectors.comm.size == 1 else BlockSums)(vectors, 2)
        names = dict.fromkeys(("direct", "advance", "turn"), "cg_direction")
        names |= {"residual": "cg_residual", "sums": "krylov_sums"}
        self._kernels = {what: [vectors.kernel(name) for _ in range(2)] for what, name in names.items()}
        self._total = [vectors.kernel("krylov_total") for _ in range(2)]

    def begin(self, matrix, preconditioner, x) -> None:
        super().begin(matrix, preconditioner, x)
        self.runs_ahead = matrix.on_device and preconditioner.on_device
        self.can_split = self.runs_ahead and not self.is_fused
        self._left: int | None = None  # the step whose update of the solution is not launched
        self.sums.begin()
        self._launch = {(what, now): self._bound(what, now) for what in self._kernels for now in range(2)}

    def _bound(self, what: str, now: int):
        """A launch of even or odd steps, whose arguments stay during a solve."""
        vectors, (count, given), kernel = self.vectors, self.sums.given, self._kernels[what][now]
        if what == "sums":
            where = self.sums.row(now, ROW_P), self.sums.buffer
            return self._bound_sums(kernel, self._total[now], self.p, self.w, *where)
        if what == "residual":
            arguments = (count, now, 0.0, given, self.sums.buffer, self.w, self.diagonal, self.r)
        else:
            how = {"advance": UPDATE_X, "turn": UPDATE_P}.get(what, UPDATE_P | (UPDATE_X if self.runs_ahead else 0))
            arguments = (count, now, how, given, self.z, self.p, self.x)
        return kernel.bound(vectors.items, vectors.count, *arguments)

    def first_sums(self) -> np.ndarray:
        """(r·r, z·r, z·z) of the first residual. Collective."""
        self._sum_first(self.sums.row(1, ROW_R), self.sums.buffer)
        self._read(1)
        return self.sums.wait_block()[ROW_R, :3]

    def advance(self, k: int, what: str = "direct") -> None:
        """Solution after the step before (not by "turn"), direction of step k, product and p·w."""
        self._launch[what, k % 2]()
        self.matrix.mult(self.p, self.w, self.parts)
        self._launch["sums", k % 2]()
        self.sums.share(k % 2)

    def step(self, k: int):
        """Step k; returns p·w, then r·r, z·r and z·z of the residual that it leaves. Collective."""
        now = k % 2
        if self.runs_ahead:
            self._launch["residual", now]()
            sums = self._begin_next(k, "direct")
            return sums[ROW_P, 1], *sums[ROW_R, :3]
        self.advance(k)
        self._launch["residual", now]()
        self._precondition_residual(now)
        self._read(now)
        self._launch["advance", 1 - now]()
        sums = self.sums.wait_block()
        return sums[ROW_P, 1], *sums[ROW_R, :3]

    def residual(self, k: int):
        """p·w of step k, and r·r three times, of the residual that it leaves."""
        now, self._left = k % 2, k
        self._launch["residual", now]()
        self._read(now)
        sums = self.sums.wait_block()
        return sums[ROW_P, 1], *sums[ROW_R, :3]

    def rest(self, k: int):
        """z·r and z·z of the residual of `residual`; step k + 1 begins."""
        what = "turn" if self._left is None else "direct"  # `finish` may have been called for a monitor
        self._left = None
        return self._begin_next(k, what)[ROW_R, 1:3]

    def _begin_next(self, k: int, what: str) -> np.ndarray:
        """Sums [row, 4] of step k, after its residual; step k + 1 begins before the host has them."""
        now = k % 2
        self._precondition_residual(now)
        self._read(now)
        self.advance(k + 1, what)
        return self.sums.wait_block()

    def _read(self, block: int) -> None:
        """Begin to copy a block of sums, over ranks from now on, to the host."""
        self.sums.share(block)
        self.sums.read_block(block)

    def _precondition_residual(self, now: int) -> None:
        if not self.is_fused:
            self._precondition(self.sums.row(now, ROW_R), self.sums.buffer)

    def finish(self) -> None:
        if self._left is not None:
            self._launch["advance", 1 - self._left % 2]()
            self._left = None


class HostSteps(Steps):
    """The host adds up the sums of the ranks, and hands step lengths to kernels. Meanwhile the device updates the
    solution: a piece of it after the residual, a second one after the next product, for which directions take turns in
    two buffers; the rest together with the direction, which needs fewer bytes."""

    def __init__(self, vectors):
        super().__init__(vectors)
        self.sums = Rows(vectors, 1)
        self.p = vectors.buffer("p"), vectors.buffer("p, odd steps")
        count = vectors.count
        self._first_end = min(count // 2, PIECE) if count >= LEAST else count
        self._second_end = min(count, 2 * self._first_end)
        names = ("cg_residual", "krylov_sums", "krylov_total", "cg_next", "cg_solution")
        self._kernels = {name: [vectors.kernel(name) for _ in range(2)] for name in names}

    def begin(self, matrix, preconditioner, x) -> None:
        super().begin(matrix, preconditioner, x)
        self._left: tuple | None = None  # of the solution's update: from, to, step length and direction
        self._pw_before = self._zr_before = self._zr = 0.0
        kernels = self._kernels["krylov_sums"], self._kernels["krylov_total"]
        each, where = zip(*kernels, self.p, strict=True), (self.w, 0, self.sums.buffer)
        self._sum = [self._bound_sums(kernel, total, p, *where) for kernel, total, p in each]

    def first_sums(self) -> np.ndarray:
        """(r·r, z·r, z·z) of the first residual. Collective."""
        self._sum_first(0, self.sums.buffer)
        found = self.sums.over_ranks(0, 1)[0, :3]
        self._zr = found[1]
        return found

    def step(self, k: int):
        """Step k; returns p·w, then r·r, z·r and z·z of the residual that it leaves. Collective."""
        now = k % 2
        self._direct(now)
        self.matrix.mult(self.p[now], self.w, self.parts)
        self._sum[now]()
        pw = self.sums.over_ranks(0, 1, meanwhile=self.finish)[0, 1]
        alpha = step_length(self._zr, pw, self._pw_before)
        self._reduce_residual(now, alpha)
        rr, zr, zz = self.sums.over_ranks(0, 1, meanwhile=lambda: self._begin_update(alpha, now))[0, :3]
        self._pw_before, self._zr_before, self._zr = pw, self._zr, zr
        return pw, rr, zr, zz

    def _direct(self, now: int) -> None:
        """The direction, and the solution's last piece."""
        beta = self._zr / self._zr_before if self._zr_before != 0 else 0.0
        alpha, start, before = 0.0, self.vectors.count, self.p[1 - now] if beta != 0 else None
        if self._left is not None:
            first, last, alpha, before = self._left
            start = max(first, min(self._second_end, last))
            self._left = first, start, alpha, before
        arguments = (beta, alpha, start, self.z, before, self.p[now], self.x)
        self._run("cg_next", now, self.vectors.count, *arguments)

    def _reduce_residual(self, now: int, alpha: float) -> None:
        arguments = (0, now, alpha, None, self.sums.buffer, self.w, self.diagonal, self.r)
        self._run("cg_residual", now, self.vectors.count, *arguments)
        if not self.is_fused:
            self._precondition(0, self.sums.buffer)

    def _begin_update(self, alpha: float, now: int) -> None:
        """x += alpha p, its first piece."""
        self._left = 0, self.vectors.count, alpha, self.p[now]
        self._update(0, self._first_end)

    def finish(self) -> None:
        if self._left is not None:
            self._update(1, self._left[1])

    def _update(self, kernel: int, end: int) -> None:
        """What is left of the solution's update, as far as `end`."""
        first, last, alpha, p = self._left
        if end > first:
            self._run("cg_solution", kernel, first, end - first, alpha, p, self.x)
        self._left = (end, last, alpha, p) if end < last else None

    def _run(self, name: str, kernel: int, *arguments) -> None:
        self._kernels[name][kernel](self.vectors.items, *arguments)


def step_length(zr: float, pw: float, pw_before: float) -> float:
    """zr / pw; 0 where PETSc's CG stops: p·w is zero, not finite or of another sign than before."""
    return 0.0 if pw == 0 or not np.isfinite(pw) or pw * np.sign(pw_before) < 0 else zr / pw
