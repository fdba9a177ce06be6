"""PETSc's multigrid (PCMG, GAMG) applied on the device: PETSc sets it up on the host, its levels are mirrored once.

The cycle is that of PETSc's PCMGMCycle (multiplicative, V or W), smoothers are its Chebyshev of the first kind and
Richardson, so that an application gives PETSc's result to rounding, but for the Chebyshev bounds, of which PETSc tells
six digits.
"""

from __future__ import annotations

import numpy as np

from .level_operators import Unsupported, level_operator
from .multigrid_view import cycles, described, distinct_smoothers
from .sell_matrix import SellMatrix, mirrored
from .smoothers import smoother_of
from .vectors import Vectors

MOST_INVERSE = 512  # rows of a coarsest matrix whose inverse is kept on the device, of levels that are joined on a GPU


class MirroredMultigrid:
    """Levels of a PC of type mg or gamg that is set up. Making one is collective; raises Unsupported.

    vectors    those of the finest level
    precision  that of matrices stored on the device, "double" or "single"
    """

    on_device = True

    def __init__(self, pc, vectors: Vectors, precision: str = "double"):
        text = described(pc)
        if "MULTIPLICATIVE" not in text:
            raise Unsupported("multigrid of another type than multiplicative")
        if distinct_smoothers(text):
            raise Unsupported("multigrid whose smoothers before and after the coarse correction differ")
        self.cycles = cycles(text)
        count = pc.getMGLevels()
        self.levels = [_Level(pc, number, vectors, precision) for number in range(1, count)]
        self.coarse = coarse_solver(pc.getMGCoarseSolve(), vectors, precision)
        self._small, self._joined = 0, None
        if vectors.comm.size == 1 and vectors.device.is_gpu:
            self.join(MOST_INVERSE)
        rows = [pc.getMGCoarseSolve().getOperators()[0].getSize()[0], *(level.total for level in self.levels)]
        stored = ", matrices in single precision" if precision == "single" else ""
        self.note = "multigrid on the device, unknowns of its levels " + ", ".join(map(str, rows)) + stored

    def apply(self, x, y) -> None:
        """y = M⁻¹ x. Collective."""
        self._cycle(len(self.levels), x, y, zero=True)

    def _cycle(self, number: int, b, x, zero: bool) -> None:
        """Improve x, which is zero where `zero` says so, on level `number`."""
        if number == 0:
            self.coarse.apply(b, x)
            return
        level = self.levels[number - 1]
        level.smoother.smooth(b, x, zero)
        level.operator.residual(b, x, level.r)
        level.restriction.apply(level.r, level.below_b)
        self._visit(number - 1, level.below_b, level.below_x)
        level.interpolation.add(level.below_x, x)
        level.smoother.smooth(b, x, zero=False)

    def _visit(self, number: int, b, x) -> None:
        """x = what the visits of a level by the one above it make of zero."""
        if self._joined is not None and number == self._small:
            self._joined.apply(b, x)
            return
        for turn in range(1 if number == 0 else self.cycles):
            self._cycle(number, b, x, zero=turn == 0)

    def join(self, most: int) -> None:
        """Replace the levels of at most so many rows, but not the finest, by the matrix that their visits amount to.

        They are linear, and many launches on few numbers. One rank only.
        """
        small = [n for n, level in enumerate(self.levels[:-1], 1) if level.total <= most]
        if not small:
            return
        self._joined, self._small = None, max(small)
        upper = self.levels[self._small]  # whose vectors of the level below serve
        arrays, size = upper.arrays, upper.below_count
        columns = np.empty((size, size))
        for k, unit in enumerate(np.eye(size)):
            arrays.upload(upper.below_b, unit.astype(arrays.real), "coarse level")
            self._visit(self._small, upper.below_b, upper.below_x)
            columns[k] = arrays.to_host(upper.below_x, size, name="coarse level")
        self._joined = SellMatrix.dense(columns.T, arrays)


class _Level:
    """A level above the coarsest: its operator, smoother, transfers, and vectors of the level below."""

    def __init__(self, pc, number: int, fine: Vectors, precision: str):
        arrays, smoother = fine.arrays, pc.getMGSmoother(number)
        mat = smoother.getOperators()[0]
        self.total = mat.getSize()[0]
        vectors = Vectors(arrays, mat.getLocalSize()[0], fine.comm)
        self.operator = level_operator(mat, vectors, precision)
        self.smoother = smoother_of(smoother, self.operator, vectors)
        interpolation = pc.getMGInterpolation(number)
        if "aij" not in interpolation.getType():
            raise Unsupported(f"multigrid whose interpolation is a matrix of type {interpolation.getType()}")
        restriction = pc.getMGRestriction(number)
        transposed = restriction.getSize()[0] == interpolation.getSize()[0]
        if transposed:  # PETSc gives the interpolation itself, and multiplies by its transpose
            restriction = interpolation.copy()
            restriction.transpose()
        self.interpolation = mirrored(interpolation, arrays, precision)
        self.restriction = SellMatrix(restriction, arrays, precision)
        rows, below = interpolation.getLocalSize()
        self.arrays, self.below_count = arrays, below
        self.r = arrays.zeros(max(1, rows))
        self.below_b, self.below_x = arrays.zeros(max(1, below)), arrays.zeros(max(1, below))


# Coarsest level ---------------------------------------------------------------------------------------------------


def coarse_solver(ksp, fine: Vectors, precision: str):
    """What solves on the coarsest level: multigrid again, a small inverse on the device, or PETSc on the host."""
    mat, arrays = ksp.getOperators()[0], fine.arrays
    if ksp.getType() == "preonly":
        if ksp.getPC().getType() in ("mg", "gamg"):
            return MirroredMultigrid(ksp.getPC(), Vectors(arrays, mat.getLocalSize()[0], fine.comm), precision)
        if ksp.comm.size == 1 and mat.getSize()[0] <= MOST_INVERSE:
            return _Inverse(ksp, arrays)
    return _OnHost(ksp, arrays)


class _OnHost:
    """PETSc's own solve, vectors staged."""

    def __init__(self, ksp, arrays):
        self.ksp, self.arrays = ksp, arrays
        self.x, self.b = ksp.getOperators()[0].createVecs()
        self.count = self.b.getLocalSize()

    def apply(self, b, x) -> None:
        values = np.empty(self.count, self.arrays.real)
        self.arrays.download(b, values, "coarse level")
        self.b.setArray(values)
        self.ksp.solve(self.b, self.x)
        with self.x.getBuffer(readonly=True) as found:
            self.arrays.upload(x, np.ascontiguousarray(found, self.arrays.real), "coarse level")


class _Inverse:
    """The inverse of a small matrix, column by column from PETSc's solver: any linear one does."""

    def __init__(self, ksp, arrays):
        x, b = ksp.getOperators()[0].createVecs()
        size = b.getSize()
        columns = np.empty((size, size))
        for k in range(size):
            b.set(0.0)
            b[k] = 1.0
            b.assemble()
            ksp.solve(b, x)
            columns[k] = x.getArray(readonly=True)
        self.matrix = SellMatrix.dense(columns.T, arrays)

    def apply(self, b, x) -> None:
        self.matrix.apply(b, x)
