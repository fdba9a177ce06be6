"""How many threads of this process may work at a time."""

from __future__ import annotations

import os


def threads_of_rank(ranks: int, most: int) -> int:
    """Threads of one of `ranks` processes that share the processors this one may run on: one, or up to `most`."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(most, usable // ranks))
