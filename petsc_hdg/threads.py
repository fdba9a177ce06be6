"""How many threads of this process may work at a time, and work in them."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache

import numpy as np
from mpi4py import MPI

MOST = 8  # threads on parts of arrays
FEW, SAMPLES = 1 << 16, 64  # items that one thread sorts; items of a sorted part that tell where to split
CHUNK = 1 << 18  # items of a part
LOCAL_SIZES = "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE", "PALS_LOCAL_SIZE"
PLACED = re.compile("OMPI_MCA_(hwloc_|orte_rankfile|rmaps_(?!base_oversubscribe))").match  # variables that place ranks


def threads_of_rank(most: int) -> int:
    """Threads of this rank, which shares the processors of its node with other ranks: one, or up to `most`."""
    ranks = next((int(os.environ[name]) for name in LOCAL_SIZES if os.environ.get(name, "").isdigit()), 0)
    share = len(_processors(everywhere=True)) // max(1, ranks or MPI.COMM_WORLD.size)
    return max(1, min(most, share, len(_processors(everywhere=not _is_placed()))))


def thread_pool(count: int) -> ThreadPoolExecutor:
    """Threads that run where those of this rank may."""
    processors = _processors(everywhere=not _is_placed())
    return ThreadPoolExecutor(count, "petsc_hdg", _move, (processors,))


def _is_placed() -> bool:
    """False if this rank runs on one core for no other reason than that OpenMPI binds each of two ranks to one, unless
    it is told where ranks are to run. Its first thread stays there, others need not."""
    vendor, version = MPI.get_vendor()
    by_default = vendor == "Open MPI" and version[0] < 5 and "OMPI_COMMAND" in os.environ  # which mpiexec sets
    return not by_default or any(map(PLACED, os.environ))


@lru_cache
def _processors(everywhere: bool) -> frozenset[int]:
    """Processors that this rank runs on, or all that its node has for it."""
    if not hasattr(os, "sched_getaffinity"):
        return frozenset(range(os.cpu_count() or 1))
    if not everywhere:
        return frozenset(os.sched_getaffinity(0))
    with ThreadPoolExecutor(1, "petsc_hdg", _move, (range(os.cpu_count() or 1),)) as other:
        return frozenset(other.submit(os.sched_getaffinity, 0).result())  # the system leaves out what others have


def _move(processors) -> None:
    """Let this thread run on processors."""
    with suppress(AttributeError, OSError):
        os.sched_setaffinity(0, processors)


@contextmanager
def few_blas_threads():
    """A block in which numpy's linear algebra has the threads of this rank: more than processors wait for each other,
    which takes tens of times as long. They run where its first thread runs."""
    try:
        controller = _controller()
    except ImportError:
        yield
        return
    count = min(threads_of_rank(MOST), len(_processors(everywhere=False)))
    with controller.limit(limits=count, user_api="blas"):
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
    with thread_pool(count) as threads:
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
