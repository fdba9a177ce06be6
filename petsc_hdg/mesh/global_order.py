"""Items that lie on several ranks in an order of their own: where each stands, and values in that order."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI


class GlobalOrder:
    """Items of all ranks in one order, 0 … total - 1, cut into blocks of equal size, one a rank. Making one is
    collective.

    numbers [item] int64: number of each item of this rank; over all ranks each number stands once.
    size: items of a block, those of the last ranks being fewer or none.   count: items of this rank's block.
    """

    def __init__(self, comm, numbers: np.ndarray):
        self.comm, self.numbers = comm, np.asarray(numbers, np.int64)
        self.total = comm.allreduce(len(self.numbers))
        self.size = max(1, -(-self.total // comm.size))
        self.count = min(max(self.total - comm.rank * self.size, 0), self.size)
        self._plan = _Plan(comm, self.numbers // self.size)
        self._place = self._plan.send(self.numbers) - comm.rank * self.size

    @classmethod
    def of_keys(cls, comm, keys: np.ndarray, bound: int) -> GlobalOrder:
        """The order of keys [item] int64 in 0 … bound - 1, all different. Collective. Raises ValueError, on all ranks,
        for equal keys."""
        block = max(1, -(-bound // comm.size))
        plan = _Plan(comm, keys // block)
        found = plan.send(np.asarray(keys, np.int64))
        order = np.argsort(found, kind="stable")
        equal = int((np.diff(found[order]) == 0).sum())
        if comm.allreduce(equal):
            raise ValueError("keys are equal")
        first = comm.exscan(len(found)) or 0
        number = np.empty(len(found), np.int64)
        number[order] = first + np.arange(len(found))
        return cls(comm, plan.back(number))

    def collect(self, values: np.ndarray) -> np.ndarray:
        """This rank's block [count, …] of values [item, …] of the items of all ranks, in the order. Collective."""
        found = self._plan.send(values)
        block = np.empty((self.count, *values.shape[1:]), values.dtype)
        block[self._place] = found
        return block

    def deal(self, block: np.ndarray) -> np.ndarray:
        """Values [item, …] of this rank's items from the blocks [count, …] of all ranks. Collective."""
        return self._plan.back(block[self._place])


class _Plan:
    """Messages of items to given ranks [item], and back to where they came from. Every call is collective."""

    def __init__(self, comm, ranks: np.ndarray):
        self.comm = comm
        self._order = np.argsort(ranks, kind="stable")
        self._to = np.bincount(ranks, minlength=comm.size).astype(np.int32)
        self._from = np.empty_like(self._to)
        comm.Alltoall(self._to, self._from)

    def send(self, values: np.ndarray) -> np.ndarray:
        """Values [received, …] that come here from values [item, …]: by ascending rank, in their order there."""
        return self._exchange(values[self._order], self._to, self._from)

    def back(self, values: np.ndarray) -> np.ndarray:
        """Values [item, …] from those [received, …] of `send`."""
        found = self._exchange(values, self._from, self._to)
        out = np.empty_like(found)
        out[self._order] = found
        return out

    def _exchange(self, values: np.ndarray, out: np.ndarray, into: np.ndarray) -> np.ndarray:
        values = np.ascontiguousarray(values)
        nbytes = values.dtype.itemsize * int(np.prod(values.shape[1:]))
        received = np.empty((int(into.sum()), *values.shape[1:]), values.dtype)
        kind = MPI.BYTE.Create_contiguous(nbytes).Commit()  # counts are of items, and stay small
        try:
            self.comm.Alltoallv([values, (out, _starts(out)), kind], [received, (into, _starts(into)), kind])
        finally:
            kind.Free()
        return received


def _starts(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int32)
