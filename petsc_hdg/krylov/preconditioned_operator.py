"""The preconditioned operator that a Krylov method works with: B A, or A B."""

from __future__ import annotations

from petsc4py import PETSc

from .matrices import Matrix
from .preconditioners import Preconditioner
from .vectors import Vectors

LEFT, RIGHT = PETSc.PC.Side.LEFT, PETSc.PC.Side.RIGHT


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

    def apply_and_sum(self, x, y, other, row: int, sums) -> None:
        """The same, and this rank's sums of (y·y, other·y, other·other, .) in a row of a buffer"""
        preconditioner, vectors = self.preconditioner, self.vectors
        if self.is_left and preconditioner.is_diagonal and preconditioner.diagonal is not None:
            between = vectors.buffer("between")
            self.matrix.mult(x, between)
            vectors.run("multiply_sums", preconditioner.diagonal, between, other, y, row, sums)
        else:
            self.apply(x, y)
            vectors.run("sums", other, y, row, sums)

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
