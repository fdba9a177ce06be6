"""The trace matrix in dense block format, assembled facet by facet."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...device import Kernel, kernels_of
from ...discretizations.base import padded
from ...value_checks import plural
from ..vectors import TailedVector
from .format import TraceFormat


class DenseBlock(TraceFormat):
    """A [n_a, m, n_f m], rows of facets fastest, one dense block a neighbour (Roca, Nguyen and Peraire 2011)."""

    kind = "dbf"
    rows_alone = True

    def __init__(self, operator, layout=None):
        super().__init__(operator, layout)
        layout, arrays = self.layout, self.arrays
        self.facet_stride = padded(layout.num_facets)
        self.num_rows = layout.num_facets * layout.block
        self.row_stride = padded(self.num_rows)
        self._adjacent = self.facet_array(np.where(layout.neighbours < 0, layout.neighbours[:1], layout.neighbours))
        self.A = arrays.zeros(self.matrix_reals)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        return kernels_of(self.specs.dense_blocks(), self.operator.device)

    @property
    def taken(self) -> tuple[str, ...]:
        return "trace_assemble", *(f"trace_dbf_{name}" for name in ("product", "transposed", "column"))

    @property
    def matrix_reals(self) -> int:
        return self.layout.num_slots * self.layout.block * self.row_stride

    @property
    def nbytes(self) -> int:
        indices = self.layout.num_slots + (0 if self.layout.is_blocked else self.layout.block)
        return self.matrix_reals * self.arrays.real.itemsize + 4 * indices * self.facet_stride

    @property
    def flops(self) -> int:
        return 2 * self.num_rows * self.layout.num_slots * self.layout.block

    @property
    def description(self) -> str:
        layout = self.layout
        size = f"{layout.num_slots} blocks of {layout.block} by {layout.block} a facet"
        stored = f"{self.nbytes / 1e6:.1f} MB"
        return f"dense block format, {size}, {plural(layout.num_facets, 'facet')} on rank 0, {stored}"

    def add_tile(self, K, first: int, count: int, tile_stride: int | None = None) -> None:
        listed, size = self._listed(first, count)
        block, cells = self.layout.block, self._sides[0]
        self.kernels["trace_assemble"](
            size * block, size, first, count, tile_stride or padded(count), self.facet_stride, block, self.row_stride,
            listed, cells, *self._sides, *self.orientation, self._adjacent, K, self.A, None,
        )  # fmt: skip

    def mult(self, x: TailedVector, y_owned, y_ghost, part: int | None = None, transpose: bool = False) -> None:
        name, rows = ("transposed", 1) if transpose else ("product", self.specs.dense_rows)
        where = (self._adjacent, *((self._reverse,) if transpose else ()), self._numbers)
        self._rows(name, self.A, *where, x.owned, x.tail, y_owned, y_ghost, part=part, rows_of_item=rows)

    def column(self, k: int, y_owned, y_ghost) -> None:
        self._rows("column", k, self.A, self._numbers, y_owned, y_ghost)

    def _rows(self, name: str, *arguments, part: int | None = None, rows_of_item: int = 1) -> None:
        sizes = (self.num_rows, self.dofmap.num_owned, self.num_free, self.facet_stride, self.row_stride)
        kernel, inner = self.kernels[f"trace_dbf_{name}"], self.layout.num_inner * self.layout.block // rows_of_item
        first, last = self.part_range(part, inner, self.num_rows // rows_of_item, kernel.spec.local_size)
        kernel.of_part(part)(last, *sizes, *arguments, first=first)

    def _copy_values(self) -> None:
        self.A = self._copied(self.A, self.matrix_reals)

    @cached_property
    def _reverse(self):
        return self.facet_array(self.layout.reverse)

    @cached_property
    def _sides(self):
        return self.facet_array(self.layout.cells), self.facet_array(self.layout.local)
