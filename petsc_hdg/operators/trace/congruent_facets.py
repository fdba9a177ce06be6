"""The trace matrix of cells that are copies of each other: the blocks of each kind of facet once."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...device import Kernel, kernels_of
from ...discretizations.base import padded
from ...discretizations.congruence import Shapes
from ...discretizations.trace.facet_groups import FacetKinds, facet_groups, facet_kinds
from ...value_checks import plural
from ..vectors import TailedVector
from .format import TraceFormat


class CongruentFacets(TraceFormat):
    """Dictionary [kind, n_a, m, width] of dense blocks and that of the transposed matrix; products with both.

    shapes: of the cells, which have one matrix each.   kinds: FacetKinds of them, if there are some already.
    parts: buffer [num_parts] for parts of x·y on this rank, if products are to sum it.
    """

    kind = "congruent"
    rows_alone = True
    parts = None

    def __init__(self, operator, layout, shapes: Shapes, kinds: FacetKinds | None = None):
        super().__init__(operator, layout)
        layout, self.shapes = self.layout, shapes
        self.kinds = kinds = kinds or facet_kinds(layout, shapes.shape)
        self.shape = self.specs.congruent_shape()
        self.num_facets, self.facet_stride = layout.num_facets, padded(layout.num_facets)
        self.groups = facet_groups(kinds, self.shape.facets)
        listed = (getattr(self.groups, name) for name in ("heads", "entry", "adjacent", "kinds", "far"))
        self._groups = [self.arrays.to_device(a, "trace layout") for a in listed]
        self._cells, local = layout.cells[:, kinds.representative], layout.local[:, kinds.representative]
        self._sides = self.facet_array(self._cells), self.facet_array(local)
        self.blocks, self.transposed = (self.arrays.zeros(self.num_reals) for _ in range(2))

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        return kernels_of(self.specs.congruent_facets(), self.operator.device)

    @property
    def taken(self) -> tuple[str, ...]:
        return "trace_congruent_product", "trace_congruent_column"

    @property
    def num_reals(self) -> int:
        """Reals of one dictionary."""
        return max(1, self.kinds.count) * self.specs.congruent_reals

    @property
    def nbytes(self) -> int:
        numbers = 0 if self.is_blocked else 4 * self.layout.block * self.facet_stride
        return 2 * self.num_reals * self.arrays.real.itemsize + self.groups.nbytes + numbers

    @property
    def flops(self) -> int:
        return 2 * self.num_facets * self.layout.num_slots * self.layout.block**2

    @property
    def description(self) -> str:
        cells = f"{plural(self.shapes.count, 'shape')} of {plural(self.num_cells, 'cell')}"
        facets = f"{plural(self.kinds.count, 'kind')} of {plural(self.num_facets, 'facet')}"
        return f"matrices of congruent cells, {cells}, {facets} on rank 0, {self.nbytes / 1e6:.1f} MB"

    @property
    def num_parts(self) -> int:
        """Threads of all groups of facets."""
        return self.groups.count * self.shape.facets * self.shape.parts

    def add_tile(self, K, first: int, count: int, tile_stride: int | None = None) -> None:
        self._take(K, first, count, tile_stride or padded(count), *self._listed(first, count), self._sides[0])

    def _items_of_tile(self, first: int, count: int) -> np.ndarray:
        """Kinds whose representative has one of the cells first … first + count - 1."""
        inside = (self._cells >= first) & (self._cells < first + count)
        return np.flatnonzero(inside.any(axis=0)).astype(np.int32)

    def add_shapes(self, K, shapes: Shapes) -> bool:
        if shapes is not self.shapes:
            return False
        self._take(K, 0, shapes.count, shapes.count, *self._listed(0, self.num_cells), self._shapes_of_sides)
        return True

    @cached_property
    def _shapes_of_sides(self):
        """Shape of each cell of the kinds' representatives."""
        return self.facet_array(np.where(self._cells < 0, -1, self.shapes.shape[self._cells]))

    def _take(self, K, first: int, count: int, tile_stride: int, listed, size: int, source) -> None:
        """Take the blocks of listed kinds from the matrices K [column, tile_stride, row] number first …"""
        block, width = self.layout.block, self.shape.parts * self.shape.rows
        self.kernels["trace_assemble"](
            size * block, size, first, count, tile_stride, padded(self.kinds.count),
            self.layout.num_slots * block * width, width, listed, source, *self._sides, *self.orientation, None, K,
            self.blocks, self.transposed,
        )  # fmt: skip

    def mult(self, x: TailedVector, y_owned, y_ghost, part: int | None = None, transpose: bool = False) -> None:
        blocks, facets, inner = self.transposed if transpose else self.blocks, self.shape.facets, self.layout.num_inner
        ends = self.part_range(part, inner, self.groups.count * facets, facets)
        first, last = (end * self.shape.parts for end in ends)
        self.kernels["trace_congruent_product"].of_part(part)(
            last, *self._sizes, blocks, *self._groups, self._numbers, x.owned, x.tail, y_owned, y_ghost, self.parts,
            first=first,
        )  # fmt: skip

    def column(self, k: int, y_owned, y_ghost) -> None:
        items, given = self.num_facets * self.layout.block, (k, self.blocks, *self._groups, self._numbers)
        self.kernels["trace_congruent_column"](items, *self._sizes, *given, y_owned, y_ghost)

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.num_facets, self.dofmap.num_owned, self.num_free, self.facet_stride

    def _copy_values(self) -> None:
        self.blocks, self.transposed = (self._copied(b, self.num_reals) for b in (self.blocks, self.transposed))
