"""Sparse matrices of dense blocks by rows, on the device of one rank: products and transposes.

Patterns are found once; values are computed anew, in the same order, as often as those of the factors change.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..codegen import KernelSpec
from ..device import Kernel
from ..errors import SolveError

GROUP = 64
MOST_FOUND = 1 << 26  # columns that are looked at in one launch
SOURCE = "block_rows.cl"


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
