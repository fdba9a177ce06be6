"""PETSc's multigrid (PCMG, GAMG) applied on the device: PETSc sets it up on the host, its levels are mirrored once.

The cycle is that of PETSc's PCMGMCycle (multiplicative, V or W), smoothers are its Chebyshev of the first kind and
Richardson, so that an application gives PETSc's result to rounding, but for the Chebyshev bounds, of which PETSc tells
six digits.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from petsc4py import PETSc

from ..database import any_given
from ..device import AllGather, Recorded, aside, gathered
from ..options import Options
from ..petsc import csr
from ..threads import stable_order
from .dense_matrix import DenseMatrix, Gathered, accurate_inverse, whole_matrix
from .matrices import Unsupported, context_of, level_operator
from .persistent import merged
from .preconditioners import MAKERS, ByPetsc, device_preconditioner
from .sell_matrix import SellMatrix, cached, is_assembled, rows_of, transfer
from .smoothers import cycles, described, distinct_smoothers, smoother_of
from .vectors import Staged, Vectors

MOST_INVERSE = 1536  # rows of a matrix whose inverse is kept on the device
MOST_JOINED = 512  # rows of levels that are joined where their matrix has no inverse


class Multigrid:
    """A multiplicative cycle over levels on the device.

    levels  from the coarsest but one to the finest, each with `total` unknowns, `smoother`, `operator`,
            `interpolation`, `restriction` and buffers `r` and, of the level below, `below_b`, `below_x`
    coarse  what solves on the coarsest level: `apply(b, x)`
    cycles  visits of each level by the one above it
    arrays  device and precision of all levels;   access: VecAccess
    note    for -ksp_view

    vectors, outer: those of the finest level, in the precision of the levels and in that of `apply`.
    """

    on_device = True

    def __init__(self, vectors: Vectors, outer: Vectors | None = None):
        self.levels, self.coarse, self.cycles, self.note = [], None, 1, ""
        self._vectors, self.arrays, self._small, self._joined = vectors, vectors.arrays, 0, None
        self._outer = (outer or vectors).arrays
        self.access = vectors.access
        self.forget()

    def forget(self) -> None:
        """What a cycle launches is other from now on."""
        self._recorded = Recorded(self.arrays.device, merged)

    def apply(self, x, y) -> None:
        """y = M⁻¹ x. Collective."""
        vectors, outer, is_part = self._vectors, self._outer, self._vectors.device.recording is not None
        if is_part and outer is self.arrays:  # the sequence around remembers the launches
            self._apply(x, y)
            return
        # Methods have a pair of vectors for each iteration; launches are recorded for this one.
        given, found = map(vectors.buffer, ("cycle b", "cycle x"))
        outer.convert(x, given, vectors.count, self.arrays)
        if is_part:
            self._apply(given, found)
        else:
            self._recorded.run(self._apply, given, found)
        self.arrays.convert(found, y, vectors.count, outer)

    def _apply(self, x, y) -> None:
        if self.levels:
            self.levels[-1].smoother.begin(x)
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
        if number:
            self.levels[number - 1].smoother.begin(b)
        for turn in range(1 if number == 0 else self.cycles):
            self._cycle(number, b, x, zero=turn == 0)


class MirroredMultigrid(Multigrid):
    """Levels of a PC of type mg or gamg that is set up. Making one is collective; raises Unsupported.

    vectors, outer: see Multigrid
    """

    def __init__(self, pc, vectors: Vectors, outer: Vectors | None = None):
        super().__init__(vectors, outer)
        text = described(pc)
        if "MULTIPLICATIVE" not in text:
            raise Unsupported("multigrid of another type than multiplicative")
        if distinct_smoothers(text):
            raise Unsupported("multigrid whose smoothers before and after the coarse correction differ")
        self.cycles = cycles(text)
        count = pc.getMGLevels()
        if count == 1:
            raise Unsupported("multigrid of one level")
        self.coarse = coarse_solver(pc.getMGCoarseSolve(), vectors)
        whole = isinstance(self.coarse, Gathered)
        self.levels = [_Level(pc, number, vectors, whole and number == 1) for number in range(1, count)]
        if self.levels[0].is_whole_below:
            self.coarse = self.coarse.solver
        if vectors.device.is_gpu:
            self.join(MOST_JOINED if vectors.comm.size == 1 else 0, MOST_INVERSE)
        rows = [pc.getMGCoarseSolve().getOperators()[0].getSize()[0], *(level.total for level in self.levels)]
        where = "" if self._outer is self.arrays else f" in {self.arrays.precision} precision"
        self.note = f"multigrid on the device{where}, unknowns of its levels {', '.join(map(str, rows))}"

    def join(self, joined: int, inverted: int) -> None:
        """Replace small levels, but not the finest, by one matrix: many launches on few numbers. Collective.

        It is the inverse of the matrix of the largest level of at most `inverted` rows, whole on each rank, or, where
        that is singular or none is left, what visits of the largest level of at most `joined` rows amount to, which are
        linear: of one rank only.
        """
        self.forget()
        self._joined, sizes = None, [level.total for level in self.levels[:-1]]
        for most, matrix in ((inverted, self._inverse), (joined, self._visits)):
            self._small = sum(size <= most for size in sizes)  # sizes ascend
            self._joined = matrix(self._small) if self._small else None
            if self._joined is not None:
                return

    def _inverse(self, number: int) -> DenseMatrix | Gathered | None:
        level = self.levels[number - 1]  # which has no entries where it is a level of continuous functions between
        return inverse(level.mat, level.vectors) if is_assembled(level.mat) else None

    def _visits(self, number: int) -> DenseMatrix:
        return as_matrix(lambda b, x: self._visit(number, b, x), self.levels[number - 1].total, self.arrays)


class _Level:
    """A level above the coarsest: its operator, smoother, transfers, and vectors of the level below.

    whole: each rank has all of the level below, and transfers are to be with that if the restriction is the transposed
    interpolation; `is_whole_below`: whether they are.
    """

    def __init__(self, pc, number: int, fine: Vectors, whole: bool):
        arrays, smoother = fine.arrays, pc.getMGSmoother(number)
        self.mat = mat = smoother.getOperators()[0]
        self.total = mat.getSize()[0]
        self.vectors = vectors = fine.of_size(mat.getLocalSize()[0])
        self.operator = level_operator(mat, vectors)
        self.smoother = smoother_of(smoother, self.operator, vectors)
        interpolation = pc.getMGInterpolation(number)
        if not is_assembled(interpolation):
            raise Unsupported(f"multigrid whose interpolation is a matrix of type {interpolation.getType()}")
        restriction = pc.getMGRestriction(number)
        # PETSc gives the interpolation itself where it multiplies by its transpose
        transposed = restriction.getSize()[0] == interpolation.getSize()[0]
        self.is_whole_below = whole and transposed
        if self.is_whole_below:
            self.restriction = whole_transfers(interpolation, arrays)
            self.interpolation = self.restriction.interpolation
        else:
            self.interpolation = transfer(interpolation, arrays)
            self.restriction = transfer(interpolation if transposed else restriction, arrays, transposed)
        below = self.interpolation.num_owned
        self.r = arrays.zeros(max(1, vectors.count))
        self.below_b, self.below_x = arrays.zeros(max(1, below)), arrays.zeros(max(1, below))


def cycle_precision(pc, finest) -> str:
    """The precision of a multigrid's cycles: what the context of the matrix of its finest level says, if there is one;
    of assembled matrices single if -fe_pmat_precision says so."""
    if finest is not None:
        return finest.level_precision
    return "single" if Options.from_petsc(pc.getOptionsPrefix()).pmat_precision == "single" else "double"


def mirrored_multigrid(pc, vectors: Vectors):
    """Multigrid as PETSc has set it up, on the device if it can be; None for other PCs. Collective."""
    if pc.getType() not in ("mg", "gamg"):
        return None
    if pc.getMGCoarseSolve().getOperators()[0].getSize()[0] == 0:  # all vertices are on the boundary
        return ByPetsc(pc, vectors, "multigrid whose coarsest level has no unknowns")
    finest = context_of(pc.getMGSmoother(pc.getMGLevels() - 1).getOperators()[0])
    try:
        return MirroredMultigrid(pc, vectors.in_precision(cycle_precision(pc, finest)), vectors)
    except Unsupported as why:
        return ByPetsc(pc, vectors, str(why))


MAKERS.append(mirrored_multigrid)


# Coarsest level ---------------------------------------------------------------------------------------------------


def coarse_solver(ksp, fine: Vectors):
    """What solves on the coarsest level: multigrid again, a small inverse on the device, or PETSc on the host."""
    mat = ksp.getOperators()[0]
    vectors = fine.of_size(mat.getLocalSize()[0])
    is_linear = ksp.getType() == "preonly"
    if is_linear and ksp.getPC().getType() in ("mg", "gamg"):
        return MirroredMultigrid(ksp.getPC(), vectors)
    if is_linear and ksp.getPC().getType() == "python":
        made = device_preconditioner(ksp.getPC(), vectors)
        if made.on_device:
            return made
    on_host = _on_host(ksp, vectors)
    found = inverse(mat, vectors) if is_linear and _is_exact(ksp.getPC()) and mat.getSize()[0] <= MOST_INVERSE else None
    if found is None and is_linear and fine.comm.size == 1 and vectors.count <= MOST_JOINED:
        found = as_matrix(on_host.apply, vectors.count, vectors.arrays)
    return found or on_host


def _is_exact(pc) -> bool:
    """True if a PC solves with its matrix, by factors that the user has not changed."""
    redundant = pc.getType() == "redundant" and not any_given(pc.getOptionsPrefix() or "", "redundant_")
    return redundant or pc.getType() in ("lu", "cholesky")


def _on_host(ksp, vectors: Vectors):
    """`apply(b, x)` by PETSc's own solve, vectors staged. Collective, as making it is."""
    staged = Staged(vectors, ksp.getOperators()[0])
    return SimpleNamespace(apply=lambda b, x: aside(vectors.device, lambda: staged.apply(ksp.solve, b, x)))


def inverse(mat, vectors: Vectors) -> DenseMatrix | Gathered | None:
    """The inverse of an assembled matrix, whole on each rank; None where it is singular or nearly so. Collective."""
    found = accurate_inverse(whole_matrix(mat))
    if found is None:
        return None
    made = DenseMatrix(found, vectors.arrays)
    return made if vectors.comm.size == 1 else Gathered(made, vectors)


def as_matrix(apply, size: int, arrays) -> DenseMatrix:
    """The matrix of a linear map on buffers [size] of one rank, column by column."""
    b, x, columns = arrays.zeros(size), arrays.zeros(size), np.empty((size, size))
    for k, unit in enumerate(np.eye(size)):
        arrays.upload(b, unit.astype(arrays.real), "coarse level")
        apply(b, x)
        columns[k] = arrays.to_host(x, size, name="coarse level")
    return DenseMatrix(columns.T, arrays)


class WholeTransfers:
    """Of an assembled interpolation [fine, coarse] with rows on several ranks, and its transpose. Collective to make.

    interpolation: `add(x, y)`, buffers [coarse of all ranks], [fine of this rank].   gather: AllGather
    """

    def __init__(self, mat: PETSc.Mat, arrays):
        starts, columns, values = rows_of(mat)
        count, total = len(starts) - 1, mat.getSize()[1]
        is_touched = np.zeros(total, bool)
        is_touched[columns] = True
        touched, local = np.flatnonzero(is_touched), (np.cumsum(is_touched) - 1).take(columns)
        rows = _matrix(count, total, starts, columns, values)
        parts = _matrix(count, len(touched), starts, local, values).transpose(PETSc.Mat())
        self.interpolation = SellMatrix(rows, arrays)
        self._restriction = SellMatrix(parts, arrays)
        comm = mat.comm.tompi4py()
        self.gather = AllGather(comm, len(touched), arrays, to_all=False)
        places = gathered(comm, touched)
        ends = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=total))])
        order = stable_order(places.astype(np.int32))
        self._sum = SellMatrix(_matrix(total, len(places), ends, order, np.ones(len(places))), arrays)
        self._part, self._parts = (arrays.zeros(max(1, size)) for size in (len(touched), len(places)))

    def apply(self, r, b) -> None:
        """b [coarse of all ranks] = restricted r [fine of this rank]. Collective."""
        self._restriction.apply(r, self._part)
        self.gather.gather(self._part, self._parts)
        self._sum.apply(self._parts, b)


def whole_transfers(mat: PETSc.Mat, arrays) -> WholeTransfers:
    """The WholeTransfers of an interpolation with its present values, shared by all callers. Collective."""
    return cached(mat, ("transfers", id(arrays.device), arrays.precision), lambda: WholeTransfers(mat, arrays))


def _matrix(rows: int, columns: int, starts, numbers, values) -> PETSc.Mat:
    """AIJ of this rank alone."""
    return csr.aij(((rows, rows), (columns, columns)), 1, starts, numbers, PETSc.COMM_SELF, values)
