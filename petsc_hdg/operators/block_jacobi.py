"""Contexts of a PETSc Python PC that apply inverted blocks on the device: their base, and the diagonal blocks of a
discontinuous scheme's Jacobian, one per cell.
"""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from .. import stages
from ..errors import SolveError, collectively
from ..petsc.lifetimes import Context
from .matfree import JacobianContext


class BlockJacobi(Context):
    """Context of a PETSc Python PC; subclasses name what the blocks belong to, say by `_has_blocks(context)` whether
    the context of a matrix has them, and make them by `_make_blocks(context, smooths)`; smoothers need few digits.

    context: that of the matrix;   factor: of the matrix;   blocks: inverted, by `update`, with `block` rows each.
    """

    of = "cell"
    missing = ""  # what an error says where no matrix of the PC has such blocks

    def __init__(self):
        self.blocks = None
        self.context = None
        self.factor = 1.0
        self._made_for: tuple | None = None

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

    def applyTranspose(self, pc, x, y) -> None:
        """y = inverse transposed blocks x"""
        self.apply(pc, x, y, transpose=True)

    def apply(self, pc, x, y, transpose: bool = False) -> None:
        """y = inverse blocks x"""
        access = self.context.access
        callback = self.context.operator.arrays.callback(f"{self.of} block Jacobi")
        with callback, access.read(x) as given, access.write(y) as out:
            with stages.event("BlockApply", self.blocks.flops):
                self.blocks.apply(given, out, transpose)
        y.scale(1 / self.factor)


class InvertedBlocks:
    """Inverses of blocks of an operator's Jacobian, as cell_block.cl has them. Subclasses find the blocks.

    count: of this rank's blocks.   block: rows of one.   kernels: of block_specs.py, by name.   singular: the sentence
    for a singular block by its number.   narrow: products take entries in single precision, but for blocks with a large
    condition.
    """

    places: tuple = 0, 0, None  # what cell_block.cl takes for PLACES

    def __init__(self, operator, count: int, block: int, singular, narrow: bool = False):
        self.operator, self.arrays, self.count, self.block = operator, operator.arrays, count, block
        self._singular = singular
        self.inverse = self.arrays.empty(max(1, block**2 * count))
        self._narrow = self._wide = None
        if narrow and self.arrays.precision == "double":
            self._narrow = self.arrays.empty(max(1, block**2 * count), np.float32)
            self._wide = self.arrays.empty(max(1, count), np.int32)
        self._failed = self.arrays.zeros(1, np.int32)

    @property
    def flops(self) -> int:
        """Flops of an application on this rank."""
        return 2 * self.count * self.block**2

    def invert(self) -> None:
        """Invert the blocks in place. Not collective."""
        self.arrays.fill(self._failed, 0)
        kernel, given = self.kernels["invert"], (self.inverse, self._narrow, self._wide, self._failed)
        kernel(kernel.spec.launch.work_items(self.count), self.count, *given)

    def require_regular(self) -> None:
        """Raise SolveError, on all ranks, if a block is singular. Collective."""
        with collectively(self.operator.discretization.mesh.comm):
            if number := int(self.arrays.to_host(self._failed, 1, np.int32, "singular blocks")[0]):
                raise SolveError(self._singular(number - 1))

    def apply(self, x, y, transpose: bool = False) -> None:
        """y = inverses x, or their transposes x; buffers of owned values."""
        self.combine(None, None, x, y, transpose=transpose)

    def combine(self, product, x, b, y, keep=0.0, mix=0.0, scale=1.0, transpose: bool = False) -> None:
        """y = keep y + mix x + scale inverses (b - product), without product or x where they are None."""
        kernel, given = self._apply_kernel, (product, x, b, keep, mix, scale, y)
        inverses = self.inverse, self._narrow, self._wide
        items = kernel.spec.launch.work_items(self.count)
        kernel(items, self.count, *self.places, int(transpose), *inverses, *given)

    @property
    def _apply_kernel(self):
        return self.kernels["apply"]


class CellBlocks(InvertedBlocks):
    """Inverses of the diagonal blocks of an operator with `cell_blocks`.

    The degrees of freedom of a cell are in the order of its dofmap.

    copy: a copy of the operator in the precision of products. It finds the blocks, too, if it does so by products, and
    all of them have a small condition.
    """

    def __init__(self, operator, narrow: bool = False, copy=None):
        self._copy, disc = copy or operator, operator.discretization
        super().__init__(operator, disc.mesh.num_cells, disc.num_dofs, _singular_cell, narrow)

    @property
    def kernels(self) -> dict:
        return self.operator.block_kernels

    @property
    def _apply_kernel(self):
        return self._copy.block_kernels["apply"]

    def to_host(self) -> np.ndarray:
        """The inverses [number, row, row]."""
        shape = self.count, self.block, self.block
        return self.arrays.to_host(self.inverse, shape, name="inverted blocks").transpose(0, 2, 1).copy()

    @staticmethod
    def bytes_of(discretization, real_bytes: int) -> int:
        """Bytes of the blocks and inverses of this rank's cells on the device, these in both precisions."""
        return discretization.num_dofs**2 * discretization.stride * (2 * real_bytes + 4)

    @property
    def update_flops(self) -> int:
        """Flops of all blocks of this rank and of their inversion."""
        return self.operator.matrix_flops + 2 * self.count * self.block**3

    def update(self) -> None:
        """Invert the blocks of the Jacobian as it is now. Collective; raises SolveError, on all ranks."""
        is_copy = self._copy is not self.operator and self._wide is not None and self._copy.blocks_by_products
        self._find(self._copy if is_copy else self.operator)
        if is_copy and self._are_wide():
            self._find(self.operator)
        self.require_regular()

    def _find(self, operator) -> None:
        """Inverses of the blocks that an operator finds."""
        blocks, turn = operator.cell_blocks(), operator.block_kernels["turn"]
        items, stride = turn.spec.launch.work_items(self.count), self.operator.discretization.stride
        turn(items, self.count, stride, blocks, self.inverse)
        self.invert()

    def _are_wide(self) -> bool:
        """True if a block of this rank has a large condition, or is singular."""
        found = self.arrays.to_host(self._wide, self.count, np.int32, "wide blocks")
        return bool(found.any() or self.arrays.to_host(self._failed, 1, np.int32, "singular blocks")[0])


def _singular_cell(cell: int) -> str:
    return (
        f"the diagonal block of cell {cell} of a rank's own cells is singular: use another -pc_type or "
        "-mg_levels_pc_type than cell-block Jacobi, or change the physics or the penalty"
    )


class CellBlockJacobi(BlockJacobi):
    """Block Jacobi over the cells of a matrix-free Jacobian: -pc_type python -pc_python_type petsc_hdg.CellBlockJacobi.

    As smoother of the two-level preconditioner: -mg_levels_pc_type python -mg_levels_pc_python_type (the same).
    """

    missing = (
        "the matrix-free Jacobian of discontinuous elements, the PC has none: use -fe_backend sipg_gpu, or another "
        "-pc_type"
    )

    def _has_blocks(self, context) -> bool:
        return isinstance(context, JacobianContext) and hasattr(context.operator, "cell_blocks")

    def _make_blocks(self, context, smooths: bool) -> CellBlocks:
        return CellBlocks(context.exact, smooths, context.operator)
