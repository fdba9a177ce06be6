"""Host memory through which vectors pass on their way to a GPU and back, a piece after the other.

While a piece is on its way over the bus, threads copy others from or to the vector. That takes memory of the driver's
own: from any other it makes such copies itself, in one thread.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from petsc_hdg.device.arrays import Arrays
from petsc_hdg.threads import thread_pool, threads_of_rank

MOST_THREADS = 4  # more are hardly faster: the bus is the limit
PIECE = 1 << 22  # bytes
WHOLE = 4  # pieces below which a vector goes as one: to wake threads takes as long as to copy a megabyte


class Stage:
    """Pinned host memory for vectors of `count` values, allocated once. Copies under way are counted as `name`."""

    def __init__(self, arrays: Arrays, count: int, name: str):
        self.arrays, self.name = arrays, name
        self.memory = arrays.pinned(count)
        self.pieces = pieces(count, self.memory.itemsize)
        self._loaded = None

    def load(self, buffer, values: np.ndarray) -> None:
        """Copy values [count] to a buffer; they may change afterwards."""
        if self._loaded is not None:
            self._loaded.wait()

        def fill(piece: slice) -> slice:
            np.copyto(self.memory[piece], values[piece], casting="same_kind")
            return piece

        for piece in self._each(fill, self.pieces):
            self._loaded = self.arrays.upload(buffer, *self._part(piece), wait=False, start=self._start(piece))

    def store(self, buffer, values: np.ndarray) -> None:
        """Copy a buffer to values [count]."""

        def take(piece: slice, event) -> None:
            event.wait()
            np.copyto(values[piece], self.memory[piece], casting="same_kind")

        events = [
            self.arrays.download(buffer, *self._part(piece), wait=False, start=self._start(piece))
            for piece in self.pieces
        ]
        for _ in self._each(take, self.pieces, events):
            pass

    def _part(self, piece: slice) -> tuple[np.ndarray, str]:
        return self.memory[piece], self.name

    def _start(self, piece: slice) -> int:
        return piece.start * self.memory.itemsize

    def _each(self, work, *of_pieces):
        """What `work` gives for each piece, in turn; by threads where there are several pieces."""
        threads = _threads() if len(self.pieces) > 1 else None
        return threads.map(work, *of_pieces) if threads else map(work, *of_pieces)


def pieces(count: int, itemsize: int) -> list[slice]:
    """Slices of `count` values, of about the same size."""
    parts = -(-count * itemsize // PIECE)
    ends = np.linspace(0, count, 1 + (parts if parts > WHOLE else 1)).astype(int).tolist()
    return [slice(*ends_of) for ends_of in zip(ends[:-1], ends[1:], strict=True)]


@cache
def _threads():
    """A pool of threads that copy, None where this rank has one processor."""
    count = threads_of_rank(MOST_THREADS)
    return thread_pool(count) if count > 1 else None
