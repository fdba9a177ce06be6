"""Block Jacobi over the cells of a discontinuous scheme, as a PETSc Python PC."""

from __future__ import annotations

from petsc4py import PETSc

from .. import stages
from ..errors import SolveError
from .block_jacobi import BlockJacobi
from .cell_blocks import CellBlocks
from .matfree import JacobianContext


class CellBlockJacobi(BlockJacobi):
    """Block Jacobi over the cells of a matrix-free Jacobian: -pc_type python -pc_python_type petsc_hdg.CellBlockJacobi.

    As smoother of the two-level preconditioner: -mg_levels_pc_type python -mg_levels_pc_python_type (the same).
    """

    event = "cell block Jacobi"

    def setUp(self, pc) -> None:
        """Invert the diagonal blocks of the Jacobian among the PC's operators. Collective."""
        context = _cell_context(pc)
        if self.blocks is None or self.context is not context:
            self.context, self.blocks = context, CellBlocks(context.operator)
        self.factor, flops = context.factor, context.operator.matrix_flops + self.blocks.inversion_flops
        with context.operator.arrays.callback("cell blocks"), stages.event("BlockSetUp", flops):
            self.blocks.update()

    def view(self, pc, viewer) -> None:
        """Say how large the blocks are."""
        size = f"{self.blocks.size} by {self.blocks.size}" if self.blocks else "not set up yet"
        viewer.printfASCII(f"  inverted cell blocks, {size}\n")


def _cell_context(pc) -> JacobianContext:
    for mat in reversed(pc.getOperators()):
        if mat.getType() == PETSc.Mat.Type.PYTHON:
            context = mat.getPythonContext()
            if isinstance(context, JacobianContext) and hasattr(context.operator, "cell_blocks"):
                return context
    raise SolveError(
        "CellBlockJacobi takes the matrix-free Jacobian of discontinuous elements, the PC has none: use -fe_backend "
        "sipg_gpu, or another -pc_type"
    )
