"""PETSc's own operations in the midst of buffers: a pair of PETSc vectors that values pass through."""

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
