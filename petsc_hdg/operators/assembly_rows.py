"""Lists of the entries of element vectors that add to each value of a vector, made on the device."""

from __future__ import annotations

import numpy as np

from .block_rows import BlockKernels, starts_of


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
