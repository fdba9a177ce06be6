"""Preconditioned conjugate gradients on the device, step for step as PETSc's KSPCG (Hestenes and Stiefel 1952), on one
rank, over several, and with one sum over ranks a step (Chronopoulos and Gear 1989)."""

from __future__ import annotations

import numpy as np

from ..database import given_truth, is_given
from .solver import ConvergenceMonitor, DeviceSolver, Reason
from .vectors import step_sums

UPDATE_X, UPDATE_P = 1, 2  # as in krylov_cg.cl
ROW_P, ROW_R = 0, 1
LEAST = 1 << 22  # unknowns of a rank from which updates of vectors take longer than a sum over ranks


class Steps:
    """What the ways below have in common; see krylov_cg.cl for the sums.

    With a diagonal preconditioner `r` holds z = B r, from which r is found again. Products that can sum p·w themselves.
    runs_ahead: whether launches of the next step need not wait for the host.
    can_split: whether `residual` and `rest` can be called instead of `step`, to check the norm between them.
    flops: of a step for an unknown.
    """

    can_split = False
    flops = 14  # 3 updates, 3 products of the residual's sums, 1 of p·w

    def __init__(self, vectors):
        self.vectors = vectors
        self.r, self.w = vectors.buffer("r"), vectors.buffer("w")

    def begin(self, matrix, preconditioner, x) -> None:
        """A solve begins."""
        self.matrix, self.preconditioner, self.x = matrix, preconditioner, x
        self.is_fused = preconditioner.is_diagonal
        self.z = self.r if self.is_fused else self.vectors.buffer("z")
        self.diagonal = preconditioner.diagonal if self.is_fused else None
        self.num_parts = matrix.num_parts()
        self.parts = self.vectors.parts(self.num_parts)
        self.runs_ahead = matrix.on_device and preconditioner.on_device and not self.sums.waits

    def finish(self) -> None:
        """The solution is that of the last step."""

    def _sum_first(self, row: int, sums) -> None:
        """(r·r, z·r, z·z) of the first residual."""
        z = self.w if self.is_fused else self.z  # w holds nothing yet
        self._precondition(z, row, sums)
        if self.is_fused:
            self.vectors.copy(z, self.r)

    def _precondition(self, z, row: int, sums) -> None:
        self.preconditioner.apply(self.r, z)
        self.vectors.run("sums", z, self.r, row, sums)

    def _bound_sums(self, kernel, total, p, product, row: int, sums):
        """The launch that sums p·product, or its parts."""
        vectors = self.vectors
        if self.parts is not None:
            return total.bound(vectors.items, self.num_parts, self.parts, row, sums)
        return kernel.bound(vectors.items, vectors.count, p, product, row, sums)


class PairSteps(Steps):
    """Steps with two sums over ranks. Where these do not pass through the host, the next product begins before it has
    seen the norm of the residual; elsewhere the solution is updated while the second sum is under way."""

    def __init__(self, vectors):
        super().__init__(vectors)
        self.p = vectors.buffer("p")
        self.sums = step_sums(vectors, 2)
        names = dict.fromkeys(("direct", "advance", "turn"), "cg_direction")
        names |= {"residual": "cg_residual", "sums": "krylov_sums"}
        self._kernels = {what: [vectors.kernel(name) for _ in range(2)] for what, name in names.items()}
        self._total = [vectors.kernel("krylov_total") for _ in range(2)]

    def begin(self, matrix, preconditioner, x) -> None:
        super().begin(matrix, preconditioner, x)
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
            arguments = (count, now, given, self.sums.buffer, self.w, self.diagonal, self.r)
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
        if not self.sums.waits:
            self.sums.share(block)
        self.sums.read_block(block)

    def _precondition_residual(self, now: int) -> None:
        if not self.is_fused:
            self._precondition(self.z, self.sums.row(now, ROW_R), self.sums.buffer)

    def finish(self) -> None:
        if self._left is not None:
            self._launch["advance", 1 - self._left % 2]()
            self._left = None


class SingleSteps(Steps):
    """Steps whose w = A p and p·w follow from s = A z and z·s by recursion: one kernel updates all vectors, and one sum
    over ranks after the product has all that the next step and the norms need; see krylov_cg.cl, cg_single. It updates
    the solution by the step before.
    """

    flops = 16  # 4 updates, 3 products of the residual's sums, 1 of z·s

    def __init__(self, vectors):
        super().__init__(vectors)
        self.p, self.s = vectors.buffer("p"), vectors.buffer("s")
        self.sums, self._lengths = step_sums(vectors, 2), vectors.arrays.zeros(8)
        names = ("cg_single", "krylov_sums", "krylov_total")
        self._kernels = {name: [vectors.kernel(name) for _ in range(2)] for name in names}

    def begin(self, matrix, preconditioner, x) -> None:
        super().begin(matrix, preconditioner, x)
        self.sums.begin()
        self.vectors.arrays.fill(self._lengths)
        self._zs = self._zr = self._zr_before = self._pw = 0.0
        kernels = zip(self._kernels["krylov_sums"], self._kernels["krylov_total"], (0, 1), strict=True)
        buffer = self.sums.buffer
        self._sum = [self._bound_sums(*pair, self.z, self.s, 2 * block + ROW_P, buffer) for *pair, block in kernels]
        self._update = [self._bound(now) for now in range(2)]

    def first_sums(self) -> np.ndarray:
        """(r·r, z·r, z·z) of the first residual. Collective."""
        self._sum_first(ROW_R, self.sums.buffer)
        self._multiply(0)
        self.sums.read_block(0)
        return self._totals()

    def advance(self, k: int) -> None:
        """Solution after the step before, then step k but for its sums over ranks."""
        self._update[k % 2]()
        self._end(1 - k % 2)

    def step(self, k: int):
        """Step k; returns p·w, then r·r, z·r and z·z of the residual that it leaves. Collective."""
        left = 1 - k % 2
        beta = self._zr / self._zr_before if self._zr_before != 0 else 0.0
        self._pw, self._zr_before = self._zs - beta * beta * self._pw, self._zr
        if self.runs_ahead:
            self.sums.read_block(left)
            self.advance(k + 1)
            return self._pw, *self._totals()
        if k == 0:
            self._update[0]()
        self._end(left)
        self.sums.read_block(left)
        totals = self._totals()
        self._update[left]()
        return self._pw, *totals

    def _bound(self, now: int):
        """The launch of even or odd steps, whose arguments stay during a solve."""
        vectors, (count, given), kernel = self.vectors, self.sums.given, self._kernels["cg_single"][now]
        z, sums = None if self.is_fused else self.z, (given, self._lengths, self.sums.buffer)
        others = self.s, self.diagonal, z, self.r, self.p, self.w, self.x
        return kernel.bound(vectors.items, vectors.count, count, now, *sums, *others)

    def _end(self, block: int) -> None:
        """z = B r where the kernel has not left it, the product with z, and the groups' sums of a block."""
        if not self.is_fused:
            self._precondition(self.z, 2 * block + ROW_R, self.sums.buffer)
        self._multiply(block)

    def _multiply(self, block: int) -> None:
        self.matrix.mult(self.z, self.s, self.parts)
        self._sum[block]()
        if not self.sums.waits:
            self.sums.share(block)

    def _totals(self) -> np.ndarray:
        """(r·r, z·r, z·z) of the block that was read, over ranks; z·s stays here. Collective."""
        total = self.sums.wait_block()
        self._zs, self._zr = total[ROW_P, 1], total[ROW_R, 1]
        return total[ROW_R, :3]


class CG(DeviceSolver):
    """Conjugate gradients: -ksp_type python -ksp_python_type petsc_hdg.CG.

    With a diagonal preconditioner one kernel updates the residual and sums what all norms need, another one solution
    and direction. Kernels compute step lengths from the sums over all ranks. Where these do not pass through the host,
    the next product begins before it has seen the norm of the residual. A solve that ends by the norm of the residual
    does not apply other preconditioners to the last residual.

    Option: -ksp_cg_single_reduction, one sum over ranks a step instead of two, and two applications of the
    preconditioner more; by default on several ranks with a preconditioner of few launches, whose kernels have the
    sums, or with so few unknowns that a sum takes longer than what it saves.
    """

    petsc_type = "cg"
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
        few = self.matrix.mat.getSize()[0] < LEAST * ranks
        return ranks > 1 and (self.preconditioner.is_short if self.vectors.has_peers else few)

    def view(self, ksp, viewer) -> None:
        super().view(ksp, viewer)
        if self.vectors is not None and self._sums_once():
            viewer.printfASCII("    one sum over ranks an iteration\n")

    def iterate(self, monitor: ConvergenceMonitor, b, x, guessed: bool) -> None:
        steps = self.kept(SingleSteps if self._sums_once() else PairSteps)
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
