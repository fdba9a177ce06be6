"""PETSc's own operations in the midst of buffers: a pair of PETSc vectors that values pass through."""

from __future__ import annotations

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
    """Buffers of our operators' precision around those of the solver, where they differ."""

    def __init__(self, vectors: Vectors, arrays):
        self.vectors = vectors
        self.is_needed = arrays.precision != vectors.arrays.precision
        if self.is_needed:
            self.x, self.y = arrays.empty(vectors.count), arrays.empty(vectors.count)
            self._kernels = {name: vectors.kernel(name) for name in ("convert_narrow", "convert_widen")}

    def apply(self, function, x, y) -> None:
        """function(x, y) in the operators' precision."""
        if not self.is_needed:
            function(x, y)
            return
        count = self.vectors.count
        self._kernels["convert_narrow"](count, x, self.x, count)
        function(self.x, self.y)
        self._kernels["convert_widen"](count, self.y, y, count)
