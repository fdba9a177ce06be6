"""How many threads of this process may work at a time, and work in them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
from mpi4py import MPI

MOST = 8  # threads on parts of arrays
FEW, SAMPLES = 1 << 16, 64  # items that one thread sorts; items of a sorted part that tell where to split
CHUNK = 1 << 18  # items of a part


def threads_of_rank(most: int) -> int:
    """Threads of this rank, which shares the processors it may run on with the others: one, or up to `most`."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(most, usable // MPI.COMM_WORLD.size))


@contextmanager
def few_blas_threads():
    """A block in which numpy's linear algebra has the threads of this rank: more than processors wait for each other,
    which takes tens of times as long."""
    try:
        controller = _controller()
    except ImportError:
        yield
        return
    with controller.limit(limits=threads_of_rank(MOST), user_api="blas"):
        yield


@lru_cache
def _controller():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def in_threads(work, parts) -> list:
    """What `work` gives for each of some parts, several at a time: numpy releases Python's lock while it works
    on arrays."""
    count = min(threads_of_rank(MOST), len(parts))
    if count < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(work, parts))


def taken(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    """values[index], rows [item, …] by their numbers [item], or numbers [item] by an array of theirs."""
    if index.ndim > 1:
        return taken(values, index.ravel()).reshape(index.shape)
    if len(index) <= FEW:
        return values.take(index, axis=0)
    found = np.empty((len(index), *values.shape[1:]), values.dtype)

    def fill(begin: int) -> None:
        part = slice(begin, begin + CHUNK)
        values.take(index[part], axis=0, out=found[part], mode="clip")  # which does not copy

    in_threads(fill, range(0, len(index), CHUNK))
    return found


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


def stable_order(keys: np.ndarray) -> np.ndarray:
    """Permutation [item] that sorts numbers, equal ones as they stand: each thread sorts a part of them and then merges
    a range of all."""
    count = threads_of_rank(MOST) if len(keys) > FEW else 1
    if count == 1:
        return _order_alone(keys)
    ends = np.linspace(0, len(keys), count + 1).astype(int)
    orders = in_threads(lambda k: ends[k] + _order_alone(keys[ends[k] : ends[k + 1]]), range(count))
    parts = in_threads(keys.take, orders)
    samples = np.sort(np.concatenate([part[:: len(part) // SAMPLES] for part in parts]))
    splits = samples[len(samples) * np.arange(1, count) // count]
    cuts = [[0, *np.searchsorted(part, splits).tolist(), len(part)] for part in parts]

    def merged(k: int) -> np.ndarray:
        here = [slice(*cut[k : k + 2]) for cut in cuts]
        runs = np.concatenate([part[each] for part, each in zip(parts, here, strict=True)])
        items = np.concatenate([order[each] for order, each in zip(orders, here, strict=True)])
        return items.take(np.argsort(runs, kind="stable"))  # which merges sorted runs

    return np.concatenate(in_threads(merged, range(count)))


def _order_alone(keys: np.ndarray) -> np.ndarray:
    """The permutation of stable_order by one thread; of 32-bit integers by two counts of 16 bits each: numpy's stable
    argsorts of 32 take thrice as long."""
    if keys.dtype != np.int32:
        return np.argsort(keys, kind="stable")
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    high = (keys >> 16).astype(np.int16)
    return order[np.argsort(high[order], kind="stable")] if high.any() else order


def stable_order_of(columns) -> np.ndarray:
    """Permutation [item] that sorts by several columns [item], the first one first, equal items as they stand."""
    *first, last = columns
    order = stable_order(last)
    for column in reversed(first):
        order = taken(order, stable_order(taken(column, order)))
    return order
