"""Products with a PETSc matrix on buffers: by our contexts or a mirror of AIJ on the device, else by PETSc, staged."""

from __future__ import annotations

from petsc4py import PETSc

from ..device import Arrays, Device, aside
from ..device.context import is_viennacl
from ..operators import JacobianContext
from ..options import Options
from .sell_matrix import is_assembled, mirrored
from .vectors import Converted, Staged, Vectors

_ARRAYS: dict[str, Arrays] = {}


def context_of(mat: PETSc.Mat) -> JacobianContext | None:
    """Our context of a matrix, None if it has another one or none."""
    if mat.getType() != PETSc.Mat.Type.PYTHON:
        return None
    context = mat.getPythonContext()
    return context if isinstance(context, JacobianContext) else None


def arrays_of(solver, vector: PETSc.Vec) -> Arrays:
    """Arrays on the device of a KSP or PC whose vectors are like `vector`. Collective."""
    for mat in solver.getOperators():
        context, arrays = context_of(mat), mat.getAttr("petsc_hdg_arrays")
        if context is not None or arrays is not None:
            return context.operator.arrays if context is not None else arrays
    if is_viennacl(vector):
        return Arrays(Device.from_vec(vector))
    choice = Options.from_petsc().device
    if choice not in _ARRAYS:  # one for all solvers
        _ARRAYS[choice] = Arrays(Device.select(choice, solver.comm.tompi4py()))
    return _ARRAYS[choice]


class Matrix:
    """`mult(x, y)` on buffers.

    on_device: whether nothing passes through PETSc's vectors.
    repeats: whether products are launches and exchanges alone, which a recorded sequence repeats.
    """

    def __init__(self, mat: PETSc.Mat, vectors: Vectors):
        self.mat, self.vectors = mat, vectors
        self.context = context_of(mat)
        self._mirror = self._staged = None
        if self.context is not None and self.context.operator.device is vectors.device:
            self._converted = Converted(vectors, self.context.operator.arrays)
        elif is_assembled(mat):
            self.context = None
            self.update()
        else:
            self.context, self._staged = None, Staged(vectors, mat)
        self.on_device = self._staged is None
        self.repeats = self.on_device and (self.context is None or self.context.repeats)

    @property
    def fuses(self) -> bool:
        """True if the context can compute a product and the vector update that follows it in one launch (`step`)."""
        ours = self.context is not None and self.repeats and not self._converted.is_needed
        return bool(ours and self.context.operator.fuses)

    @property
    def factor(self) -> float:
        """The number f where the matrix is f times the one that `mult` applies."""
        return 1.0 if self.context is None else self.context.factor

    @property
    def note(self) -> str:
        """Where products are computed, for `-ksp_view`."""
        if not self.on_device:
            return f"by PETSc ({self.mat.getType()}), staged"
        return "on the device" if self.context is not None else "on the device, by a copy of the matrix"

    def update(self) -> None:
        """The matrix may have changed. Collective."""
        if self.context is None and self._staged is None:
            self._mirror = mirrored(self.mat, self.vectors.arrays)

    def num_parts(self) -> int:
        """How many parts of x·y products on this rank can sum, 0 where they cannot. Collective.

        Parts are of this rank's cells, whose rows may be other ranks', and not of its own rows: all sum them, or none.
        """
        summing, comm = self._summing, self.vectors.comm
        has_cells = self.context is not None and self.context.operator.discretization.mesh.num_cells > 0
        lacking = comm.allreduce(int(summing is None and has_cells)) if comm.size > 1 else 0
        return summing.num_parts if summing is not None and not lacking else 0

    @property
    def _summing(self):
        """What computes our products, if it can sum x·y in parts: a pass over the cells, or a format."""
        return None if self.context is None or self._converted.is_needed else sums_products(self.context)

    def mult(self, x, y, parts=None) -> None:
        """y = A x, and x·y in a buffer of `num_parts` parts if there is one. Collective."""
        if parts is not None:
            summing = self._summing
            summing.parts = parts
            try:
                self.context.product(x, y)
            finally:
                summing.parts = None
        elif self.context is not None:
            self._converted.apply(self.context.product, x, y)
        elif self._mirror is not None:
            self._mirror.apply(x, y)
        else:
            self._staged.apply(self.mat.mult, x, y)


def sums_products(context):
    """What sums x·y in `num_parts` parts while a context's product is computed, None if nothing does."""
    found = getattr(context, "format", None) or getattr(context.operator, "fast", None)
    found = getattr(found, "summing", found)
    return found if hasattr(found, "num_parts") else None


class Unsupported(Exception):
    """What stands in the way of mirroring a multigrid; PETSc applies it then."""


def level_operator(mat, vectors: Vectors):
    """An object with `num_rows`, `apply(x, y)`, `residual(b, x, y)`. Collective; raises Unsupported."""
    if is_assembled(mat):
        return mirrored(mat, vectors.arrays)
    ours = ShellProduct(Matrix(mat, vectors))
    if not ours.matrix.on_device:
        raise Unsupported(f"multigrid with a matrix of type {mat.getType()} on a level")
    return ours


class ShellProduct:
    """Products with a matrix as levels have them; `fuses`: whether `step` also does the update that follows."""

    def __init__(self, matrix: Matrix):
        self.matrix, self.vectors = matrix, matrix.vectors
        self.num_rows = matrix.vectors.count
        self.fuses = matrix.fuses

    def apply(self, x, y) -> None:
        """y = A x. Collective."""
        if self.matrix.repeats:
            self.matrix.mult(x, y)
        else:
            aside(self.vectors.device, lambda: self.matrix.mult(x, y))

    def residual(self, b, x, y) -> None:
        """y = b - A x. Collective."""
        if self.fuses:
            self.step(x, y, b)
            return
        self.apply(x, y)
        self.vectors.run("subtract", b, y)

    def step(self, x, y, b, diagonal=None, keep: float = 0.0, mix: float = 0.0, scale: float = 1.0) -> None:
        """y = keep y + mix x + scale diagonal (b - A x), without a diagonal where it is None. Collective."""
        self.matrix.context.step(x, y, b, diagonal, keep, mix, scale)
