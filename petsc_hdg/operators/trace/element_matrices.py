"""The trace matrix as element matrices, packed where they are symmetric, once for cells that are congruent."""

from __future__ import annotations

import copy
from functools import cached_property

import numpy as np

from ...device import Kernel, kernels_of
from ...discretizations.base import cell_fastest, padded
from ...discretizations.congruence import Shapes
from ...discretizations.trace.facet_groups import FacetKinds, facet_groups, facet_kinds
from ...value_checks import plural
from ..block_rows import assembly_rows
from ..overlap import assembled_rows, element_cells
from ..vectors import TailedVector
from .format import SYMMETRIC, TraceFormat, tile_asymmetry


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


class ElementMatrices(TraceFormat):
    """Element matrices, packed while all that came so far are symmetric: this rank's own decision, up to rounding.

    congruent: where cells share matrices, the dictionary that then holds all values; see `share`.
    """

    kind = "element"

    def __init__(self, operator, single: bool = False, layout=None):
        super().__init__(operator, single, layout)
        self.stride = operator.discretization.stride
        self.row_stride = padded(self.num_cells * self.cell_dofs)
        self.packed: object | None = None
        self.unpacked: object | None = None
        self.symmetric = True
        self.is_blocked = bool(self.layout and self.layout.is_blocked)  # what kernels of trace_congruent.cl count on
        self.congruent: CongruentFacets | None = None
        self._shapes: Shapes | None = None
        self._assembly: dict = {}

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        specs = self.specs.element_matrices()
        if self.can_share:
            specs |= self.specs.congruent_facets()
        return kernels_of(specs, self.operator.device)

    @property
    def taken(self) -> tuple[str, ...]:
        if self.congruent:
            return "trace_congruent_product", "trace_congruent_column"
        packed = "trace_packed_product", "trace_packed_column"
        return *packed, *(f"trace_element_{name}" for name in ("product", "transposed", "column"))

    @property
    def can_share(self) -> bool:
        """Facets own their unknowns, so that those beside congruent cells have the same blocks."""
        return self.has_facets

    @property
    def rows_alone(self) -> bool:
        """True if a row is computed apart from others."""
        return self.congruent is not None

    @property
    def summing(self):
        """Product that sums x·y meanwhile."""
        return self.congruent

    def share(self, shapes: Shapes | None) -> None:
        if shapes is self._shapes:
            return
        self._shapes, self.congruent = shapes, None
        if shapes is None:
            return
        kinds = facet_kinds(self.layout, shapes.shape)
        if 0 < kinds.count <= self.specs.most_kinds:
            self.congruent, self.packed, self.unpacked = CongruentFacets(self, kinds), None, None

    @cached_property
    def _dofs(self):
        return self.arrays.to_device(self.operator.discretization.cell_dofs(), "cell dofs")

    @cached_property
    def _element(self):
        return self.arrays.empty(self.cell_dofs * max(self.stride, self.num_cells))

    @property
    def matrix_reals(self) -> int:
        pairs = self.cell_dofs * (self.cell_dofs + 1) // 2
        return pairs * self.stride if self.symmetric else self.cell_dofs * self.row_stride

    @property
    def nbytes(self) -> int:
        if self.congruent:
            return self.congruent.nbytes
        return self.matrix_reals * self.stored.itemsize + 4 * self.cell_dofs * self.stride

    @property
    def flops(self) -> int:
        if self.congruent:
            return self.congruent.flops
        return 2 * self.num_cells * self.cell_dofs**2

    @property
    def description(self) -> str:
        if self.congruent:
            cells = f"{plural(self._shapes.count, 'shape')} of {plural(self.num_cells, 'cell')}"
            facets = f"{plural(self.congruent.kinds.count, 'kind')} of {plural(self.congruent.num_facets, 'facet')}"
            return (
                f"matrices of congruent cells, {cells}, {facets} on rank 0, {self.nbytes / 1e6:.1f} MB{self._in_single}"
            )
        how = "packed symmetric" if self.symmetric else "unpacked"
        size = f"{self.cell_dofs} by {self.cell_dofs}, {how}, {plural(self.num_cells, 'cell')} on rank 0"
        return f"element matrices, {size}, {self.nbytes / 1e6:.1f} MB{self._in_single}"

    def add_tile(self, K, first: int, count: int, tile_stride: int | None = None) -> None:
        tile_stride = tile_stride or padded(count)
        if self.congruent:
            self.congruent.add_tile(K, first, count, tile_stride)
            return
        if self.symmetric and tile_asymmetry(self, K, count, tile_stride) > SYMMETRIC[self.arrays.precision]:
            self._unpack()
        name, target, stride = "trace_element_store", self._matrix(), self.row_stride
        if self.symmetric:
            name, stride = "trace_element_pack", self.stride
        self.kernels[name](count * self.cell_dofs, count, first, tile_stride, stride, K, target)

    def add_shapes(self, K, shapes: Shapes) -> bool:
        if not self.congruent or shapes is not self._shapes:
            return False
        self.congruent.add_shapes(K, shapes)
        return True

    def mult(self, x: TailedVector, y_owned, y_ghost, part: int | None = None) -> None:
        if self.congruent:
            self.congruent.mult(x, y_owned, y_ghost, part=part)
            return
        if self.symmetric:
            self._multiply_packed(x, part)
        else:
            self._multiply("trace_element_product", x, part)
        self._assemble(y_owned, y_ghost, part)

    def mult_transpose(self, x: TailedVector, y_owned, y_ghost, part: int | None = None) -> None:
        if self.congruent:
            self.congruent.mult(x, y_owned, y_ghost, transpose=True, part=part)
        elif self.symmetric:
            self.mult(x, y_owned, y_ghost, part)
        else:
            self._multiply("trace_element_transposed", x, part)
            self._assemble(y_owned, y_ghost, part)

    def column(self, k: int, y_owned, y_ghost) -> None:
        if self.congruent:
            self.congruent.column(k, y_owned, y_ghost)
            return
        name, stride = "trace_element_column", self.row_stride
        if self.symmetric:
            name, stride = "trace_packed_column", self.stride
        items = self.num_cells * self.cell_dofs
        self.kernels[name](items, self.num_cells, stride, k, self._matrix(), *self.orientation, self._element)
        self._assemble(y_owned, y_ghost)

    def _multiply_packed(self, x: TailedVector, part: int | None) -> None:
        kernel, cells = self.kernels["trace_packed_product"], self.specs.packed_shape()[0]
        first, last = (k // cells * kernel.spec.local_size for k in self._cells(part, cells))
        sizes = (self.num_cells, self.dofmap.num_owned, self.stride)
        kernel.of_part(part)(last, *sizes, self._matrix(), self._dofs, x.owned, x.tail, self._element, first=first)

    def _multiply(self, name: str, x: TailedVector, part: int | None) -> None:
        sizes = (self.num_cells, self.dofmap.num_owned, self.stride, self.row_stride)
        gathered = (self._dofs, x.owned, x.tail, self._element)
        first, last = (k * self.cell_dofs for k in self._cells(part, self.kernels[name].spec.local_size))
        self.kernels[name].of_part(part)(last, *sizes, self._matrix(), *gathered, first=first)

    def _cells(self, part: int | None, step: int) -> tuple[int, int]:
        """First and last cell of a part, in whole groups of `step` cells."""
        return element_cells(part, self.inner_cells, self.num_cells, step, self.operator.device)

    def _assemble(self, y_owned, y_ghost, part: int | None = None) -> None:
        start, entry = self._rows()
        kernel, owned = self.kernels["assemble"], self.dofmap.num_owned
        first, last = assembled_rows(part, owned, self.num_free, kernel)
        kernel.of_part(part)(last, last, owned, start, entry, self._element, y_owned, y_ghost, first=first)

    def _rows(self):
        """Entries of the element vectors that each owned and ghost value sums, on the device."""
        if self.symmetric not in self._assembly:
            numbers = self.dofmap.compact[self.dofmap.cell_dofs]
            place = numbers, numbers.size, 1, 1, 0
            if self.symmetric:
                place = cell_fastest(numbers, self.stride), self.cell_dofs * self.stride, self.stride, len(numbers), 0
            self._assembly[self.symmetric] = assembly_rows(self.arrays, None, [place], self.num_free)
        return self._assembly[self.symmetric]

    def _matrix(self):
        """Buffer of the values, zero at first."""
        name = "packed" if self.symmetric else "unpacked"
        if getattr(self, name) is None:
            setattr(self, name, self.arrays.zeros(self.matrix_reals, self.stored))
        return getattr(self, name)

    def _unpack(self) -> None:
        """Store unpacked from now on; what was packed so far is kept."""
        packed = self._matrix()
        self.symmetric, self.packed = False, None
        items = self.num_cells * self.cell_dofs
        self.kernels["trace_element_unpack"](
            items, self.num_cells, self.stride, self.row_stride, packed, self._matrix()
        )

    def use_kernels_of(self, other: ElementMatrices) -> None:
        super().use_kernels_of(other)
        self.is_blocked = other.is_blocked

    def _copy_values(self) -> None:
        if self.congruent:
            self.congruent = self.congruent.copied(self)
            return
        name = "packed" if self.symmetric else "unpacked"
        setattr(self, name, self._copied(self._matrix(), self.matrix_reals))
        self._element = self.arrays.empty(self.cell_dofs * max(self.stride, self.num_cells))
