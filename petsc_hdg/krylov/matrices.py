"""Products with a PETSc matrix on buffers: by our contexts on the device, else by PETSc, staged."""

from __future__ import annotations

from petsc4py import PETSc

from .places import context_of
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
        self.on_device = self.context is not None and self.context.operator.device is device
        if self.on_device:
            self._converted = Converted(vectors, self.context.operator.arrays)
        else:
            self._staged = Staged(vectors, mat)

    @property
    def note(self) -> str:
        """Where products are computed, for `-ksp_view`."""
        return "on the device" if self.on_device else f"by PETSc ({self.mat.getType()}), staged"

    def mult(self, x, y) -> None:
        """y = A x. Collective."""
        if self.on_device:
            self._converted.apply(self.context.product, x, y)
        else:
            self._staged.apply(self.mat.mult, x, y)
