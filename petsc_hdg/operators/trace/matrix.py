"""The trace matrix as a PETSc Python Mat, and block Jacobi over its facets as a PETSc Python PC."""

from __future__ import annotations

from petsc4py import PETSc

from ... import stages
from ...errors import SolveError
from ..block_jacobi import BlockJacobi
from ..matfree import JacobianContext, require_rows
from .facet_blocks import FacetBlocks


class TraceMatrix(JacobianContext):
    """Context of a PETSc Python Mat: the trace matrix as the operator's format, or a copy of it, holds it.

    operator: CondensedOperator with a `format`.   assembled: AssembledMatrix of the same matrix, or None.
    """

    def __init__(self, operator, access, assembled=None, own=None):
        super().__init__(operator, access, assembled)
        self._own = own

    @property
    def format(self):
        """The TraceFormat that the products use."""
        return self._own or self.operator.format

    def mult(self, mat, x, y) -> None:
        """y = A x"""
        self._mult(x, y, transpose=False)

    def multTranspose(self, mat, x, y) -> None:
        """y = Aᵀ x"""
        self._mult(x, y, transpose=True)

    def _mult(self, x, y, transpose: bool) -> None:
        arrays = self.operator.arrays
        with arrays.callback("trace product"), self.access.read(x) as given, self.access.write(y) as out:
            self.product(given, out, transpose)

    def product(self, x, y, transpose: bool = False) -> None:
        """y = A x, or Aᵀ x, on buffers of owned values. Collective."""
        with self.event:
            self.format.apply(x, y, transpose)
            PETSc.Log.logFlops(self.format.flops)

    def getDiagonal(self, mat, diagonal) -> None:
        """diagonal = diag(A). Raises SolveError for a vector of another size."""
        require_rows(mat, diagonal)
        callback = self.operator.arrays.callback("trace diagonal")
        with stages.event("Diagonal"), callback, self.access.write(diagonal) as out:
            self.format.apply_column(-1, out)

    def getDiagonalBlock(self, mat) -> PETSc.Mat:
        """This rank's rows and columns, of the assembled matrix. Raises SolveError if there is none."""
        if self.assembled is None:
            raise SolveError(
                "the rows of one rank need the assembled trace matrix: use -fe_pmat aij, or -pc_type python "
                "-pc_python_type petsc_hdg.FacetBlockJacobi"
            )
        return self.assembled.mat.getDiagonalBlock()

    def duplicate(self, mat, option) -> PETSc.Mat:
        """A Mat with a copy of the values, which later linearizations do not change."""
        context = TraceMatrix(self.operator, self.access, own=self.format.copy())
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
        flops = self.blocks.inversion_flops
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
