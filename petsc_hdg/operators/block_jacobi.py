"""What contexts of a PETSc Python PC that apply inverted blocks on the device have in common."""

from __future__ import annotations

import atexit
import ctypes

from .. import stages
from ..mesh import petsc_c

# Handles of PETSc objects with a context of ours; there may be no object of petsc4py for them.
LIVING: dict[str, set[int]] = {"Mat": set(), "KSP": set(), "PC": set()}
_HARMLESS = {"Mat": b"shell", "KSP": b"preonly", "PC": b"none"}


@atexit.register
def _disarm() -> None:
    """Take the contexts out of objects that are still alive: PETSc frees them after the interpreter has ended, when a
    Python context can no longer be called."""
    for kind, handles in LIVING.items():
        for handle in list(handles):
            petsc_c.call(f"{kind}SetType", ctypes.c_void_p(handle), _HARMLESS[kind])
        handles.clear()


class BlockJacobi:
    """Context of a PETSc Python PC; subclasses set up `context`, that of the matrix, and `blocks`."""

    event = "block Jacobi"  # the callback under which copies are counted

    def __init__(self):
        self.blocks = None
        self.context = None

    def create(self, pc) -> None:
        """The PC begins to use this context."""
        LIVING["PC"].add(pc.handle)

    def destroy(self, pc) -> None:
        """The PC is going."""
        LIVING["PC"].discard(pc.handle)

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
