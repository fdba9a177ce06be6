"""Rows and vectors of all ranks, on each of them."""

from __future__ import annotations

import numpy as np


def gathered(comm, array: np.ndarray) -> np.ndarray:
    """The ranks' arrays [entry, ...], one after the other. Collective."""
    if comm.size == 1:
        return array
    array = np.ascontiguousarray(array)
    counts = comm.allgather(array.size)
    found = np.empty((sum(counts) // int(np.prod(array.shape[1:])), *array.shape[1:]), array.dtype)
    comm.Allgatherv(array, (found, counts))
    return found


def gathered_rows(comm, starts: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts and global columns of all rows, from those of each rank's. Collective."""
    if comm.size == 1:
        return starts, columns
    counts = gathered(comm, np.diff(starts))
    return np.concatenate([[0], np.cumsum(counts)]).astype(starts.dtype), gathered(comm, columns)


class WholeVectors:
    """Numbers of all ranks in buffers [total] of each rank, which owns `count` of them. Collective."""

    def __init__(self, arrays, comm, count: int):
        self._arrays, self._comm, self._counts = arrays, comm, comm.allgather(count)
        self.total, self._first = sum(self._counts), sum(self._counts[: comm.rank])
        self._own, self._all = arrays.pinned(count), arrays.pinned(self.total)

    def gather(self, x, out) -> None:
        """out [total] = the ranks' x [count]. Collective."""
        self._arrays.download(x, self._own, "gathered vectors")
        self._comm.Allgatherv(self._own, (self._all, self._counts))
        self._arrays.upload(out, self._all, "gathered vectors")

    def take(self, x, out) -> None:
        """out [count] = this rank's part of x [total]"""
        self._arrays.copy(x, out, self._counts[self._comm.rank], first=self._first)
