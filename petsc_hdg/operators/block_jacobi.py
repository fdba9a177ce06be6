"""What contexts of a PETSc Python PC that apply inverted blocks on the device have in common."""

from __future__ import annotations

from .. import stages
from ..petsc.lifetimes import Context


class BlockJacobi(Context):
    """Context of a PETSc Python PC; subclasses set up `context`, that of the matrix, its `factor`, and `blocks`."""

    event = "block Jacobi"  # the callback under which copies are counted

    def __init__(self):
        self.blocks = None
        self.context = None
        self.factor = 1.0

    def apply(self, pc, x, y) -> None:
        """y = inverse blocks x"""
        self._apply(x, y, transpose=False)

    def applyTranspose(self, pc, x, y) -> None:
        """y = inverse transposed blocks x"""
        self._apply(x, y, transpose=True)

    def _apply(self, x, y, transpose: bool) -> None:
        access = self.context.access
        callback = self.context.operator.arrays.callback(self.event)
        with callback, access.read(x) as given, access.write(y) as out:
            with stages.event("BlockApply", self.blocks.flops):
                self.blocks.apply(given, out, transpose)
        y.scale(1 / self.factor)
