"""Eigenvalues of a preconditioned operator by Arnoldi's process from noise, as PETSc's KSPCHEBYSHEV estimates them; an
orthonormal basis that grows vector by vector, by classical Gram-Schmidt as PETSc's GMRES has it.

No step of the estimate waits for the host: a Newton basis takes one smoothing step per vector, and its Gram matrix
gives Arnoldi's matrix (Philippe and Reichel 2012).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .vectors import Rows, Vectors, sum_type

WIDTH = 8  # vectors that a kernel takes at once
GUESS = 1.5  # largest eigenvalue guessed, over what one product with the first vector makes of its norm
FAR = 0.6, 2.5  # largest eigenvalue found over the guessed one, outside of which the basis is ill-conditioned
DEPENDENT = 1e-10  # squared sine of the angle between a vector and those before it, below which the process ends


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
        for first, count, given in _parts(self.buffers, used):
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

    def _add(self, buffers, used: int, by: float, coefficients, fresh: bool, w) -> None:
        for first, count, given in _parts(buffers, used):
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


def _parts(buffers, used: int):
    """First vector, number and buffers of each part of so many buffers, the last one of a part repeated."""
    for first in range(0, used, WIDTH):
        count = min(WIDTH, used - first)
        yield first, count, [buffers[first + min(k, count - 1)] for k in range(WIDTH)]


class Arnoldi:
    """Arnoldi's process on M⁻¹ A of a smoother, at most `steps` steps. All calls are collective.

    smoother: has `vectors`, `step`, `update`, `pc`, see Smoother.
    """

    def __init__(self, smoother, steps: int):
        self.smoother, self._vectors, arrays = smoother, smoother.vectors, smoother.vectors.arrays
        self._basis = [arrays.empty(self._vectors.count) for _ in range(steps + 1)]
        self._zero = arrays.zeros(max(1, self._vectors.count))
        self._parts = [(k, *part) for k in range(steps + 1) for part in _parts(self._basis, k + 1)]
        rows, kind = 2 * len(self._parts), sum_type(arrays)
        self._rows, self._numbers = Rows(self._vectors, rows), arrays.zeros(4 * rows, kind)
        self._host = arrays.pinned(4 * rows, kind)
        self._kernels = {name: self._vectors.kernel(f"basis_{name}") for name in ("dots", "totals")}

    def extreme(self, first: int) -> tuple[float, float]:
        """Smallest and largest real part of the Ritz values; NaN where there are none.

        first: global number of this rank's first unknown, so that the noise does not depend on the ranks.
        """
        matrix = self.matrix(first)
        size = matrix.shape[1]
        if not np.isfinite(matrix).all() or size == 0:
            return float("nan"), float("nan")
        values = np.linalg.eigvals(matrix[:size]).real
        return float(values.min()), float(values.max())

    def roots(self, first: int) -> np.ndarray:
        """Roots [steps - 1] of the polynomial p, p(0) = 1, that makes p(B) B v least, of the operator B and noise v;
        fewer or none where the process ends early.

        They are harmonic Ritz values; complex ones come in pairs. Large components of v are those with large
        eigenvalues, as errors to be smoothed are (Loe and Morgan 2022, GMRES polynomials).
        """
        matrix = self.matrix(first)
        size = matrix.shape[1]
        if not np.isfinite(matrix).all() or size < 2:
            return np.zeros(0)
        powers = np.zeros((size + 1, size + 1))  # B^j v in the basis
        powers[0, 0] = 1.0
        for j in range(size):
            powers[:, j + 1] = matrix @ powers[:size, j]
        found = np.linalg.lstsq(powers[:, 2:], -powers[:, 1], rcond=None)[0]
        roots = np.roots([*found[::-1], 1.0])
        return roots[np.isfinite(roots)]

    def matrix(self, first: int) -> np.ndarray:
        """Arnoldi's matrix [step + 1, step] of as many steps as the process has."""
        smoother, vectors, (start, after, *_) = self.smoother, self._vectors, self._basis
        vectors.run("noise", np.uint32(first % (1 << 32)), after)
        if null_space := getattr(smoother.pc, "null_space", None):
            null_space.remove(after)
        smoother.update(None, None, after, start, 0.0, 0.0, 1.0)
        smoother.step(self._zero, start, after, 0.0, 0.0, 1.0)
        grown, _, given, _ = vectors.sums(start, after)
        if not (np.isfinite(grown) and grown > 0 and given > 0):
            return np.zeros((1, 0))
        size = GUESS * float(np.sqrt(grown / given))
        found = self._matrix(size)
        ratio = np.abs(np.linalg.eigvals(found[:-1])).max() / size if np.isfinite(found).all() else 1.0
        return found if FAR[0] <= ratio <= FAR[1] else self._matrix(ratio * size)

    def _matrix(self, size: float) -> np.ndarray:
        """The same from a basis v₊ = 4 / size (M⁻¹ A - θ) v whose nodes θ lie between 0 and `size`."""
        nodes, scale, steps = size * _nodes(len(self._basis) - 1), 4 / size, len(self._basis) - 1
        for v, after, node in zip(self._basis[:-1], self._basis[1:], nodes, strict=True):
            self.smoother.step(self._zero, v, after, 0.0, -scale * node, -scale)
        gram = self._gram()
        if not np.isfinite(gram).all():
            return np.full((2, 1), np.nan)
        norms = np.sqrt(gram.diagonal())
        found, triangle = _cholesky(gram / np.where(norms > 0, np.outer(norms, norms), 1.0))
        count = min(found, steps)
        product = np.zeros((steps + 1, steps))  # M⁻¹ A V = V product
        np.fill_diagonal(product, nodes)
        np.fill_diagonal(product[1:], 1 / scale)
        product *= norms[:, None] / norms[:steps]
        matrix = np.zeros((count + 1, count))
        below = triangle[:found, : count + 1] @ product[: count + 1, :count]
        matrix[: len(below)] = np.linalg.solve(triangle[:count, :count].T, below.T).T[: count + 1]
        return matrix

    def _gram(self) -> np.ndarray:
        """Products of all pairs of the basis."""
        vectors, basis, count = self._vectors, self._basis, len(self._basis)
        for place, (k, _, used, given) in enumerate(self._parts):
            sums = 2 * place, self._rows.buffer
            self._kernels["dots"](vectors.items, vectors.count, used, *given, basis[k], None, None, *sums)
        groups = 2 * len(self._parts) * vectors.group
        self._kernels["totals"](groups, vectors.groups, self._rows.buffer, self._numbers)
        vectors.arrays.download(self._numbers, self._host, "Krylov sums", wait=False).wait()
        totals = vectors.over_ranks(self._host.astype(float).reshape(-1, WIDTH))
        gram = np.zeros((count, count))
        for (k, first, used, _), part in zip(self._parts, totals, strict=True):
            gram[k, first : first + used] = gram[first : first + used, k] = part[:used]
        return gram


def _cholesky(gram: np.ndarray) -> tuple[int, np.ndarray]:
    """Number of vectors in which none depends on those before it, and the triangle R [row, vector], Rᵀ R = gram; its
    column behind these vectors is what the next one has in common with them."""
    size, found = len(gram), np.zeros_like(gram)
    for k in range(size):
        square = gram[k, k] - found[:k, k] @ found[:k, k]
        if square < DEPENDENT:
            return k, found
        found[k, k:] = (gram[k, k:] - found[:k, k] @ found[:k, k:]) / np.sqrt(square)
    return size, found


@lru_cache
def _nodes(count: int) -> np.ndarray:
    """Leja's nodes between 0 and 1, the last one first."""
    points = (1 + np.cos(np.linspace(0, np.pi, 40 * count + 1))) / 2
    found, distance = [], np.ones(len(points))
    for _ in range(count):
        found.append(points[distance.argmax()])
        distance *= np.abs(points - found[-1])
    return np.array(found)
