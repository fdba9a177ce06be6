"""Eigenvalues of a preconditioned operator by Arnoldi's process from noise, as PETSc's KSPCHEBYSHEV estimates them.

No step waits for the host: a Newton basis takes one smoothing step per vector, and its Gram matrix gives Arnoldi's
matrix (Philippe and Reichel 2012).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .basis import WIDTH
from .vectors import Rows, sum_type

GUESS = 1.5  # largest eigenvalue guessed, over what one product with the first vector makes of its norm
FAR = 0.6, 2.5  # largest eigenvalue found over the guessed one, outside of which the basis is ill-conditioned
DEPENDENT = 1e-10  # squared sine of the angle between a vector and those before it, below which the process ends


class Arnoldi:
    """Arnoldi's process on M⁻¹ A of a smoother, at most `steps` steps. All calls are collective.

    smoother: has `vectors`, `step`, `update`, `pc`, see Smoother.
    """

    def __init__(self, smoother, steps: int):
        self.smoother, self._vectors, arrays = smoother, smoother.vectors, smoother.vectors.arrays
        self._basis = [arrays.empty(self._vectors.count) for _ in range(steps + 1)]
        self._zero = arrays.zeros(max(1, self._vectors.count))
        self._parts = [(k, first) for k in range(steps + 1) for first in range(0, k + 1, WIDTH)]
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
        for place, (k, first) in enumerate(self._parts):
            used = min(WIDTH, k + 1 - first)
            given = [basis[first + min(j, used - 1)] for j in range(WIDTH)]
            sums = 2 * place, self._rows.buffer
            self._kernels["dots"](vectors.items, vectors.count, used, *given, basis[k], None, None, *sums)
        groups = 2 * len(self._parts) * vectors.group
        self._kernels["totals"](groups, vectors.groups, self._rows.buffer, self._numbers)
        vectors.arrays.download(self._numbers, self._host, "Krylov sums", wait=False).wait()
        totals = vectors.over_ranks(self._host.astype(float).reshape(-1, WIDTH))
        gram = np.zeros((count, count))
        for (k, first), part in zip(self._parts, totals, strict=True):
            used = min(WIDTH, k + 1 - first)
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
