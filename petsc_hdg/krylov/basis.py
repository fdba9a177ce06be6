"""An orthonormal basis on the device that grows vector by vector, by classical Gram-Schmidt as PETSc's GMRES has it."""

from __future__ import annotations

import numpy as np

from .vectors import Rows, Vectors

WIDTH = 8  # vectors that a kernel takes at once


class Basis:
    """Vectors [k], allocated as they come, at most `most`. All calls are collective.

    What has been launched by `extend` is finished by `wait`, between which other kernels may be launched, those of the
    next vectors too.
    """

    def __init__(self, vectors: Vectors, most: int):
        self.vectors = vectors
        self.buffers: list = []
        rows = 2 * (-(-most // WIDTH))
        self._rows = Rows(vectors, rows + 1)
        self._square = rows  # the row of w·w
        self._numbers = vectors.arrays.zeros(4 * (rows + 1))  # totals, as kernels and the host read them
        self._hosts = vectors.arrays.pinned(most * 4 * (rows + 1)).reshape(most, -1)  # the numbers of each vector
        self._host = self._hosts[0]
        self._coefficients = vectors.arrays.zeros(4 * rows)
        self.alone = vectors.comm.size == 1
        names = ("dots", "totals", "add", "append")
        self._kernels = {name: vectors.kernel(f"basis_{name}") for name in names}
        self._events: list = [None] * most

    def buffer(self, k: int):
        """Vector k."""
        while len(self.buffers) <= k:
            self.buffers.append(self.vectors.arrays.empty(self.vectors.count))
        return self.buffers[k]

    def begin(self, w) -> float:
        """Vector 0 = w / |w|; returns w·w."""
        self.vectors.run("sums", w, w, self._square, self._rows.buffer)
        square = self._totals(self._square, 1)[0, 0]
        self._append(0, w)
        return float(square)

    def extend(self, used: int, w, raw=None, diagonal=None) -> None:
        """Begin to take from w its part in the first `used` vectors; vector `used` = w / |w| then.

        With a diagonal w is not given, it becomes diagonal `raw` on the way.
        """
        vectors, self._host = self.vectors, self._hosts[used - 1]
        for first, count, given in self._parts(self.buffers, used):
            source = (w, None, None) if diagonal is None or first else (raw, diagonal, w)
            self._run("dots", count, *given, *source, first // 4, self._rows.buffer)
        rows = -(-used // 4)
        if self.alone:
            self._kernels["totals"](rows * vectors.group, vectors.groups, self._rows.buffer, self._numbers)
        else:
            self._totals(0, rows)
        self._add(self.buffers, used, -1.0, self._numbers, False, w)
        if not self.alone:
            self._totals(self._square, 1)
        self._append(used, w)
        if self.alone:
            self._events[used - 1] = vectors.arrays.download(self._numbers, self._host, "Krylov sums", wait=False)

    def wait(self, used: int) -> tuple[np.ndarray, float]:
        """Products [used] of w with the vectors, and w·w without them."""
        if self.alone:
            self._events[used - 1].wait()
        host = self._hosts[used - 1]
        return host[:used].astype(float), float(host[4 * self._square])

    def combine(self, coefficients, out, fresh: bool, buffers=None) -> None:
        """out += sum of coefficients times vectors, or times other buffers; from zero if `fresh`."""
        vectors, used = self.vectors, len(coefficients)
        padded = np.zeros(4 * self._square, dtype=vectors.arrays.real)
        padded[:used] = coefficients
        vectors.arrays.upload(self._coefficients, padded, "Krylov sums")
        self._add(self.buffers if buffers is None else buffers, used, 1.0, self._coefficients, fresh, out)

    def _parts(self, buffers, used: int):
        """First vector, number and buffers of each part, the last ones repeated."""
        for first in range(0, used, WIDTH):
            count = min(WIDTH, used - first)
            yield first, count, [buffers[first + min(k, count - 1)] for k in range(WIDTH)]

    def _add(self, buffers, used: int, by: float, coefficients, fresh: bool, w) -> None:
        for first, count, given in self._parts(buffers, used):
            zero = int(fresh and first == 0)
            self._run("add", count, *given, by, coefficients, first, zero, w, self._square, self._rows.buffer)

    def _append(self, k: int, w) -> None:
        count, given = (self.vectors.groups, self._rows.buffer) if self.alone else (1, self._numbers)
        self._run("append", count, self._square, given, self._numbers if self.alone else None, w, self.buffer(k))

    def _run(self, name: str, *arguments) -> None:
        self._kernels[name](self.vectors.items, self.vectors.count, *arguments)

    def _totals(self, first: int, count: int) -> np.ndarray:
        """Rows over ranks [row, 4], for kernels too."""
        totals = self._rows.over_ranks(first, count)
        self._host[4 * first : 4 * (first + count)] = totals.ravel()
        if not self.alone:
            self.vectors.arrays.upload(self._numbers, self._host, "Krylov sums")
        return totals
