"""The trace matrix as a PETSc Python Mat, and block Jacobi over its facets as a PETSc Python PC."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from petsc4py import PETSc

from ...device import Kernel, kernels_of
from ...discretizations.base import padded
from ...discretizations.trace.layout import trace_layout
from ..block_jacobi import BlockJacobi, InvertedBlocks
from ..matfree import JacobianContext

COPY_VALUES = 1  # of PETSc's MatDuplicateOption


class FacetBlocks(InvertedBlocks):
    """Inverses of the blocks of the facets that a rank owns. Collective.

    Raises OptionError if the trace format's unknowns are not those of facets.
    """

    def __init__(self, trace_format):
        self.format, operator = trace_format, trace_format.operator
        disc = operator.discretization
        self.layout = layout = trace_format.layout or trace_layout(disc.mesh, disc.dofmap, disc.spaces[0])
        super().__init__(operator, layout.num_owned, layout.block, _singular_facet)
        numbers = None if layout.is_blocked else trace_format.facet_array(layout.numbers.T)
        self.places = disc.dofmap.num_owned, padded(layout.num_facets), numbers
        self._column = self.arrays.zeros(max(1, disc.dofmap.num_owned))

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        return kernels_of(self.format.specs.facet_blocks(), self.operator.device)

    @property
    def update_flops(self) -> int:
        """Flops of the inversion of all blocks of this rank."""
        return 2 * self.count * self.block**3

    def update(self) -> None:
        """Invert the blocks of the matrix as it is now. Collective; raises SolveError, on all ranks."""
        self.collect()
        self.invert()
        self.require_regular()

    def collect(self) -> None:
        """Take the blocks of the matrix as it is now. Collective."""
        kernel = self.kernels["column"]
        items = kernel.spec.launch.work_items(self.count)
        for k in range(self.block):
            self.format.apply_column(k, self._column)
            kernel(items, self.count, *self.places, k, self._column, self.inverse)

    def to_host(self) -> np.ndarray:
        """The inverses, or before they are inverted the blocks, [facet, row, row]."""
        shape = self.block, self.count, self.block
        return self.arrays.to_host(self.inverse, shape, name="inverted blocks").transpose(1, 2, 0).copy()


def _singular_facet(facet: int) -> str:
    return (
        f"the block of facet {facet} of a rank's own facets in the trace matrix is singular: use another -pc_type than "
        "facet block Jacobi, or change the stabilization"
    )


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

    def product(self, x, y, transpose: bool = False) -> None:
        with self.logged(self.format.flops):
            self.format.apply(x, y, transpose)

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
