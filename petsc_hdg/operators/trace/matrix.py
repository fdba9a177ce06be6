"""The trace matrix as a PETSc Python Mat, and block Jacobi over its facets as a PETSc Python PC."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from petsc4py import PETSc

from ...device import Kernel, kernels_of
from ...discretizations.base import padded
from ...discretizations.trace.layout import trace_layout
from ..block_jacobi import BlockJacobi, require_regular
from ..matfree import JacobianContext

COPY_VALUES = 1  # of PETSc's MatDuplicateOption


class FacetBlocks:
    """Blocks [m, n_f m], rows of facets fastest, of the facets that a rank owns. Collective.

    Raises OptionError if the trace format's unknowns are not those of facets.
    """

    def __init__(self, trace_format):
        self.format = trace_format
        self.operator, self.arrays = trace_format.operator, trace_format.arrays
        disc = self.operator.discretization
        self.layout = trace_format.layout or trace_layout(disc.mesh, disc.dofmap, disc.spaces[0])
        self.num_rows = self.layout.num_owned * self.layout.block
        self.row_stride, self.facet_stride = padded(self.num_rows), padded(self.layout.num_facets)
        self.num_owned = disc.dofmap.num_owned
        self._numbers = None if self.layout.is_blocked else trace_format.facet_array(self.layout.numbers.T)
        self.size = self.layout.block * self.row_stride
        self.buffer = self._narrow = None  # the blocks; their inverses as the format stores entries, if not as reals
        self._column = self.arrays.zeros(max(1, self.num_owned))
        self._failed = self.arrays.zeros(1, np.int32)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        specs = self.format.specs.facet_blocks()
        return kernels_of(specs, self.operator.device)

    @property
    def flops(self) -> int:
        """Flops of an application on this rank."""
        return 2 * self.num_rows * self.layout.block

    @property
    def update_flops(self) -> int:
        """Flops of the inversion of all blocks of this rank."""
        return 2 * self.num_rows * self.layout.block**2

    @property
    def block(self) -> int:
        """Rows of a block."""
        return self.layout.block

    def update(self) -> None:
        """Invert the blocks of the matrix as it is now. Collective; raises SolveError, on all ranks."""
        self.collect()
        self.invert()

    def collect(self) -> None:
        """Take the blocks of the matrix as it is now. Collective."""
        sizes = (self.num_rows, self.num_owned, self.facet_stride, self.row_stride)
        if self.buffer is None:
            self.buffer = self.arrays.zeros(self.size)
        for k in range(self.layout.block):
            self.format.apply_column(k, self._column)
            self.kernels["trace_block_column"](self.num_rows, *sizes, k, self._numbers, self._column, self.buffer)

    def invert(self) -> None:
        """Replace the blocks by their inverses. Collective; raises SolveError, on all ranks, for a singular block."""
        self.arrays.fill(self._failed, 0)
        kernel = self.kernels["trace_block_invert"]
        items = self.layout.num_owned * kernel.spec.local_size
        kernel(items, self.layout.num_owned, self.row_stride, self.buffer, self._failed)
        require_regular(
            self.arrays,
            self._failed,
            self.operator.discretization.mesh.comm,
            lambda facet: (
                f"the block of facet {facet} of a rank's own facets in the trace matrix is singular: use "
                "another -pc_type than facet block Jacobi, or change the stabilization"
            ),
        )
        if self.format.stored != self.arrays.real:
            if self._narrow is None:
                self._narrow = self.arrays.empty(self.size, self.format.stored)
            self.kernels["trace_block_store"](self.size, self.size, self.buffer, self._narrow)
            self.buffer = None

    def apply(self, x, y, transpose: bool = False) -> None:
        """y = blocks x, or their transposes x; buffers of owned values."""
        self.combine(None, None, x, y, transpose=transpose)

    def combine(self, product, x, b, y, keep=0.0, mix=0.0, scale=1.0, transpose: bool = False) -> None:
        """y = keep y + mix x + scale blocks (b - product), without product or x where they are None."""
        sizes = (self.num_rows, self.num_owned, self.facet_stride, self.row_stride, int(transpose))
        given = self._numbers, self._narrow or self.buffer, product, x, b, keep, mix, scale, y
        self.kernels["trace_block_apply"](self.num_rows, *sizes, *given)


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
