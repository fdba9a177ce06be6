"""Rows of assembled matrices: their pattern, and sums of element matrices, on the device."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..device import AllGather, gathered
from .block_rows import SOURCE, BlockKernels, BlockRows, Product, Transpose, product_pattern, starts_of

MOST_LISTED = 1 << 32  # entries of element matrices that have a place
FEW = 1_000_000  # entries of element matrices that PETSc sorts on a CPU sooner than kernels for them are there
MOST_DOFS, MOST_DOFS_ON_CPU = 32, 100  # of a cell: longer rows would be searched for too long
# Rows that each rank has all of: a GPU sets them up sooner than all hosts do their parts, and smooths them sooner than
# parts of them with an exchange a product.
MOST_ROWS = 1 << 22


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
        found = Product(
            BlockRows(arrays, (1, 1), len(starts) - 1, np.arange(count + 1) * comm.size, *ones), self._parts
        )
        self.whole = found.result
        return found

    @staticmethod
    def suit(operator, is_coarse: bool) -> bool:
        """Return True if the rows of an operator's matrix are summed so: in double precision, on several ranks with
        GPUs of a coarse level; on CPUs of many entries; not on GPUs and CPUs together. Collective."""
        disc, arrays, comm = operator.discretization, operator.arrays, operator.discretization.mesh.comm
        on_gpu, whole = arrays.device.is_gpu, arrays.device.is_gpu and comm.size > 1
        dofs, entries = (MOST_DOFS, 0) if on_gpu else (MOST_DOFS_ON_CPU, FEW)
        suits = hasattr(operator, "matrix_buffers") and arrays.precision == "double" and (is_coarse or not whole)
        size = disc.matrix_layout[0] if suits else 0
        of_elements = disc.stride * size**2 * (1 + disc.has_penalties * disc.num_facets_of_cell)
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

    dofs: buffer of the rows of cells.   places: what a discretization's `places_of_rows` gives.
    """
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
