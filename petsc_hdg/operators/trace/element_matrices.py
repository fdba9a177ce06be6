"""The trace matrix as element matrices."""

from __future__ import annotations

from functools import cached_property

from ...device import Kernel, kernels_of
from ...discretizations.base import padded
from ...value_checks import plural
from ..block_rows import assembly_rows
from ..overlap import assembled_rows, element_cells
from ..vectors import TailedVector
from .format import TraceFormat


class ElementMatrices(TraceFormat):
    """Element matrices [m F, cell m F], one for each cell, applied between spread and sum."""

    kind = "element"

    def __init__(self, operator, layout=None):
        super().__init__(operator, layout)
        self.stride = operator.discretization.stride
        self.row_stride = padded(self.num_cells * self.cell_dofs)
        self.values = self.arrays.zeros(self.matrix_reals)
        self._element = self.arrays.empty(self.row_stride)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        return kernels_of(self.specs.element_matrices(), self.operator.device)

    @property
    def taken(self) -> tuple[str, ...]:
        return tuple(f"trace_element_{name}" for name in ("product", "transposed", "column"))

    @cached_property
    def _dofs(self):
        return self.arrays.to_device(self.operator.discretization.cell_dofs(), "cell dofs")

    @property
    def matrix_reals(self) -> int:
        return self.cell_dofs * self.row_stride

    @property
    def nbytes(self) -> int:
        return self.matrix_reals * self.arrays.real.itemsize + 4 * self.cell_dofs * self.stride

    @property
    def flops(self) -> int:
        return 2 * self.num_cells * self.cell_dofs**2

    @property
    def description(self) -> str:
        size = f"{self.cell_dofs} by {self.cell_dofs}, {plural(self.num_cells, 'cell')} on rank 0"
        return f"element matrices, {size}, {self.nbytes / 1e6:.1f} MB"

    def add_tile(self, K, first: int, count: int, tile_stride: int | None = None) -> None:
        sizes = count * self.cell_dofs, count, first, tile_stride or padded(count), self.row_stride
        self.kernels["trace_element_store"](*sizes, K, self.values)

    def column(self, k: int, y_owned, y_ghost) -> None:
        sizes = self.num_cells * self.cell_dofs, self.num_cells, self.row_stride
        self.kernels["trace_element_column"](*sizes, k, self.values, *self.orientation, self._element)
        self._assemble(y_owned, y_ghost)

    def mult(self, x: TailedVector, y_owned, y_ghost, part: int | None = None, transpose: bool = False) -> None:
        kernel = self.kernels["trace_element_transposed" if transpose else "trace_element_product"]
        sizes = (self.num_cells, self.dofmap.num_owned, self.stride, self.row_stride)
        gathered = (self._dofs, x.owned, x.tail, self._element)
        cells = element_cells(part, self.inner_cells, self.num_cells, kernel.spec.local_size, self.operator.device)
        first, last = (k * self.cell_dofs for k in cells)
        kernel.of_part(part)(last, *sizes, self.values, *gathered, first=first)
        self._assemble(y_owned, y_ghost, part)

    def _assemble(self, y_owned, y_ghost, part: int | None = None) -> None:
        start, entry = self._rows
        kernel, owned = self.kernels["assemble"], self.dofmap.num_owned
        first, last = assembled_rows(part, owned, self.num_free, kernel)
        kernel.of_part(part)(last, last, owned, start, entry, self._element, y_owned, y_ghost, first=first)

    @cached_property
    def _rows(self):
        """Entries of the element vectors that each owned and ghost value sums, on the device."""
        numbers = self.dofmap.compact[self.dofmap.cell_dofs]
        return assembly_rows(self.arrays, None, [(numbers, numbers.size, 1, 1, 0)], self.num_free)

    def _copy_values(self) -> None:
        self.values = self._copied(self.values, self.matrix_reals)
        self._element = self.arrays.empty(self.row_stride)
