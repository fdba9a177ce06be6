"""How many threads of this process may work at a time, and work in them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

MOST = 8  # threads on parts of arrays


def threads_of_rank(ranks: int, most: int) -> int:
    """Threads of one of `ranks` processes that share the processors this one may run on: one, or up to `most`."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(most, usable // ranks))


def in_threads(work, parts, ranks: int) -> list:
    """What `work` gives for each of some parts, one rank of `ranks` working on several at a time: numpy needs no
    interpreter while it works on arrays."""
    count = min(threads_of_rank(ranks, MOST), len(parts))
    if count < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(work, parts))
