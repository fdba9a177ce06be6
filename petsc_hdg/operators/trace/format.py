"""Base of the storage formats of a trace matrix: products that end with the sum over ranks."""

from __future__ import annotations

import copy
from functools import cached_property, partial

import numpy as np

from ...discretizations.base import cell_fastest, padded
from ...discretizations.trace.element import TraceElement
from ...discretizations.trace.layout import trace_layout
from ...discretizations.trace.specs import TraceSpecs
from ...discretizations.transposition import DeviceLimits
from ..overlap import in_parts, part_range
from ..vectors import TailedVector


class TraceFormat:
    """Base of formats: products that end with the sum over ranks, and arguments of kernels.

    A format holds this rank's part, summed over its own cells: rows of ghosts stand in a second vector, y_ghost
    [num_ghosts], which belongs to the owners. Essential values of a vector x must be zero.
    `add_tile(K, first, count)` takes the matrices of all cells in ascending tiles, each time the matrix changes.
    Subclasses have, beside `kernels` and `_copy_values`,

    taken        kernels it takes as it is, by name, whose results can be compared; others come before one of these
    nbytes       of device memory that hold the matrix and its indices
    flops        of one product on this rank
    description  a few words on the storage
    add_tile(K, first, count, tile_stride=None)   take the matrices K [column, tile_stride, row] of cells first …
    mult(x, y_owned, y_ghost, part=None, transpose=False)   y = A x, or Aᵀ x, on this rank, or a part of its rows as
                 overlap.py has them: all of y_ghost is in OUTER
    column(k, y_owned, y_ghost)   y = entry k of each row within its facet's own block; the diagonal for k = -1
    """

    kind = ""
    border = None  # Border, which completes products where its facets lie between ranks
    rows_alone = False  # whether a row is computed apart from others
    can_share = False  # whether cells of one shape may share a matrix, see `share`

    def __init__(self, operator, layout=None):
        """layout: the TraceLayout, if there is one already."""
        self.operator = operator
        self.arrays = operator.arrays
        disc = operator.discretization
        self.dofmap, self.num_cells = disc.dofmap, disc.mesh.num_cells
        device = operator.device
        space = disc.spaces[0]
        self.cell_dofs = space.num_dofs
        self.has_facets = isinstance(space.element, TraceElement)
        self.layout = layout
        if layout is None and self.has_facets:
            self.layout = trace_layout(disc.mesh, self.dofmap, space)
        self.is_blocked = bool(self.layout and self.layout.is_blocked)  # what kernels count on
        limits = DeviceLimits.of(device)
        self.specs = TraceSpecs(self.layout, self.cell_dofs, self.arrays.precision, limits)
        self._x, self._ghost_sums = TailedVector(operator), self.arrays.empty(max(1, self.dofmap.num_ghosts))
        self._tiles: dict = {}

    def clear(self) -> None:
        """Forget the values before new tiles come (they overwrite every entry, so that there is nothing to do)."""

    def retry(self) -> bool:
        """True if all tiles are to come once more, because the matrix is not what the format had counted on."""
        return False

    @cached_property
    def most_shapes(self) -> int:
        """Shapes of cells above which sharing surely does not pay."""
        return 2 * self.specs.most_kinds // self.layout.facets_per_cell

    def share(self, shapes) -> None:
        """From now on cells of one of the Shapes have the same matrix (None: each has its own), if `can_share`."""

    def add_shapes(self, K, shapes) -> bool:
        """Take the matrices K [column, shape, row] of the Shapes of `share`, not tiles. Returns whether it can."""
        return False

    def diagonal(self, y_owned, y_ghost) -> None:
        """y = diagonal, on this rank."""
        self.column(-1, y_owned, y_ghost)

    def compile_variants(self) -> None:
        """Compile what other meshes would take, too. Not collective."""

    # Over all ranks, on buffers of owned values -----------------------------------------------------------

    def apply(self, x, out, transpose: bool = False) -> None:
        """out = A x, or Aᵀ x. Collective."""

        def run(vector, part):
            self.mult(vector, out, self._ghost_sums, part, transpose)

        if self.border is not None and not transpose:
            self.border.product(x, out, run, self.rows_alone)
        else:
            in_parts(self._x, x, partial(run, self._x), out, self._ghost_sums)

    @cached_property
    def inner_cells(self) -> int:
        """Cells, the first ones, that have no unknown in common with other ranks."""
        mesh = self.operator.discretization.mesh
        return mesh.num_facet_inner if self.has_facets else mesh.num_inner

    def part_range(self, part: int | None, inner: int, total: int, step: int) -> tuple[int, int]:
        """First and last item of a part, see overlap.py."""
        return part_range(part, inner, total, step, self.operator.device)

    def apply_column(self, k: int, out) -> None:
        """out = `column` k summed over ranks. Collective."""
        self.column(k, out, self._ghost_sums)
        self.operator.halo.reverse_add(self._ghost_sums, out)

    def copy(self) -> TraceFormat:
        """A format of its own with the same values."""
        other = copy.copy(self)
        other._x, other._ghost_sums = TailedVector(self.operator), self.arrays.empty(max(1, self.dofmap.num_ghosts))
        other.border = self.border and self.border.copied()
        other._copy_values()
        return other

    def use_kernels_of(self, other: TraceFormat) -> None:
        """Launch the kernels of a format of the same kind, element and components."""
        self.kernels, self.is_blocked = other.kernels, other.is_blocked

    def _copied(self, buffer, count: int):
        """A copy of a buffer of `count` entries."""
        new = self.arrays.empty(count)
        self.arrays.copy(buffer, new, count)
        return new

    # Shared arguments -------------------------------------------------------------------------------------

    def facet_array(self, values: np.ndarray):
        """Device array [row, stride] int32 of an array [row, facet], zeros behind."""
        values = values.astype(np.int32, copy=False)
        return self.arrays.to_device(cell_fastest(values.T, padded(values.shape[1])), "trace layout")

    @cached_property
    def _numbers(self):
        """Device array `numbers` of kernels, None where they read none."""
        return None if self.is_blocked else self.facet_array(self.layout.numbers.T)

    def _listed(self, first: int, count: int):
        """Device list of a tile's items and its length, kept for the next time."""
        if (first, count) not in self._tiles:
            items = self._items_of_tile(first, count)
            self._tiles[first, count] = (self.arrays.to_device(items, "trace layout"), len(items))
        return self._tiles[first, count]

    def _items_of_tile(self, first: int, count: int) -> np.ndarray:
        """Facets of cells first … first + count - 1, as kernels number them."""
        return self.layout.facets_of_cells(first, count)

    @property
    def num_free(self) -> int:
        return self.dofmap.num_owned + self.dofmap.num_ghosts

    @cached_property
    def orientation(self) -> tuple:
        """Device arrays `orientation` and `permutations` of the layout, or None where there is none."""
        if self.layout is None:
            return None, None
        arrays = (self.layout.orientation, self.layout.permutations)
        return tuple(self.arrays.to_device(a, "trace layout") for a in arrays)
