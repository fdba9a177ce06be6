"""A PC on buffers: none, Jacobi, our block Jacobi and PETSc's multigrid on the device, others by PETSc, staged; the
preconditioned operator that a Krylov method works with."""

from __future__ import annotations

from petsc4py import PETSc

from ..device import aside
from ..operators.block_jacobi import BlockJacobi
from ..petsc import c_library
from .matrices import Matrix, context_of
from .vectors import Converted, Staged, Vectors, removal

LEFT, RIGHT = PETSc.PC.Side.LEFT, PETSc.PC.Side.RIGHT


class Scaling:
    """y = diagonal x; `diagonal` None: y = x."""

    on_device = True
    note = "on the device"

    def __init__(self, pc: PETSc.PC, vectors: Vectors):
        self.vectors, self.diagonal = vectors, None
        if pc.getType() == PETSc.PC.Type.JACOBI:
            self._take_diagonal(pc)

    def apply(self, x, y) -> None:
        """y = diagonal x"""
        if self.diagonal is None:
            self.vectors.copy(x, y)
        else:
            self.vectors.run("multiply", self.diagonal, x, y)

    def _take_diagonal(self, pc) -> None:
        """Copy the numbers by which PETSc's Jacobi multiplies, for any of its kinds. As in products, the factor of a
        shell matrix is left out."""
        mat, vectors, self.diagonal = pc.getOperators()[1], self.vectors, self.vectors.buffer("diagonal")
        context = context_of(mat)
        here = context is not None and context.operator.device is vectors.device
        if here and not Converted(vectors, context.operator.arrays).is_needed and c_library.scales_by_diagonal(pc):
            context.diagonal(self.diagonal)
            vectors.run("invert", self.diagonal)
            return
        ones, diagonal = mat.createVecs()
        ones.set(1.0)
        pc.apply(ones, diagonal)
        with vectors.access.read(diagonal) as values:
            vectors.copy(values, self.diagonal)
        for vec in (ones, diagonal):
            vec.destroy()


class InPrecision:
    """Apply a preconditioner `inner`, whose buffers have the precision of `arrays`, to buffers in that of `vectors`."""

    on_device = True

    def __init__(self, inner, vectors: Vectors, arrays, note: str = "on the device"):
        self.inner, self.note, self._converted = inner, note, Converted(vectors, arrays)
        self.combine = None if self._converted.is_needed else getattr(inner, "combine", None)

    def apply(self, x, y) -> None:
        """y = B x. Collective."""
        self._converted.apply(self.inner.apply, x, y)


class Blocks(InPrecision):
    """The inverted blocks of FacetBlockJacobi or CellBlockJacobi."""


class ByPetsc:
    """PCApply on vectors that values are copied to and from."""

    on_device = False

    def __init__(self, pc: PETSc.PC, vectors: Vectors, why: str = ""):
        self._pc, self._staged = pc, Staged(vectors, pc.getOperators()[1])
        self.note = f"by PETSc ({pc.getType()}), staged{why and f': {why}'}"

    def apply(self, x, y) -> None:
        """y = B x. Collective."""
        self._staged.apply(self._pc.apply, x, y)


class Preconditioner:
    """`apply(x, y)` on buffers, null space of the matrix removed, as of the time it is made. Collective.

    inner        what is applied   (`on_device`: whether nothing passes through PETSc's vectors, `note`: for -ksp_view)
    is_diagonal  whether it is y = diagonal x, `diagonal` None meaning ones (`is_identity`), and nothing else
    is_short     whether it takes a launch or two: no multigrid, nor a solver
    combine      computes residual, preconditioner and update in one launch, see CellBlocks; None if nothing does
    """

    def __init__(self, pc: PETSc.PC, vectors: Vectors, left: bool = True):
        self.inner, self._device = device_preconditioner(pc, vectors), vectors.device
        self.null_space = removal(pc.getOperators()[0], vectors) if left else None
        self.on_device, self.note = self.inner.on_device, self.inner.note
        self.diagonal = getattr(self.inner, "diagonal", None)
        self.is_diagonal = isinstance(self.inner, Scaling) and self.null_space is None
        self.is_identity = self.is_diagonal and self.diagonal is None
        self.combine = getattr(self.inner, "combine", None) if self.null_space is None else None
        self.is_short = isinstance(self.inner, (Scaling, Blocks))
        self._repeats = self.null_space is None and self.is_short

    def apply(self, x, y) -> None:
        """y = B x. Collective."""
        if self._repeats:
            self.inner.apply(x, y)
        else:
            aside(self._device, lambda: self._apply(x, y))

    def _apply(self, x, y) -> None:
        self.inner.apply(x, y)
        if self.null_space is not None:
            self.null_space.remove(y)


# Functions of a PC and vectors that give what applies the PC to buffers, or None; asked in turn. Multigrid and solvers
# within solvers, which have preconditioners in their turn, put theirs here.
MAKERS: list = []


def device_preconditioner(pc: PETSc.PC, vectors: Vectors):
    """What applies a PC to buffers. Collective."""
    for make in MAKERS:
        made = make(pc, vectors)
        if made is not None:
            return made
    return ByPetsc(pc, vectors)


def _scaling(pc: PETSc.PC, vectors: Vectors) -> Scaling | None:
    return Scaling(pc, vectors) if pc.getType() in (PETSc.PC.Type.NONE, PETSc.PC.Type.JACOBI) else None


def _blocks(pc: PETSc.PC, vectors: Vectors) -> Blocks | None:
    context = pc.getPythonContext() if pc.getType() == PETSc.PC.Type.PYTHON else None
    here = isinstance(context, BlockJacobi) and context.context.operator.device is vectors.device
    return Blocks(context.blocks, vectors, context.context.operator.arrays) if here else None


MAKERS += [_scaling, _blocks]


class Operation:
    """A matrix, a preconditioner and the side it stands on, on buffers. All calls are collective."""

    def __init__(self, matrix: Matrix, preconditioner: Preconditioner, is_left: bool, vectors: Vectors):
        self.matrix, self.preconditioner, self.is_left, self.vectors = matrix, preconditioner, is_left, vectors

    @property
    def on_device(self) -> bool:
        """True if nothing passes through PETSc's vectors."""
        return self.matrix.on_device and self.preconditioner.on_device

    def apply(self, x, y) -> None:
        """y = B A x, or A B x"""
        if self.preconditioner.is_identity:
            self.matrix.mult(x, y)
            return
        between = self.vectors.buffer("between")
        first, second = self.matrix.mult, self.preconditioner.apply
        if not self.is_left:
            first, second = second, first
        first(x, between)
        second(between, y)

    def residual(self, b, x, guessed: bool, out) -> None:
        """out = b - A x, b if nothing is `guessed`"""
        if guessed:
            self.matrix.mult(x, out)
            self.vectors.run("subtract", b, out)
        else:
            self.vectors.copy(b, out)

    def first_residual(self, b, x, guessed: bool, out) -> None:
        """out = B (b - A x), or b - A x"""
        if not self.is_left:
            self.residual(b, x, guessed, out)
            return
        between = self.vectors.buffer("between")
        self.residual(b, x, guessed, between)
        self.preconditioner.apply(between, out)

    def add(self, change, x) -> None:
        """x += change, or B change: what a method has found goes to the solution."""
        if not self.is_left:
            between = self.vectors.buffer("between")
            self.preconditioner.apply(change, between)
            change = between
        self.vectors.run("combine", 1.0, change, 1.0, x)
