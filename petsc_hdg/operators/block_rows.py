"""Rows of matrices on the device of one rank: sparse matrices of dense blocks, their products and transposes; patterns
of assembled matrices, and sums of element matrices.

Patterns are found once; values are computed anew, in the same order, as often as those of the factors change.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..codegen import KernelSpec
from ..device import AllGather, Kernel, gathered
from ..errors import SolveError

GROUP = 64
MOST_FOUND = 1 << 26  # columns that are looked at in one launch
SOURCE = "block_rows.cl"
MOST_LISTED = 1 << 32  # entries of element matrices that have a place
FEW = 1_000_000  # entries of element matrices that PETSc sorts on a CPU sooner than kernels for them are there
FEW_PLACES = 1 << 18  # places up to which numpy lists them on a CPU, in less time than kernels take to compile
MOST_DOFS, MOST_DOFS_ON_CPU = 32, 100  # of a cell: longer rows would be searched for too long
# Rows that each rank has all of: a GPU sets them up sooner than all hosts do their parts, and smooths them sooner than
# parts of them with an exchange a product.
MOST_ROWS = 1 << 22


class BlockRows:
    """A matrix [num_rows, num_columns] of blocks `shape`, of which `starts` [num_rows + 1] is on the host.

    Buffers: starts_buffer [num_rows + 1], columns [count] ascending in each row, values [count, *shape].
    """

    def __init__(self, arrays, shape, num_columns: int, starts: np.ndarray, columns=None, values=None):
        self.arrays, self.shape, self.num_columns = arrays, shape, num_columns
        self.starts, self.num_rows, self.count = starts, len(starts) - 1, int(starts[-1])
        if self.count * shape[0] * shape[1] >= 1 << 31:
            raise SolveError(f"a level of multigrid has {self.count} blocks of {shape}: beyond 2³¹ entries")
        self.starts_buffer = arrays.to_device(starts, "matrices")
        self.columns = arrays.empty(self.count, np.int32) if columns is None else columns
        self.values = arrays.empty(self.count * shape[0] * shape[1]) if values is None else values

    @property
    def pattern(self) -> tuple:
        """Buffers of starts and columns."""
        return self.starts_buffer, self.columns

    @property
    def all(self) -> tuple:
        """Buffers of starts, columns and values."""
        return *self.pattern, self.values

    def dense(self) -> np.ndarray:
        """The matrix [row, column] of numbers, on the host."""
        (height, width), to_host = self.shape, self.arrays.to_host
        columns = to_host(self.columns, self.count, np.int32, "matrices")
        values = to_host(self.values, (self.count, height, width), name="matrices")
        found = np.zeros((self.num_rows, height, self.num_columns, width))
        found[np.repeat(np.arange(self.num_rows), np.diff(self.starts)), :, columns] = values
        return found.reshape(self.num_rows * height, -1)


class BlockKernels:
    """Kernels for blocks of some sizes, by name."""

    def __init__(self, arrays, sources: tuple[str, ...] = (SOURCE,), **macros: int):
        self.arrays, self._sources, self._made = arrays, sources, {}
        self._macros = {"GROUP": GROUP, "ROWS": 1, "INNER": 1, "COLUMNS": 1, "PART": 1, **macros}

    def run(self, name: str, items: int, *arguments) -> None:
        """Launch over `items` work-items."""
        if name not in self._made:
            self._made[name] = Kernel(self.spec(name), self.arrays.device)
        self._made[name](items, *arguments)

    def spec(self, name: str) -> KernelSpec:
        """Spec of one of them; all share a program."""
        return KernelSpec(name, self._sources, self._macros, precision=self.arrays.precision, local_size=GROUP)


def starts_of(arrays, counts, rows: int) -> np.ndarray:
    """Starts [row + 1] from a buffer of counts [row]."""
    found = np.zeros(rows + 1, np.int64)
    np.cumsum(arrays.to_host(counts, rows, np.int32, "matrices"), out=found[1:])
    return found


class Product:
    """C = A B, in `result`; `update` computes its values."""

    def __init__(self, a: BlockRows, b: BlockRows):
        (rows, inner), columns = a.shape, b.shape[1]
        self._a, self._b = a, b
        self._kernels = BlockKernels(a.arrays, ROWS=rows, INNER=inner, COLUMNS=columns)
        pattern = product_pattern(a.arrays, a.starts, a.pattern, b.pattern)
        self.result = BlockRows(a.arrays, (rows, columns), b.num_columns, *pattern)

    def update(self) -> None:
        """Values from those of the factors."""
        a, b, c = self._a, self._b, self.result
        factors = *a.all, *b.all, *c.all
        if a.arrays.device.is_gpu:
            self._kernels.run("product_values", c.count, c.count, c.num_rows, *factors)
        else:
            self._kernels.run("product_rows", c.num_rows, c.num_rows, *factors)


def product_pattern(arrays, a_starts: np.ndarray, a: tuple, b: tuple, part: int = 1):
    """Starts, on the host, and the buffer of columns of A B, from buffers of starts and columns; `part` columns of B
    count as one."""
    kernels, rows = BlockKernels(arrays, PART=part), len(a_starts) - 1
    counts = arrays.empty(max(1, rows), np.int32)
    kernels.run("product_bounds", rows, rows, *a, b[0], counts)
    offsets = starts_of(arrays, counts, rows)
    parts, first = [], 0
    while first < rows:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + MOST_FOUND, side="right")) - 1)
        here = arrays.to_device(offsets[first:last] - offsets[first], "matrices")
        found = arrays.empty(max(1, int(offsets[last] - offsets[first])), np.int32)
        kernels.run("product_columns", last - first, first, last, *a, *b, here, found, counts)
        parts.append((first, last, here, found))
        first = last
    starts = starts_of(arrays, counts, rows)
    buffer, columns = arrays.to_device(starts, "matrices"), arrays.empty(int(starts[-1]), np.int32)
    for first, last, here, found in parts:
        kernels.run("product_pack", last - first, first, last, here, found, buffer, columns)
    return starts, columns


class Transpose:
    """Aᵀ, in `result`; `update` computes its values. source: the block [block] of A that each is."""

    def __init__(self, a: BlockRows):
        arrays, rows, columns = a.arrays, a.num_rows, a.num_columns
        self._a, self._kernels = a, BlockKernels(arrays, ROWS=a.shape[0], COLUMNS=a.shape[1])
        counts = arrays.zeros(max(1, columns), np.int32)
        self._kernels.run("transpose_counts", a.count, a.count, a.columns, counts)
        starts = starts_of(arrays, counts, columns)
        self.result = t = BlockRows(arrays, a.shape[::-1], rows, starts)
        self.source = arrays.empty(a.count, np.int32)
        following = arrays.to_device(starts, "matrices")
        self._kernels.run("transpose_places", rows, rows, *a.pattern, following, t.columns, self.source)
        self._kernels.run("transpose_sort", columns, columns, t.starts_buffer, t.columns, self.source)

    def update(self) -> None:
        """Values from those of A."""
        t = self.result
        self._kernels.run("transpose_values", t.count, t.count, self.source, self._a.values, t.values)


class Collected:
    """A matrix of numbers `given` as rows of blocks, in `result`; `update` takes its values. size: of blocks; of 1 the
    result is what is given."""

    def __init__(self, given: BlockRows, size: int):
        arrays, nodes = given.arrays, given.num_rows // size
        self._given, self.result = given, given
        if size == 1:
            return
        whole = np.arange(nodes + 1) * size
        collecting = arrays.to_device(whole, "matrices"), arrays.to_device(np.arange(nodes * size), "matrices")
        pattern = product_pattern(arrays, whole, collecting, given.pattern, part=size)
        self.result = BlockRows(arrays, (size, size), nodes, *pattern)

    def update(self) -> None:
        """Take the values."""
        a = self.result
        if a is not self._given:
            self._kernels.run("collect_blocks", a.count, a.count, a.num_rows, *self._given.all, *a.all)

    @cached_property
    def _kernels(self) -> BlockKernels:
        rows, columns = self.result.shape
        return BlockKernels(self.result.arrays, ROWS=rows, COLUMNS=columns)


class MatrixRows:
    """The matrix of an operator on the device: sums of what elements give. On several ranks with GPUs it is whole on
    each, on those with CPUs it is the part that a rank's elements give, for PETSc to add up.

    Making one and `update` are collective.

    is_part  whether it is such a part
    whole    BlockRows of all rows, or of those of this rank's unknowns and ghosts in a part
    starts   [row + 1] of this rank's rows on the host, of `whole` in a part
    filled   state of the PETSc matrix that has the values, None if none does
    """

    filled: int | None = None

    def __init__(self, operator):
        disc, arrays, comm = operator.discretization, operator.arrays, operator.discretization.mesh.comm
        self._here = here = disc.dofmap.global_numbers
        self.is_part = comm.size > 1 and not arrays.device.has_solvers
        numbers = np.where(here >= 0, np.arange(len(here)), -1) if self.is_part else here
        rows = comm.allgather(disc.dofmap.num_owned)
        ends, count = np.concatenate([[0], np.cumsum(rows)]), len(here) if self.is_part else sum(rows)
        of_rows, of_columns = disc.element_numbers(numbers)
        places, elements, columns = _by_element(arrays, of_rows, count)
        turned = Transpose(elements)
        if of_columns is not of_rows:
            _, elements, columns = _by_element(arrays, of_columns, count)
        size, *steps = disc.matrix_layout
        self._in_cells = np.uint32(of_rows[0].shape[1] * size**2)
        sizes = of_rows[0].shape[1], *steps, of_rows[-1].shape[1], self._in_cells
        pattern = product_pattern(arrays, turned.result.starts, turned.result.pattern, elements.pattern)
        self._part = self.whole = part = BlockRows(arrays, (1, 1), count, *pattern)
        self._kernels = BlockKernels(arrays, (SOURCE, "matrix_rows.cl"), DOFS=size)
        self._listed = [arrays.empty(max(1, n), np.uint32) for n in (part.count, turned.result.count * size)]
        given = turned.result.starts_buffer, turned.source, places, columns, *part.pattern
        self._kernels.run("matrix_sources", part.num_rows, part.num_rows, *sizes, *given, *self._listed)
        self._sum = self._sum_over(comm) if comm.size > 1 and not self.is_part else None
        starts = self.whole.starts
        if not self.is_part:
            starts = starts[ends[comm.rank] : ends[comm.rank + 1] + 1]
        self._first, self.starts = int(starts[0]), starts - starts[0]

    @cached_property
    def columns(self) -> np.ndarray:
        """Columns [entry] of this rank's rows on the host, ascending in each."""
        count, itemsize = int(self.starts[-1]), np.dtype(np.int32).itemsize
        found = np.empty(count, np.int32)
        self.whole.arrays.download(self.whole.columns, found, "matrices", start=self._first * itemsize)
        return found

    def _sum_over(self, comm) -> Product:
        """The sum of the ranks' parts, `whole`: a matrix of ones times all of them, one below the other."""
        part, arrays, count = self._part, self._part.arrays, self._part.num_rows
        columns = gathered(comm, arrays.to_host(part.columns, part.count, np.int32, "matrices"))
        starts = np.concatenate([[0], np.cumsum(gathered(comm, np.diff(part.starts)))])
        self._gather = AllGather(comm, part.count, arrays)
        self._parts = BlockRows(arrays, (1, 1), count, starts, arrays.to_device(columns, "matrices"))
        of_row = np.arange(count)[:, None] + count * np.arange(comm.size)
        ones = (arrays.to_device(a, "matrices") for a in (of_row.ravel().astype(np.int32), np.ones(of_row.size)))
        sums = BlockRows(arrays, (1, 1), len(starts) - 1, np.arange(count + 1) * comm.size, *ones)
        found = Product(sums, self._parts)
        self.whole = found.result
        return found

    @staticmethod
    def suit(operator, is_coarse: bool) -> bool:
        """Return True if the rows of an operator's matrix are summed so: in double precision, on several ranks with
        GPUs of a coarse level; on CPUs of many entries; not on GPUs and CPUs together. Collective."""
        disc, arrays, comm = operator.discretization, operator.arrays, operator.discretization.mesh.comm
        on_gpu, whole = arrays.device.is_gpu, arrays.device.is_gpu and comm.size > 1
        dofs, entries = (MOST_DOFS, 0) if on_gpu else (MOST_DOFS_ON_CPU, FEW)
        suits = (
            hasattr(operator, "matrix_buffers")
            and len(disc.parts) == 1
            and arrays.precision == "double"
            and (is_coarse or not whole)
        )
        size = disc.matrix_layout[0] if suits else 0
        of_elements = disc.stride * size**2 * (1 + disc.num_facets_of_cell if disc.has_penalties else 1)
        suits = 0 < size <= dofs and disc.mesh.num_cells * size**2 > entries and of_elements < MOST_LISTED
        unsuited, gpus, rows = comm.allreduce(np.array([not suits, on_gpu, disc.dofmap.num_owned]))
        most = MOST_ROWS if whole else np.iinfo(np.int32).max
        return unsuited == 0 and gpus in (0, comm.size) and 0 < rows <= most

    def update(self, cells, facets) -> None:
        """Sum element matrices: buffers of cells, by `matrix_layout`, and of facets [part, dof, dof, stride], None if
        there are none."""
        rows = self._part
        given = rows.count, self._in_cells, *self._listed, cells, facets, rows.values
        self._kernels.run("matrix_rows", rows.count, *given)
        if self._sum is not None:
            self._gather.gather(rows.values, self._parts.values)
            self._sum.update()

    def matrix_numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """PETSc's row and column of each entry of a part."""
        return np.repeat(self._here, np.diff(self.starts)), self._here[self.columns]

    def values(self) -> np.ndarray:
        """Values [entry] of a part."""
        return self.whole.arrays.to_host(self.whole.values, self.whole.count, name="matrices")

    def write(self, out: np.ndarray) -> None:
        """out [entry] = the values of this rank's rows"""
        arrays = self.whole.arrays
        arrays.download(self.whole.values, out, "matrices", start=self._first * arrays.real.itemsize)


def _by_element(arrays, parts: list[np.ndarray], count: int) -> tuple:
    """From numbers [dof, element] below `count`, -1 for none: places of the others among all, the matrix [element,
    number] with an entry at each, and all numbers [element, dof]; in buffers."""
    numbers = np.ascontiguousarray(np.concatenate(parts, axis=1).T, np.int32)
    kept = numbers >= 0
    first, places = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]), np.flatnonzero(kept).astype(np.int32)
    places, found, numbers = (arrays.to_device(a, "matrices") for a in (places, numbers[kept], numbers))
    return places, BlockRows(arrays, (1, 1), count, first, found), numbers


def assembly_rows(arrays, dofs, places: list[tuple], rows: int) -> list:
    """Buffers start [row + 1] and entry: of each of `rows` rows its places in element vectors, ascending.

    Made on the device, or on the host where there are few.

    dofs: buffer of the rows of cells.   places: what a discretization's `places_of_rows` gives.
    """
    if not arrays.device.is_gpu and sum(count for _, count, *_ in places) <= FEW_PLACES:
        return _by_numpy(arrays, dofs, places, rows)
    kernels = BlockKernels(arrays, ("assembly_rows.cl",))
    given = [
        (dofs if numbers is None else arrays.to_device(numbers, "assembly rows"), *rest) for numbers, *rest in places
    ]
    counts = arrays.zeros(max(1, rows), np.int32)
    for numbers, count, length, used, _ in given:
        kernels.run("assembly_counts", count, count, length, used, rows, numbers, counts)
    starts = starts_of(arrays, counts, rows)
    start, following = (arrays.to_device(starts, "assembly rows") for _ in range(2))
    entry = arrays.empty(max(1, int(starts[-1])), np.int32)
    for numbers, count, length, used, first in given:
        kernels.run("assembly_places", count, count, length, used, rows, first, numbers, following, entry)
    kernels.run("assembly_sort", rows, rows, start, entry)
    return [start, entry]


def _by_numpy(arrays, dofs, places: list[tuple], rows: int) -> list:
    of_places, listed = [], []
    for numbers, count, length, used, first in places:
        row = arrays.to_host(dofs, count, np.int32, "assembly rows") if numbers is None else numbers.ravel()[:count]
        inside = np.flatnonzero((np.arange(count) % length < used) & (row < rows))
        of_places.append(row[inside])
        listed.append(first + inside)
    row, place = np.concatenate(of_places), np.concatenate(listed)
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))])
    entry = place[np.lexsort((place, row))] if place.size else np.zeros(1)
    return [arrays.to_device(each.astype(np.int32), "assembly rows") for each in (start, entry)]
