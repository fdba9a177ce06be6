"""The trace matrix as a PETSc Python Mat, and block Jacobi over its facets as a PETSc Python PC."""

from __future__ import annotations

from petsc4py import PETSc

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
        with self.logged(self.format.flops):
            self.format.apply(x, y, transpose)

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

    of = "facet"
    missing = (
        "a stored trace matrix, the PC has none: use -fe_backend hdg_gpu with -hdg_trace_mat dbf or element, or "
        "-pc_type pbjacobi with aij"
    )

    def _has_blocks(self, context) -> bool:
        return isinstance(context, TraceMatrix)

    def _make_blocks(self, context, smooths: bool) -> FacetBlocks:
        return FacetBlocks(context.format)
