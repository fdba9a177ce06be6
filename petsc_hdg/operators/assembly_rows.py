"""Lists of the entries of element vectors that add to each value of a vector, made on the device, or on the host where
there are few."""

from __future__ import annotations

import numpy as np

from .block_rows import BlockKernels, starts_of

FEW = 1 << 18  # places up to which numpy lists them on a CPU, in less time than kernels take to compile


def assembly_rows(arrays, dofs, places: list[tuple], rows: int) -> list:
    """Buffers start [row + 1] and entry: of each of `rows` rows its places in element vectors, ascending.

    dofs: buffer of the rows of cells.   places: what a discretization's `places_of_rows` gives.
    """
    if not arrays.device.is_gpu and sum(count for _, count, *_ in places) <= FEW:
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
