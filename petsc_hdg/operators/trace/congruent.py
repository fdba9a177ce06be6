"""The trace matrix of congruent cells: one set of dense blocks for each kind of facet."""

from __future__ import annotations

import copy

import numpy as np

from ...discretizations.base import padded
from ...discretizations.trace.facet_groups import FacetKinds, facet_groups


class CongruentFacets:
    """Dictionary [kind, n_a, m, width] of dense blocks and that of the transposed matrix; products with both.

    trace: the ElementMatrices whose layout, kernels and buffers it uses.
    parts: buffer [num_parts] for parts of x·y on this rank, if products are to sum it.
    """

    parts = None

    def __init__(self, trace, kinds: FacetKinds):
        self.trace, self.kinds, self.arrays = trace, kinds, trace.arrays
        layout = trace.layout
        self.shape = trace.specs.congruent_shape()
        self.num_facets, self.facet_stride = layout.num_facets, padded(layout.num_facets)
        self.kind_stride = padded(kinds.count)
        self.groups = facet_groups(kinds, self.shape.facets)
        listed = (getattr(self.groups, name) for name in ("heads", "entry", "adjacent", "kinds", "far"))
        self._listed = [self.arrays.to_device(a, "trace layout") for a in listed]
        self._numbers = None if trace.is_blocked else trace.facet_array(layout.numbers.T)
        self._cells, self._local = layout.cells[:, kinds.representative], layout.local[:, kinds.representative]
        self._sides = trace.facet_array(self._cells), trace.facet_array(self._local)
        self.blocks, self.transposed = (self.arrays.zeros(self.num_reals, trace.stored) for _ in range(2))
        self._tiles: dict = {}

    @property
    def num_reals(self) -> int:
        """Reals of one dictionary."""
        return max(1, self.kinds.count) * self.trace.specs.congruent_reals

    @property
    def nbytes(self) -> int:
        """Bytes of the dictionaries and of the facets' numbers."""
        numbers = 0 if self.trace.is_blocked else 4 * self.trace.layout.block * self.facet_stride
        return 2 * self.num_reals * self.trace.stored.itemsize + self.groups.nbytes + numbers

    @property
    def flops(self) -> int:
        """Additions and multiplications of one product on this rank."""
        layout = self.trace.layout
        return 2 * layout.num_facets * layout.num_slots * layout.block**2

    @property
    def num_parts(self) -> int:
        """Threads of all groups of facets."""
        return self.groups.count * self.shape.facets * self.shape.parts

    def add_tile(self, K, first: int, count: int, tile_stride: int) -> None:
        """Take the blocks of the kinds whose representative has one of the cells first … first + count - 1."""
        if (first, count) not in self._tiles:
            inside = ((self._cells >= first) & (self._cells < first + count)).any(axis=0)
            listed = np.flatnonzero(inside).astype(np.int32)
            self._tiles[first, count] = (self.arrays.to_device(listed, "trace layout"), len(listed))
        listed, size = self._tiles[first, count]
        self._assemble(K, first, count, tile_stride, listed, size, self._sides[0])

    def add_shapes(self, K, shapes) -> None:
        """Take all blocks from the matrices K [column, shape, row] of the shapes of cells."""
        size = self.kinds.count
        if size not in self._tiles:
            source = np.where(self._cells < 0, -1, shapes.shape[self._cells])
            everything = self.arrays.to_device(np.arange(size, dtype=np.int32), "trace layout")
            self._tiles[size] = everything, self.trace.facet_array(source)
        listed, source = self._tiles[size]
        self._assemble(K, 0, shapes.count, shapes.count, listed, size, source)

    def _assemble(self, K, first, count, tile_stride, listed, size, source) -> None:
        self.trace.kernels["trace_congruent_assemble"](
            size * self.trace.layout.block, size, first, count, tile_stride, self.kind_stride, listed, source,
            *self._sides, *self.trace.orientation, K, self.blocks, self.transposed,
        )  # fmt: skip

    def mult(self, x, y_owned, y_ghost, transpose: bool = False, part: int | None = None) -> None:
        """y = A x or Aᵀ x on this rank, or a part of its rows, see TraceFormat.mult."""
        facets, inner = self.shape.facets, self.trace.layout.num_inner
        ends = self.trace.part_range(part, inner, self.groups.count * facets, facets)
        first, last = (end * self.shape.parts for end in ends)
        self.trace.kernels["trace_congruent_product"].of_part(part)(
            last, *self._sizes, self.transposed if transpose else self.blocks, *self._listed, self._numbers, x.owned,
            x.tail, y_owned, y_ghost, self.parts, first=first,
        )  # fmt: skip

    def column(self, k: int, y_owned, y_ghost) -> None:
        """As TraceFormat.column."""
        self.trace.kernels["trace_congruent_column"](
            self.num_facets * self.trace.layout.block, *self._sizes, k, self.blocks, *self._listed, self._numbers,
            y_owned, y_ghost,
        )  # fmt: skip

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.num_facets, self.trace.dofmap.num_owned, self.trace.num_free, self.facet_stride

    def copied(self, trace) -> CongruentFacets:
        """The same values for another format, in dictionaries of their own."""
        other = copy.copy(self)
        other.trace = trace
        for name in ("blocks", "transposed"):
            setattr(other, name, trace._copied(getattr(self, name), self.num_reals))
        return other
