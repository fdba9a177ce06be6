"""Products with the matrix of a level of multigrid: ours on the device, or PETSc's, mirrored there."""

from __future__ import annotations

from ..device import aside
from .matrices import Matrix
from .sell_matrix import is_assembled, mirrored
from .vectors import Vectors


class Unsupported(Exception):
    """What stands in the way of mirroring a multigrid; PETSc applies it then."""


def level_operator(mat, vectors: Vectors):
    """An object with `num_rows`, `apply(x, y)`, `residual(b, x, y)`. Collective; raises Unsupported."""
    if is_assembled(mat):
        return mirrored(mat, vectors.arrays)
    ours = ShellProduct(mat, vectors)
    if not ours.matrix.on_device:
        raise Unsupported(f"multigrid with a matrix of type {mat.getType()} on a level")
    return ours


class ShellProduct:
    """Products with one of our shell matrices; `fuses`: whether `step` also does the update that follows."""

    def __init__(self, mat, vectors: Vectors):
        self.matrix, self.vectors = Matrix(mat, vectors), vectors
        self.num_rows = vectors.count
        self.fuses = self.matrix.fuses

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
