"""Block Jacobi over the cells of a discontinuous scheme, as a PETSc Python PC."""

from __future__ import annotations

from .block_jacobi import BlockJacobi
from .cell_blocks import CellBlocks
from .matfree import JacobianContext


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

    def _make_blocks(self, context) -> CellBlocks:
        return CellBlocks(context.operator)
