"""Algebraic multigrid by smoothed aggregation (Vanek, Mandel and Brezina 1996), set up and applied on the device."""

from __future__ import annotations

import weakref
from functools import partial
from types import SimpleNamespace

import numpy as np
from mpi4py import MPI
from petsc4py import PETSc

from ..database import given_numbers
from ..device import gathered
from ..errors import SolveError, collectively
from ..operators.block_rows import BlockRows, Collected
from ..operators.spectrum import skewness
from ..petsc.lifetimes import Context
from ..stages import event
from .aggregation import Aggregates, Coarsening
from .arnoldi import Arnoldi
from .dense_matrix import DenseMatrix, Gathered, accurate_inverse, gathered_rows, pseudoinverse
from .level_bounds import LOWER, STEPS, UPPER
from .matrices import arrays_of
from .multigrid import MOST_INVERSE, Multigrid, cycle_precision
from .preconditioners import MAKERS, InPrecision
from .sell_matrix import SellMatrix, cache_of, is_assembled, rows_of
from .smoothers import Smoother, chebyshev_steps, polynomial_steps
from .vectors import Vectors

DAMPING = 1.4  # of the prolongator's smoother, over the largest eigenvalue: GAMG's; 1 of a nonsymmetric matrix
SMALLEST_FALL = 0.7  # unknowns of a level over those of the finer one, above which coarsening ends
STRONG = 0.4  # coupling over the strongest one of its row or column up to which it is weak
CONSTANT = 1e-3  # smallest over largest absolute value of a near-null vector, above which each row is a node
SKEW = 0.01  # |A - Aᵀ| over |A|, which grows from level to level, from which levels are those of a nonsymmetric matrix
CYCLE = 0.5, 1.05  # bounds of eigenvalues of a cycle times the matrix, between which several cycles leave least
LEVELS = "levels"  # of a matrix, in what is kept with it
LONG = 10  # Chebyshev steps in the place of a factorization where a large coarsest level stays


class AMG(Context):
    """A PC for AIJ and BAIJ matrices: -pc_type python -pc_python_type petsc_hdg.AMG.

    A cycle is symmetric where the matrix is, so that conjugate gradients take it. A nonsymmetric matrix has another
    restriction, and twice as many smoothing steps, by a polynomial in the place of Chebyshev's. Near-null vectors are
    those of the matrix, else constants of each unknown of its blocks. Patterns and aggregates are kept while the matrix
    has the same pattern and its strong couplings stay so; all values are computed again. On several ranks each rank has
    all levels, and the right-hand side is gathered for each application, or by a finer level's restriction.

    -pc_amg_threshold 0.02         |a_ij| / √(a_ii a_jj) up to which a coupling is weak
    -pc_amg_strong 0.4             coupling over the strongest one of its row or column up to which it is weak, where
                                   few stay strong, as in stretched cells
    -pc_amg_coarse_eq_limit 300    unknowns of the coarsest level, which is inverted
    -pc_amg_smooths 2              Chebyshev steps with Jacobi before and after the coarse correction
    -pc_amg_cycles 1               cycles for a right-hand side, combined by Chebyshev's iteration where the matrix is
                                   symmetric; 2 in two levels of cg_gpu and hdg_gpu
    """

    def __init__(self):
        self.threshold, self.strong, self.limit, self.smooths, self.cycles = 0.02, STRONG, 300, 2, 1
        self.finest = None  # context of the shell matrix of a finer level, if any: it has a say in the precision
        self.shares = False  # whether the matrix keeps levels for the next PC with it, as of another run in time
        self.cycle: _Cycle | None = None
        self.solver: _Cycle | Gathered | None = None  # what applies the cycle to this rank's numbers, in its precision

    def reset(self, pc) -> None:
        """Forget levels and aggregates."""
        self.cycle = self.solver = None

    def forget(self, pc) -> None:
        """Discard the levels and aggregates, those that the matrix keeps too. The next set-up makes new ones."""
        cache_of(pc.getOperators()[1]).pop(LEVELS, None)
        self.reset(pc)

    def settings(self, pc) -> tuple:
        """Settings that the levels depend on: those of the options, and at the end the precision of the cycle."""
        precision = cycle_precision(pc, self.finest)
        return self.threshold, self.strong, self.limit, self.smooths, self.cycles, precision

    def setFromOptions(self, pc) -> None:
        """Read the options. Raises OptionError."""
        prefix = pc.getOptionsPrefix() or ""
        (self.threshold,) = given_numbers(prefix, "pc_amg_threshold", (self.threshold,), least=0)
        (self.strong,) = given_numbers(prefix, "pc_amg_strong", (self.strong,), least=0)
        (self.limit,) = given_numbers(prefix, "pc_amg_coarse_eq_limit", (self.limit,), least=1)
        (self.smooths,) = given_numbers(prefix, "pc_amg_smooths", (self.smooths,), least=1)
        (self.cycles,) = given_numbers(prefix, "pc_amg_cycles", (self.cycles,), least=1)

    def setUp(self, pc) -> None:
        """Compute all levels of the matrix as it is now. Collective."""
        mat, comm = pc.getOperators()[1], pc.comm.tompi4py()
        with collectively(comm):
            if not is_assembled(mat):
                raise SolveError(
                    f"petsc_hdg.AMG was given a matrix of type {mat.getType()}, it takes an assembled one: use aij"
                )
        with event("AmgSetUp"):
            sums, symmetric = mat.getAttr("petsc_hdg_rows"), _is_symmetric(mat)
            if sums is not None and sums.filled != mat.stateGet():  # it has been changed since
                sums = None
            rows = rows_of(mat) if sums is None else None
            kept, settings = cache_of(mat) if self.shares else {}, self.settings(pc)
            cycle = kept.get(LEVELS, self.cycle)
            fits = cycle is not None and cycle.fits(mat, rows, sums, symmetric, settings)
            if not comm.allreduce(fits, MPI.LAND):
                vectors = Vectors(arrays_of(pc, mat.createVecLeft()), mat.getLocalSize()[0], comm)
                cycle = _Cycle(self, mat, rows, sums, symmetric, vectors, settings)
            if cycle is not self.cycle:
                kept[LEVELS] = self.cycle = self.solver = cycle
                if comm.size > 1:
                    self.solver = Gathered(cycle, cycle.vectors.in_precision(settings[-1]))
            self.cycle.update(rows)

    def prepare(self, pc) -> None:
        """Compute levels where -pc_python_type has replaced the context of a PC that was set up. Collective."""
        if self.cycle is None:
            self.setUp(pc)

    def apply(self, pc, x, y) -> None:
        """y = a cycle from zero for x. Collective."""
        self.prepare(pc)
        access = self.cycle.access
        with access.read(x) as given, access.write(y) as out:
            self.solver.apply(given, out)

    def view(self, pc, viewer) -> None:
        """Say how many unknowns levels have."""
        note = "not set up yet" if self.solver is None else self.solver.note
        viewer.printfASCII(f"  petsc_hdg.AMG: {note}\n")


# What levels own refers to them weakly: a circle would keep their memory on the device until Python looks for circles.
class _Cycle(Multigrid):
    """The levels of a matrix, all on each rank; patterns and aggregates come with the first values of `update`.

    rows: starts, columns and values of this rank's rows; None where `sums`, MatrixRows, has them on the device.
    vectors: those of this rank's rows in the precision of the set-up; `apply` works on buffers of all rows in that of
    the cycle, `access` has these of PETSc's vectors. Making one and `update` are collective.
    """

    def __init__(self, choice: AMG, mat, rows: tuple | None, sums, symmetric: bool, vectors: Vectors, settings: tuple):
        self.vectors, self._choice, self._symmetric, self._settings = vectors, choice, symmetric, settings
        comm, arrays = vectors.comm, vectors.arrays
        self._modes = gathered(comm, _near_null_vectors(mat))
        self._block_size = mat.getBlockSize()
        self._pattern, self._sums = None, sums
        if sums is None:
            self._pattern = tuple(map(np.copy, rows[:2]))
            starts, columns = gathered_rows(comm, *rows[:2])
            self._numbers = BlockRows(arrays, (1, 1), len(starts) - 1, starts, arrays.to_device(columns, "matrices"))
        else:
            self._numbers = sums.whole
        self._finest = Collected(self._numbers, _size_of_nodes(mat, self._modes))
        super().__init__(Vectors(arrays, mat.getSize()[0], MPI.COMM_SELF, settings[-1]))

    def fits(self, mat, rows: tuple | None, sums, symmetric: bool, settings: tuple) -> bool:
        """Return True if this rank's rows have the pattern of these levels, which have the settings. Not collective."""
        alike = mat.getBlockSize() == self._block_size and symmetric == self._symmetric and sums is self._sums
        alike = alike and settings == self._settings
        return alike and (sums is not None or all(map(np.array_equal, self._pattern, rows[:2])))

    def update(self, rows: tuple | None) -> None:
        """Levels of the values of rows."""
        if self._sums is None:
            arrays = self.vectors.arrays
            values = np.ascontiguousarray(gathered(self.vectors.comm, rows[2]), arrays.real)
            arrays.upload(self._numbers.values, values, "matrices")
        self._finest.update()
        if not self.levels or not all(level.update(keep=True) for level in reversed(self.levels)):
            self._build()
        last = self.levels[0].coarsening.matrix if self.levels else self._finest.result
        self.coarse = self._coarsest(last)
        self._repeated = self._repeats() if self.levels and self._choice.cycles > 1 else None
        self.forget()
        sizes = [last.num_rows * last.shape[0], *(level.total for level in self.levels)]
        kind = "" if self._symmetric else " of a nonsymmetric matrix"
        where = "on the device" if self.vectors.comm.size == 1 else "whole on the device of each rank"
        self.note = f"smoothed aggregation{kind} {where}, unknowns of its levels {', '.join(map(str, sizes))}"

    def _repeats(self) -> Smoother:
        """Cycles as steps of an iteration."""
        once = partial(Multigrid._apply, weakref.proxy(self))
        count, cycle = int(self._choice.cycles), SimpleNamespace(apply=once)
        steps = chebyshev_steps(*CYCLE, count) if self._symmetric else count * [(0.0, 1.0, 1.0)]
        return Smoother(self.levels[-1].operator, cycle, self._vectors, steps)

    def _apply(self, x, y) -> None:
        if self._repeated is None:
            super()._apply(x, y)
        else:
            self._repeated.smooth(x, y, zero=True)

    def _build(self) -> None:
        matrix, modes = self._finest.result, self.vectors.arrays.to_device(self._modes, "near-null vectors")
        self.levels, count = [], self._modes.shape[1]
        part = self._choice.strong if matrix.shape == (1, 1) and count == 1 else 0.0
        while matrix.num_rows * matrix.shape[0] > self._choice.limit:
            aggregates = Aggregates(matrix, self._choice.threshold, part, self._symmetric)
            part *= aggregates.is_directed
            if not 0 < aggregates.count * count <= SMALLEST_FALL * matrix.num_rows * matrix.shape[0]:
                return
            coarsening = Coarsening(matrix, aggregates, modes, count, self._symmetric)
            level = _Level(matrix, aggregates, coarsening, self._vectors, self._choice.smooths)
            level.update(keep=False)
            self.levels.insert(0, level)
            matrix, modes = coarsening.matrix, coarsening.modes

    def _coarsest(self, matrix: BlockRows):
        """The inverse of the matrix, that on its range where it is singular, or smoothing where it is too large."""
        count = matrix.num_rows * matrix.shape[0]
        if count <= max(self._choice.limit, MOST_INVERSE):
            dense = matrix.dense()
            inverse = accurate_inverse(dense)
            if inverse is None:
                inverse = pseudoinverse(dense, self._symmetric)
            return DenseMatrix(inverse, self.arrays)
        operator, vectors = SellMatrix.of_blocks(matrix, self.arrays), self._vectors.of_size(count)
        operator.take(matrix)
        inverse = Aggregates(matrix, self._choice.threshold).inverse
        smoother = _Smoother(matrix, operator, inverse, vectors, LONG, self._symmetric)
        smoother.fit()
        return SimpleNamespace(apply=partial(smoother.smooth, zero=True))  # such matrices have little coupling


class _Level:
    """A level above the coarsest (see Multigrid), with its set-up; `largest` is an estimate of D⁻¹ A's eigenvalues."""

    def __init__(self, matrix: BlockRows, aggregates, coarsening, finest: Vectors, smooths: int):
        self._matrix, self._aggregates, self.coarsening = matrix, aggregates, coarsening
        arrays, self.total = finest.arrays, matrix.num_rows * matrix.shape[0]
        given = matrix, coarsening.prolongator, coarsening.restriction
        self.operator, self.interpolation, self.restriction = (SellMatrix.of_blocks(each, arrays) for each in given)
        below = self.interpolation.num_owned
        self.r, self.below_b, self.below_x = map(arrays.zeros, (self.total, below, below))
        symmetric, vectors = coarsening.is_symmetric, finest.of_size(self.total)
        self.smoother = _Smoother(matrix, self.operator, aggregates.inverse, vectors, smooths, symmetric)

    def update(self, keep: bool) -> bool:
        """The next coarser matrix, transfers and smoother of the matrix's present values, if the aggregates still serve
        or are not to be kept; whether they are computed."""
        aggregates, coarsening = self._aggregates, self.coarsening
        if keep:
            aggregates.measure()
            if not aggregates.serve():
                return False
        self.operator.take(self._matrix)
        self.largest = self.smoother.fit()
        coarsening.update((DAMPING if coarsening.is_symmetric else 1.0) / self.largest)
        self.interpolation.take(coarsening.prolongator)
        self.restriction.take(coarsening.restriction)
        return True


class _Smoother(Smoother):
    """Chebyshev's iteration with Jacobi; of a nonsymmetric matrix, whose eigenvalues are complex, twice as many steps
    by the polynomial that makes noise least."""

    def __init__(self, matrix, operator: SellMatrix, inverse, vectors: Vectors, count: int, symmetric: bool):
        self._inverse, self._given = inverse, matrix.arrays
        taken = inverse if self._given.precision == vectors.arrays.precision else vectors.arrays.empty(vectors.count)
        super().__init__(operator, SimpleNamespace(is_diagonal=True, diagonal=taken), vectors, ())
        self._count, self._symmetric = count, symmetric
        self._arnoldi = Arnoldi(weakref.proxy(self), STEPS if symmetric else 2 * count + 1)

    def fit(self) -> float:
        """Take the steps for the operator's present values; returns an estimate of the largest absolute eigenvalue of
        D⁻¹ A, 2 where there is none."""
        if self.diagonal is not self._inverse:
            self._given.convert(self._inverse, self.diagonal, self.vectors.count, self.vectors.arrays)
        roots = () if self._symmetric else self._arnoldi.roots(0)
        if len(roots):
            self.steps = polynomial_steps(roots)
            return float(np.abs(roots).max())
        largest = self._arnoldi.extreme(0)[1]
        largest = largest if np.isfinite(largest) and largest > 0 else 2.0
        self.steps = chebyshev_steps(LOWER * largest, UPPER * largest, self._count)
        return largest


def _is_symmetric(mat: PETSc.Mat) -> bool:
    """True if a matrix is symmetric, or nearly so. Collective."""
    known, symmetric = mat.isSymmetricKnown()
    return symmetric if known else skewness(mat) < SKEW


def _near_null_vectors(mat) -> np.ndarray:
    """Near-null vectors [row, vector] of a matrix, constants of each unknown of its blocks where it has none."""
    vectors = mat.getNearNullSpace().getVecs() if mat.getNearNullSpace().handle else []
    if vectors:
        return np.column_stack([vector.getArray(readonly=True) for vector in vectors])
    size = mat.getBlockSize()
    return np.tile(np.eye(size), (mat.getLocalSize()[0] // size, 1))


def _size_of_nodes(mat, modes: np.ndarray) -> int:
    """Return the number of rows per node: those of a block, or one where the only near-null vector is nowhere small, as
    a constant of nodal values."""
    sizes = np.abs(modes)
    is_nodal = modes.shape[1] == 1 and sizes.min(initial=np.inf) > CONSTANT * sizes.max(initial=0.0)
    return 1 if is_nodal else mat.getBlockSize()


def amg_cycle(pc: PETSc.PC, vectors: Vectors):
    """A cycle for a PC of type python with a context of ours, None for others. Collective."""
    context = pc.getPythonContext() if pc.getType() == PETSc.PC.Type.PYTHON else None
    if not isinstance(context, AMG):
        return None
    pc.setUp()
    context.prepare(pc)
    arrays, solver = context.cycle.arrays, context.solver
    if arrays.device is not vectors.device:
        return None
    if arrays.precision == vectors.arrays.precision:
        return solver
    return InPrecision(solver, vectors, arrays, f"{solver.note}, in {arrays.precision} precision")


MAKERS.append(amg_cycle)
