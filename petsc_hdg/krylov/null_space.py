"""Removal of a matrix' null space from vectors on the device."""

from __future__ import annotations

from petsc4py import PETSc

from .staging import Staged
from .vectors import Vectors


class NullSpaceRemoval:
    """`remove(x)` projects a buffer as MatNullSpaceRemove does; constants and given vectors are on the device."""

    def __init__(self, null_space: PETSc.NullSpace, mat: PETSc.Mat, vectors: Vectors):
        self.null_space, self.vectors = null_space, vectors
        self._size = mat.getSize()[0]
        self._basis = []
        for vec in null_space.getVecs():
            buffer = vectors.arrays.empty(vectors.count)
            with vectors.access.read(vec) as values:
                vectors.copy(values, buffer)
            self._basis.append(buffer)
        self._staged = Staged(vectors, mat) if null_space.getFunction() else None

    def remove(self, x) -> None:
        """x minus its part in the null space. Collective."""
        vectors = self.vectors
        if self._staged is not None:
            self._staged.change(self.null_space.remove, x)
            return
        if self.null_space.hasConstant():
            vectors.run("shift", -float(vectors.sums(x, x)[3]) / max(1, self._size), x)
        parts = [float(vectors.sums(vector, x)[1]) for vector in self._basis]
        for part, vector in zip(parts, self._basis, strict=True):
            vectors.run("combine", -part, vector, 1.0, x)


def removal(mat: PETSc.Mat, vectors: Vectors) -> NullSpaceRemoval | None:
    """For the null space of a matrix, None if it has none. Collective."""
    null_space = mat.getNullSpace()
    return NullSpaceRemoval(null_space, mat, vectors) if null_space.handle else None
