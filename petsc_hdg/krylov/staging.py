"""PETSc's own operations in the midst of buffers, by pairs of PETSc vectors; removal of a matrix' null space."""

from __future__ import annotations

from functools import cached_property

from petsc4py import PETSc

from .vectors import Vectors


class Staged:
    """`apply(x, y)` on buffers by a function of two PETSc vectors, such as Mat.mult. Collective."""

    def __init__(self, vectors: Vectors, like: PETSc.Mat):
        self.vectors = vectors
        self.x, self.y = like.createVecs()

    def apply(self, function, x, y) -> None:
        """y = function(x)"""
        access, vectors = self.vectors.access, self.vectors
        with access.write(self.x) as buffer:
            vectors.copy(x, buffer)
        function(self.x, self.y)
        with access.read(self.y) as buffer:
            vectors.copy(buffer, y)

    def change(self, function, x) -> None:
        """Let a function change a vector."""
        self.apply(lambda given, out: (given.copy(out), function(out)), x, x)


class Converted:
    """Buffers in the precision of `arrays` around those of vectors, where they differ."""

    def __init__(self, vectors: Vectors, arrays):
        self.vectors, self.arrays = vectors, arrays
        self.is_needed = arrays.precision != vectors.arrays.precision

    @cached_property
    def _buffers(self) -> tuple:
        return tuple(self.arrays.empty(self.vectors.count) for _ in range(2))

    def apply(self, function, x, y) -> None:
        """function(x, y) in the precision of the arrays."""
        if not self.is_needed:
            function(x, y)
            return
        (given, found), theirs, count = self._buffers, self.vectors.arrays, self.vectors.count
        theirs.convert(x, given, count, self.arrays)
        function(given, found)
        self.arrays.convert(found, y, count, theirs)


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
