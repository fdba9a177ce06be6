"""Products with a PETSc matrix on buffers: by our contexts or a mirror of AIJ on the device, else by PETSc, staged."""

from __future__ import annotations

from petsc4py import PETSc

from .places import context_of
from .sell_matrix import is_assembled, mirrored
from .staging import Converted, Staged
from .vectors import Vectors


class Matrix:
    """`mult(x, y)` on buffers.

    on_device: whether nothing passes through PETSc's vectors.
    """

    def __init__(self, mat: PETSc.Mat, vectors: Vectors):
        self.mat, self.vectors = mat, vectors
        self.context = context_of(mat)
        device = vectors.arrays.device
        is_ours = self.context is not None and self.context.operator.device is device
        self.on_device = is_ours or is_assembled(mat)
        if is_ours:
            self._converted = Converted(vectors, self.context.operator.arrays)
            self._mult = self._by_context
        elif self.on_device:
            self.update()
        else:
            self._staged = Staged(vectors, mat)
            self._mult = self._by_petsc

    @property
    def note(self) -> str:
        """Where products are computed, for `-ksp_view`."""
        if not self.on_device:
            return f"by PETSc ({self.mat.getType()}), staged"
        return "on the device" if self.context is not None else "on the device, by a copy of the matrix"

    def update(self) -> None:
        """The matrix may have changed. Collective."""
        if self.on_device and is_assembled(self.mat):
            self._mult = mirrored(self.mat, self.vectors.arrays).apply

    def mult(self, x, y) -> None:
        """y = A x. Collective."""
        self._mult(x, y)

    def _by_context(self, x, y) -> None:
        self._converted.apply(self.context.product, x, y)

    def _by_petsc(self, x, y) -> None:
        self._staged.apply(self.mat.mult, x, y)
