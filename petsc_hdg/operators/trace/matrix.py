"""The trace matrix as a PETSc Python Mat, and block Jacobi over its facets as a PETSc Python PC."""

from __future__ import annotations

from petsc4py import PETSc

from ... import stages
from ...errors import SolveError
from ..block_jacobi import BlockJacobi
from ..matfree import JacobianContext
from .facet_blocks import FacetBlocks

COPY_VALUES = 1  # of PETSc's MatDuplicateOption


class TraceMatrix(JacobianContext):
    """Context of a PETSc Python Mat: the trace matrix as the operator's format, or a copy of it, holds it.

    operator: CondensedOperator with a `format`.   assembled: AssembledMatrix of the same matrix, or None.
    """

    name = "trace"

    def __init__(self, operator, access, assembled=None, own=None):
        super().__init__(operator, access, assembled)
        self._own = own

    @property
    def format(self):
        """The TraceFormat that the products use."""
        return self._own or self.operator.format

    def multTranspose(self, mat, x, y) -> None:
        """y = Aᵀ x"""
        self._mult(x, y, True)

    def _multiply(self, x, y, transpose: bool = False) -> None:
        with self.event:
            self.format.apply(x, y, transpose)
            PETSc.Log.logFlops(self.format.flops)

    _diagonal_flops = 0

    def _diagonal(self, out) -> None:
        self.format.apply_column(-1, out)

    def duplicate(self, mat, option) -> PETSc.Mat:
        """A Mat with a copy of the values, or zeros without it, which later linearizations do not change."""
        context = TraceMatrix(self.operator, self.access, own=self.format.copy())
        context.factor = self.factor if option == COPY_VALUES else 0.0
        return context.as_mat(mat.getSizes()[0], mat.comm, mat.createVecs()[0].getType())

    def view(self, mat, viewer) -> None:
        """Say how the matrix is stored."""
        viewer.printfASCII(f"  trace matrix on {self.operator.device.name}: {self.format.description}\n")


class FacetBlockJacobi(BlockJacobi):
    """Block Jacobi over the facets of a trace matrix: -pc_type python -pc_python_type petsc_hdg.FacetBlockJacobi."""

    event = "facet block Jacobi"

    def setUp(self, pc) -> None:
        """Collect and invert the blocks of the trace matrix among the PC's operators. Collective."""
        context = _trace_context(pc)
        if self.blocks is None or self.context is not context:
            self.context, self.blocks = context, FacetBlocks(context.format)
        self.factor, flops = context.factor, self.blocks.inversion_flops
        with context.operator.arrays.callback("facet blocks"), stages.event("BlockSetUp", flops):
            self.blocks.collect()
            self.blocks.invert()

    def view(self, pc, viewer) -> None:
        """Say how large the blocks are."""
        size = f"{self.blocks.layout.block} by {self.blocks.layout.block}" if self.blocks else "not set up yet"
        viewer.printfASCII(f"  inverted facet blocks, {size}\n")


def _trace_context(pc) -> TraceMatrix:
    for mat in reversed(pc.getOperators()):
        if mat.getType() == PETSc.Mat.Type.PYTHON and isinstance(mat.getPythonContext(), TraceMatrix):
            return mat.getPythonContext()
    raise SolveError(
        "FacetBlockJacobi takes a stored trace matrix, the PC has none: use -fe_backend hdg_gpu with -hdg_trace_mat "
        "dbf or element, or -pc_type pbjacobi with aij"
    )
