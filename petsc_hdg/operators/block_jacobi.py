"""Base of contexts of a PETSc Python PC that apply inverted blocks on the device."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from .. import stages
from ..errors import SolveError, collectively
from ..petsc.lifetimes import Context


class BlockJacobi(Context):
    """Context of a PETSc Python PC; subclasses name what the blocks belong to, and find and make them.

    context: that of the matrix;   factor: of the matrix;   blocks: inverted, by `update`, with `block` rows each.
    """

    of = "cell"
    missing = ""  # what an error says where no matrix of the PC has such blocks

    def __init__(self):
        self.blocks = None
        self.context = None
        self.factor = 1.0
        self._made_for: tuple | None = None

    def _has_blocks(self, context) -> bool:
        """Return True if the context of a PETSc Python matrix is one whose blocks this preconditioner inverts."""
        raise NotImplementedError

    def _make_blocks(self, context, smooths: bool):
        """smooths: they do so on a level of multigrid, which needs a few digits alone."""
        raise NotImplementedError

    def setUp(self, pc) -> None:
        """Invert the blocks of the matrix among the PC's operators. Collective."""
        contexts = [m.getPythonContext() for m in pc.getOperators() if m.getType() == PETSc.Mat.Type.PYTHON]
        context = next(filter(self._has_blocks, reversed(contexts)), None)
        if context is None:
            raise SolveError(f"{type(self).__name__} takes {self.missing}")
        made_for = context, context.operator
        if self._made_for != made_for:
            smooths = "mg_levels_" in (pc.getOptionsPrefix() or "")
            self.context, self.blocks, self._made_for = context, self._make_blocks(context, smooths), made_for
        self.factor, callback = context.factor, context.operator.arrays.callback(f"{self.of} blocks")
        with callback, stages.event("BlockSetUp", self.blocks.update_flops):
            self.blocks.update()

    def view(self, pc, viewer) -> None:
        """Say how large the blocks are."""
        size = f"{self.blocks.block} by {self.blocks.block}" if self.blocks else "not set up yet"
        viewer.printfASCII(f"  inverted {self.of} blocks, {size}\n")

    def apply(self, pc, x, y) -> None:
        """y = inverse blocks x"""
        self._apply(x, y, transpose=False)

    def applyTranspose(self, pc, x, y) -> None:
        """y = inverse transposed blocks x"""
        self._apply(x, y, transpose=True)

    def _apply(self, x, y, transpose: bool) -> None:
        access = self.context.access
        callback = self.context.operator.arrays.callback(f"{self.of} block Jacobi")
        with callback, access.read(x) as given, access.write(y) as out:
            with stages.event("BlockApply", self.blocks.flops):
                self.blocks.apply(given, out, transpose)
        y.scale(1 / self.factor)


def require_regular(arrays, failed, comm, said) -> None:
    """Raise SolveError, on all ranks, if a block is singular. Collective.

    failed: buffer of the number of one such block on this rank, counted from 1, or of 0;   said(number): the sentence.
    """
    with collectively(comm):
        if number := int(arrays.to_host(failed, 1, np.int32, "singular blocks")[0]):
            raise SolveError(said(number - 1))
