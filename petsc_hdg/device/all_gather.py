"""All-gather between device buffers, and of host arrays: each rank gets the numbers of all ranks."""

from __future__ import annotations

import time

import numpy as np

from petsc_hdg import stages
from petsc_hdg.device.arrays import Arrays
from petsc_hdg.device.context import aside
from petsc_hdg.device.halo import Halo
from petsc_hdg.device.node import Node
from petsc_hdg.device.peer_memory import MOST

ROOM = 1 << 14  # bytes beside the numbers in the memory of a halo


class AllGather:
    """Buffers [total] of each rank with the numbers of all, of which each has `count`; one rank after the other.

    Ranks of one node read each other's numbers in windows. These serve in turn: a rank whose barrier comes has read
    what was written the time before. Where devices write each other's memory, and have room, it is a Halo whose ghosts
    are all numbers of the others. Ranks of several nodes use MPI's own gather between pinned memory. Making one is
    collective on `comm` (mpi4py).

    to_all: whether ranks without numbers of their own need those of others; else peers send them none.
    counts [rank]   total: their sum   first: place of this rank's first number
    """

    def __init__(self, comm, count: int, arrays: Arrays, to_all: bool = True):
        self.arrays, self.counts = arrays, comm.allgather(int(count))
        self.total, self.first = sum(self.counts), sum(self.counts[: comm.rank])
        self._node, self._rank, self._turn = Node.of(comm), comm.rank, 0
        fits = comm.size > 1 and 2 * self.total * arrays.real.itemsize + ROOM < MOST
        takes = to_all or count > 0
        self._halo = self._of_peers(comm, takes) if fits and self._node.peers(arrays.device) else None
        if self._halo is not None:
            return
        self._copied: list = []  # events of the copies to the device: one that is dropped early would wait
        size = arrays.real.itemsize * self.counts[comm.rank]
        self._region = self._node.region(2 * size, arrays.device) if self._node.is_whole else None
        if self._region is None:
            self._own, self._all = arrays.pinned(self.counts[comm.rank]), arrays.pinned(self.total)
        else:
            self._windows = [self._views(turn) for turn in range(2)]

    def _of_peers(self, comm, takes: bool) -> Halo:
        ranks = np.repeat(np.arange(comm.size), self.counts)
        others = np.flatnonzero(takes & (ranks != comm.rank))
        starts = np.concatenate([[0], np.cumsum(self.counts)])
        index = others - starts[ranks[others]]
        return Halo(comm, self.counts[comm.rank], ranks[others], index, self.arrays, ghost_place=others)

    def _views(self, turn: int) -> list[tuple[int, np.ndarray]]:
        """(place of the first, numbers) of each rank in the windows of a turn. Collective."""
        item, views, first = self.arrays.real.itemsize, [], 0
        starts = self._node.local.allgather((self._region.number, self._region.start))
        for rank, ((number, start), count) in enumerate(zip(starts, self.counts, strict=True)):
            at = start + turn * count * item
            views.append((first, self._node.windows.view(rank, number, at, count, self.arrays.real)))
            first += count
        return views

    def gather(self, x, out) -> None:
        """out [total] = the ranks' x [count]; replayed where launches are recorded. Collective."""
        count = self.counts[self._rank]
        if self._halo is None:
            aside(self.arrays.device, lambda: self._gather(x, out))
            return
        self._halo.forward(x, out)
        aside(self.arrays.device, lambda: self.arrays.copy(x, out, count, at=self.first))

    def _gather(self, x, out) -> None:
        arrays, count, began = self.arrays, self.counts[self._rank], time.perf_counter()
        with stages.event("Halo"):
            parts = self._through_windows(x) if self._region is not None else self._through_mpi(x)
            arrays.copy(x, out, count, at=self.first)
            item = arrays.real.itemsize
            self._copied = [
                arrays.upload(out, values, "gathered vectors", wait=False, start=first * item)
                for first, values in parts
            ]
        exchanges = arrays.device.exchanges
        exchanges.count += 1
        exchanges.waited += time.perf_counter() - began

    def _through_windows(self, x) -> list[tuple[int, np.ndarray]]:
        """(place, numbers) of the other ranks."""
        views, node, exchanges = self._windows[self._turn], self._node, self.arrays.device.exchanges
        own = views[self._rank][1]
        self.arrays.download(x, own, "gathered vectors")
        self._wait_for_copies()
        node.windows.sync()
        node.local.Barrier()
        node.windows.sync()
        self._turn = 1 - self._turn
        exchanges.windows += own.nbytes
        return [view for rank, view in enumerate(views) if rank != self._rank and len(view[1])]

    def _through_mpi(self, x) -> list[tuple[int, np.ndarray]]:
        """(0, numbers) of all ranks."""
        self.arrays.download(x, self._own, "gathered vectors")
        self._wait_for_copies()
        self._node.comm.Allgatherv(self._own, (self._all, self.counts))
        self.arrays.device.exchanges.messages += self._own.nbytes
        return [(0, self._all)]

    def _wait_for_copies(self) -> None:
        for event in filter(None, self._copied):
            event.wait()

    def take(self, x, out) -> None:
        """out [count] = this rank's part of x [total]"""
        self.arrays.copy(x, out, self.counts[self._rank], first=self.first)


def gathered(comm, array: np.ndarray) -> np.ndarray:
    """The ranks' arrays [entry, ...], one after the other. Collective."""
    if comm.size == 1:
        return array
    array = np.ascontiguousarray(array)
    counts = comm.allgather(array.size)
    found = np.empty((sum(counts) // int(np.prod(array.shape[1:])), *array.shape[1:]), array.dtype)
    comm.Allgatherv(array, (found, counts))
    return found
