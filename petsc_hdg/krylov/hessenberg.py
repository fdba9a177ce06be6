"""The small least-squares problem of GMRES, by plane rotations."""

from __future__ import annotations

from math import hypot

import numpy as np


class Hessenberg:
    """Triangular factor of the Hessenberg matrix, `size` columns so far, and `right`, the rotated right-hand side."""

    def __init__(self, most: int):
        self.size = 0
        self.right = np.zeros(most + 1)
        self._columns = np.zeros((most + 1, most))
        self._rotations: list[tuple[float, float]] = []

    def begin(self, norm: float) -> None:
        """The residual's norm is the first entry of the right-hand side."""
        self.right[0] = norm

    def add(self, products: np.ndarray, below: float, ends: bool) -> float | None:
        """Take a column [size + 1] and what stands below it; returns the residual's norm, None if the column is zero.

        ends: whether nothing stands below, so that the residual is zero.
        """
        k = self.size
        column = np.append(products, below)
        for j, (cosine, sine) in enumerate(self._rotations):
            first, second = column[j], column[j + 1]
            column[j : j + 2] = cosine * first + sine * second, cosine * second - sine * first
        norm = 0.0
        if not ends:
            length = hypot(column[k], column[k + 1])
            if length == 0:
                return None
            cosine, sine = column[k] / length, column[k + 1] / length
            self._rotations.append((cosine, sine))
            self.right[k : k + 2] = cosine * self.right[k], -sine * self.right[k]
            column[k] = cosine * column[k] + sine * column[k + 1]
            norm = abs(self.right[k + 1])
        self._columns[: k + 1, k] = column[: k + 1]
        self.size += 1
        return float(norm)

    def solve(self) -> np.ndarray | None:
        """Coefficients [size] of the basis in the solution's correction; None if the factor is singular."""
        size = self.size
        if not self._columns.diagonal()[:size].all():
            return None
        found = np.zeros(size)
        for k in range(size - 1, -1, -1):
            found[k] = (self.right[k] - self._columns[k, k + 1 : size] @ found[k + 1 :]) / self._columns[k, k]
        return found
