"""The trace matrix of a symmetric problem, half of its entries stored."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from ...device import Kernel
from ...device.platforms import opencl
from ...discretizations.base import padded
from ...discretizations.trace.facet_groups import facet_patches
from ...errors import SolveError
from ...value_checks import plural
from ..overlap import FIRST, OUTER
from ..vectors import TailedVector
from .format import TraceFormat

SYMMETRIC = {"double": 1e-11, "single": 1e-4}  # |K - Kᵀ| over |K| below which an element matrix counts as symmetric


class SymmetricBlocks(TraceFormat):
    """Blocks between two facets of a cell once, and the sum of each facet's own one, packed, patch by patch of cells.

    A product reads (F - 1) F / 2 m² + F m (m + 1) / 4 numbers a cell, half of the dense block format.
    asymmetric: whether a matrix that came since the last `clear` is not symmetric; products are wrong then.
    parts: buffer [num_parts] for parts of x·y on this rank, if products are to sum it.
    """

    kind = "symmetric"
    parts = None

    def __init__(self, operator, layout=None):
        super().__init__(operator, layout)
        self.asymmetric = False
        self.cell_stride, self.facet_stride = padded(self.num_cells), padded(self.layout.num_facets)
        self._lay_out(self.specs.symmetric_shape())

    def _lay_out(self, shape) -> None:
        """Make patches of `shape`, of fewer cells if local memory cannot hold the largest, and the buffers."""
        layout, arrays = self.layout, self.arrays
        self.shape, patches = shape, facet_patches(layout, shape.cells)
        while self._local_bytes(patches) > self.operator.device.local_bytes and self.shape.cells > 1:
            self.shape = replace(self.shape, cells=self.shape.cells // 2)
            patches = facet_patches(layout, self.shape.cells)
        self.patches = patches
        self._first, self._facet, self._order, self._slot, self._cut = (
            arrays.to_device(a, "trace layout")
            for a in (patches.first, patches.facet, patches.order, patches.slot, patches.cut)
        )
        self._left = arrays.empty(max(1, patches.cut.shape[1] * layout.block))
        self._local = opencl().LocalMemory(self._local_bytes(patches))
        self.pairs, self.own = (arrays.zeros(n) for n in self._sizes)

    def _local_bytes(self, patches) -> int:
        return self.shape.local_reals(patches.most) * self.arrays.real.itemsize

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        return {n: Kernel(s, self.operator.device) for n, s in self.specs.symmetric_blocks(self.shape).items()}

    @property
    def taken(self) -> tuple[str, ...]:
        return tuple(f"trace_symmetric_{name}" for name in ("product", "cut", "column"))

    @property
    def _sizes(self) -> tuple[int, int]:
        """Entries of `pairs` and of `own`."""
        m, facets = self.layout.block, self.layout.facets_per_cell
        pairs = facets * (facets - 1) // 2 * m * m
        cells = self.patches.count * self.shape.cells
        return max(1, pairs * cells), max(1, m * (m + 1) // 2 * self.layout.num_facets)

    @property
    def nbytes(self) -> int:
        numbers = 0 if self.is_blocked else 4 * self.layout.block * self.facet_stride
        return sum(self._sizes) * self.arrays.real.itemsize + self.patches.nbytes + numbers

    @property
    def flops(self) -> int:
        return 2 * self.layout.num_blocks * self.layout.block**2

    @property
    def description(self) -> str:
        m = self.layout.block
        size = f"blocks of {m} by {m} of {plural(self.num_cells, 'cell')} on rank 0"
        return f"symmetric blocks, each once, {size}, {self.nbytes / 1e6:.1f} MB"

    @property
    def num_parts(self) -> int:
        """Threads of all patches."""
        return self.patches.count * self.shape.threads

    def clear(self) -> None:
        self.asymmetric = False

    def add_tile(self, K, first: int, count: int, tile_stride: int | None = None) -> None:
        tile_stride = tile_stride or padded(count)
        if self.asymmetric or self._asymmetry(K, count, tile_stride) > SYMMETRIC[self.arrays.precision]:
            self.asymmetric = True
            return
        self.kernels["trace_symmetric_pairs"](
            count * self.cell_dofs, count, first, tile_stride, *self.orientation, K, self.pairs
        )
        listed, size = self._listed(first, count)
        self.kernels["trace_symmetric_own"](
            size * self.layout.block, size, first, count, tile_stride, self.facet_stride, listed, self._first,
            *self._sides, *self.orientation, K, self.own,
        )  # fmt: skip

    def _asymmetry(self, K, count: int, tile_stride: int) -> float:
        """Largest |K - Kᵀ| of a cell of a tile over the largest entry of that cell."""
        kernel = self.kernels["trace_symmetric_asymmetry"]
        groups = -(-count // kernel.spec.local_size)
        largest = self.arrays.empty(max(1, groups))
        kernel(count, count, tile_stride, K, largest)
        return float(self.arrays.to_host(largest, groups, name="symmetry").max(initial=0.0))

    def mult(self, x: TailedVector, y_owned, y_ghost, part: int | None = None, transpose: bool = False) -> None:
        if self.asymmetric:
            raise SolveError("the trace matrix is not symmetric: use -hdg_trace_mat auto or dbf")
        owned, free, numbers = self.dofmap.num_owned, self.num_free, padded(self.layout.num_facets)
        cells = self.shape.cells
        first, last = self.part_range(part, self.inner_cells, self.patches.count * cells, cells)
        self.kernels["trace_symmetric_product"].of_part(part)(
            last // cells * self.shape.threads, self.num_cells, owned, free, self.cell_stride, numbers,
            self.patches.most, self.pairs, self.own, self._first, self._facet, self._slot, self._numbers,
            x.owned, x.tail, y_owned, y_ghost, self._left, self._local, self.parts,
            first=first // cells * self.shape.threads,
        )  # fmt: skip
        if part in (FIRST, OUTER):
            return  # facets between patches are between cells of this rank: no ghosts
        count = self.patches.cut.shape[1]
        self.kernels["trace_symmetric_cut"](
            count * self.layout.block, count, owned, free, numbers, self._cut, self._numbers, self._left, y_owned,
            y_ghost,
        )  # fmt: skip

    def column(self, k: int, y_owned, y_ghost) -> None:
        self.kernels["trace_symmetric_column"](
            self.layout.num_facets * self.layout.block, self.layout.num_facets, self.dofmap.num_owned, self.num_free,
            padded(self.layout.num_facets), k, self.own, self._first, self._sides[0], self._order, self._numbers,
            y_owned, y_ghost,
        )  # fmt: skip

    def use_kernels_of(self, other: SymmetricBlocks) -> None:
        super().use_kernels_of(other)
        self._lay_out(other.shape)

    def _copy_values(self) -> None:
        self.pairs, self.own = (self._copied(b, n) for b, n in zip((self.pairs, self.own), self._sizes, strict=True))
        self._left = self.arrays.empty(max(1, self.patches.cut.shape[1] * self.layout.block))

    @cached_property
    def _sides(self):
        """Cells of each facet in the order of `own`, and its places in them."""
        order = self.patches.order
        return tuple(self.facet_array(a[:, order]) for a in (self.layout.cells, self.layout.local))

    def _items_of_tile(self, first: int, count: int) -> np.ndarray:
        """Places of the facets in `own`."""
        return np.sort(self._place[super()._items_of_tile(first, count)])

    @cached_property
    def _place(self) -> np.ndarray:
        """Place of each facet in `own`, int32."""
        place = np.empty(self.layout.num_facets, dtype=np.int32)
        place[self.patches.order] = np.arange(len(place), dtype=np.int32)
        return place
