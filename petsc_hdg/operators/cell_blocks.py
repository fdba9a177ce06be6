"""The diagonal blocks of a discontinuous scheme's Jacobian, one a cell: inverted on the device, applied;
their block Jacobi as a PETSc Python PC."""

from __future__ import annotations

import numpy as np

from .block_jacobi import BlockJacobi, require_regular
from .matfree import JacobianContext


class CellBlocks:
    """Inverses [cell, dof, dof], transposed, of the diagonal blocks of an operator with `cell_blocks`.

    The degrees of freedom of a cell are in the order of its dofmap.

    narrow: products take entries in single precision, but for cells whose blocks have a large condition.
    copy: a copy of the operator in the precision of products. It finds the blocks, too, if it does so by products, and
    all of them have a small condition.
    """

    def __init__(self, operator, narrow: bool = False, copy=None):
        self.operator, self.arrays, self._copy = operator, operator.arrays, copy or operator
        disc = operator.discretization
        self.size = self.block = disc.num_dofs
        self.stride, self.num_cells = disc.stride, disc.mesh.num_cells
        self.inverse = self.arrays.empty(self.size**2 * self.num_cells)
        self._narrow = self._wide = None
        if narrow and self.arrays.precision == "double":
            self._narrow = self.arrays.empty(self.size**2 * self.num_cells, np.float32)
            self._wide = self.arrays.empty(max(1, self.num_cells), np.int32)
        self._failed = self.arrays.zeros(1, np.int32)

    @staticmethod
    def bytes_of(discretization, real_bytes: int) -> int:
        """Bytes of the blocks and inverses of this rank's cells on the device, these in both precisions."""
        return discretization.num_dofs**2 * discretization.stride * (2 * real_bytes + 4)

    @property
    def flops(self) -> int:
        """Flops of an application on this rank."""
        return 2 * self.num_cells * self.size**2

    @property
    def update_flops(self) -> int:
        """Flops of all blocks of this rank and of their inversion."""
        return self.operator.matrix_flops + 2 * self.num_cells * self.size**3

    def update(self) -> None:
        """Invert the blocks of the Jacobian as it is now. Collective; raises SolveError, on all ranks."""
        is_copy = self._copy is not self.operator and self._wide is not None and self._copy.blocks_by_products
        self._invert(self._copy if is_copy else self.operator)
        if is_copy and self._are_wide():
            self._invert(self.operator)
        require_regular(
            self.arrays,
            self._failed,
            self.operator.discretization.mesh.comm,
            lambda cell: (
                f"the diagonal block of cell {cell} of a rank's own cells is singular: use another -pc_type "
                "or -mg_levels_pc_type than cell-block Jacobi, or change the physics or the penalty"
            ),
        )

    def _invert(self, operator) -> None:
        """Inverses of the blocks that an operator finds."""
        self.arrays.fill(self._failed, 0)
        blocks, turn = operator.cell_blocks(), operator.block_kernels["turn"]
        invert, given = self.operator.block_kernels["invert"], (self.inverse, self._narrow, self._wide, self._failed)
        turn(turn.spec.launch.work_items(self.num_cells), self.num_cells, self.stride, blocks, self.inverse)
        invert(invert.spec.launch.work_items(self.num_cells), self.num_cells, *given)

    def _are_wide(self) -> bool:
        """True if a block of this rank has a large condition, or is singular."""
        found = self.arrays.to_host(self._wide, self.num_cells, np.int32, "wide blocks")
        return bool(found.any() or self.arrays.to_host(self._failed, 1, np.int32, "singular blocks")[0])

    def apply(self, x, y, transpose: bool = False) -> None:
        """y = inverses x, or their transposes x; buffers of owned values."""
        self.combine(None, None, x, y, transpose=transpose)

    def combine(self, product, x, b, y, keep=0.0, mix=0.0, scale=1.0, transpose: bool = False) -> None:
        """y = keep y + mix x + scale inverses (b - product), without product or x where they are None."""
        kernel, given = self._copy.block_kernels["apply"], (product, x, b, keep, mix, scale, y)
        items = kernel.spec.launch.work_items(self.num_cells)
        kernel(items, self.num_cells, int(transpose), self.inverse, self._narrow, self._wide, *given)

    def to_host(self) -> np.ndarray:
        """The inverses [cell, dof, dof] of owned cells."""
        shape = self.num_cells, self.size, self.size
        return self.arrays.to_host(self.inverse, shape, name="cell blocks").transpose(0, 2, 1).copy()


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
