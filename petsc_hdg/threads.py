"""How many threads of this process may work at a time, and work in them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from mpi4py import MPI

MOST = 8  # threads on parts of arrays
CHUNK = 1 << 18  # random numbers of a part


def threads_of_rank(most: int) -> int:
    """Threads of this rank, which shares the processors it may run on with the others: one, or up to `most`."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(most, usable // MPI.COMM_WORLD.size))


def in_threads(work, parts) -> list:
    """What `work` gives for each of some parts, several at a time: numpy needs no interpreter while it works on
    arrays."""
    count = min(threads_of_rank(MOST), len(parts))
    if count < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(work, parts))


def random_numbers(low: float, high: float, count: int, *seed: int) -> np.ndarray:
    """Random numbers [count] from low to high, the same for a seed however many threads there are."""
    found = np.empty(count)

    def fill(begin: int) -> None:
        part = found[begin : begin + CHUNK]
        np.random.default_rng([*seed, begin]).random(out=part)
        part *= high - low
        part += low

    in_threads(fill, range(0, count, CHUNK))
    return found
