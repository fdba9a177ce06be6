"""PETSc's multigrid (PCMG, GAMG) applied on the device: PETSc sets it up on the host, its levels are mirrored once.

The cycle is that of PETSc's PCMGMCycle (multiplicative, V or W), smoothers are its Chebyshev of the first kind and
Richardson, so that an application gives PETSc's result to rounding, but for the Chebyshev bounds, of which PETSc tells
six digits.
"""

from __future__ import annotations

import numpy as np

from .level_operators import Unsupported, level_operator
from .multigrid_view import cycles, described, distinct_smoothers
from .sell_matrix import SellMatrix, is_assembled, mirrored
from .smoothers import smoother_of
from .staging import Staged
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
        self._arrays, self._small, self._joined = vectors.arrays, 0, None
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
        size = self.levels[self._small - 1].total
        self._joined = as_matrix(lambda b, x: self._visit(self._small, b, x), size, self._arrays)


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
        if not is_assembled(interpolation):
            raise Unsupported(f"multigrid whose interpolation is a matrix of type {interpolation.getType()}")
        restriction = pc.getMGRestriction(number)
        # PETSc gives the interpolation itself where it multiplies by its transpose
        if restriction.getSize()[0] == interpolation.getSize()[0]:
            restriction = interpolation.copy()
            restriction.transpose()
        self.interpolation = mirrored(interpolation, arrays, precision)
        self.restriction = SellMatrix(restriction, arrays, precision)
        rows, below = interpolation.getLocalSize()
        self.r = arrays.zeros(max(1, rows))
        self.below_b, self.below_x = arrays.zeros(max(1, below)), arrays.zeros(max(1, below))


# Coarsest level ---------------------------------------------------------------------------------------------------


def coarse_solver(ksp, fine: Vectors, precision: str):
    """What solves on the coarsest level: multigrid again, a small inverse on the device, or PETSc on the host."""
    mat = ksp.getOperators()[0]
    vectors = Vectors(fine.arrays, mat.getLocalSize()[0], fine.comm)
    is_linear = ksp.getType() == "preonly"
    if is_linear and ksp.getPC().getType() in ("mg", "gamg"):
        return MirroredMultigrid(ksp.getPC(), vectors, precision)
    on_host = _OnHost(ksp, vectors)
    if is_linear and fine.comm.size == 1 and vectors.count <= MOST_INVERSE:
        return as_matrix(on_host.apply, vectors.count, vectors.arrays)
    return on_host


class _OnHost:
    """PETSc's own solve, vectors staged."""

    def __init__(self, ksp, vectors: Vectors):
        self._ksp, self._staged = ksp, Staged(vectors, ksp.getOperators()[0])

    def apply(self, b, x) -> None:
        """x = solution for b. Collective."""
        self._staged.apply(self._ksp.solve, b, x)


def as_matrix(apply, size: int, arrays) -> SellMatrix:
    """The matrix of a linear map on buffers [size] of one rank, column by column."""
    b, x, columns = arrays.zeros(size), arrays.zeros(size), np.empty((size, size))
    for k, unit in enumerate(np.eye(size)):
        arrays.upload(b, unit.astype(arrays.real), "coarse level")
        apply(b, x)
        columns[k] = arrays.to_host(x, size, name="coarse level")
    return SellMatrix.dense(columns.T, arrays)
