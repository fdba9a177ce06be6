"""Rows and vectors of all ranks, on each of them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..device import AllGather, aside, gathered
from .sell_matrix import rows_of
from .vectors import Vectors


def gathered_rows(comm, starts: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts and global columns of all rows, from those of each rank's. Collective."""
    if comm.size == 1:
        return starts, columns
    counts = gathered(comm, np.diff(starts))
    return np.concatenate([[0], np.cumsum(counts)]).astype(starts.dtype), gathered(comm, columns)


def whole_matrix(mat) -> np.ndarray:
    """All rows [row, column] of an assembled matrix. Collective."""
    comm, (starts, columns, values) = mat.comm.tompi4py(), rows_of(mat)
    lengths, columns, values = (gathered(comm, part) for part in (np.diff(starts), columns, values))
    dense = np.zeros(mat.getSize())
    dense[np.repeat(np.arange(len(lengths)), lengths), columns] = values
    return dense


class Gathered:
    """`apply(x, y)` on this rank's numbers by a `solver` on those of all ranks, which each rank has. Collective.

    All ranks compute the same, and each takes its part: results are those of one solver where devices are alike.
    vectors: those of this rank's numbers.
    """

    on_device = True

    def __init__(self, solver, vectors: Vectors):
        self.solver, self._vectors = solver, vectors

    @property
    def note(self) -> str:
        """For -ksp_view."""
        return self.solver.note

    @cached_property
    def _whole(self) -> tuple:
        """An AllGather, and buffers of all numbers for what is given and found."""
        gather = AllGather(self._vectors.comm, self._vectors.count, self._vectors.arrays)
        return gather, *(self._vectors.arrays.empty(gather.total) for _ in range(2))

    def apply(self, x, y) -> None:
        """y = this rank's part of what the solver makes of the ranks' x"""
        gather, b, found = self._whole
        gather.gather(x, b)
        self.solver.apply(b, found)
        aside(self._vectors.device, lambda: gather.take(found, y))
