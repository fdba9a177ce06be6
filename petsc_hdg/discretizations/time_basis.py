"""Legendre polynomials in time on the local steps of a slab, at the times where residuals are wanted."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.polynomial import legendre


@dataclass(frozen=True)
class SlabTables:
    """Temporal functions at the times of a slab of one length; times are counted from its begin.

    times, weights [point]         Gauss rule on each interval between starts of local steps
    starts         [start]         starts of local steps, 0 first
    value, rate    [point, kind, column]  functions and their derivatives at the points
    after, jump    [start, kind, column]  functions behind the starts, and their jumps there, those across 0 without
                                          the slab before; a jump is 0 where no step of the kind begins
    end            [kind, column]  functions at the end of the slab
    """

    times: np.ndarray
    weights: np.ndarray
    starts: np.ndarray
    value: np.ndarray
    rate: np.ndarray
    after: np.ndarray
    jump: np.ndarray
    end: np.ndarray


class TimeBasis:
    """Polynomials of degree `degree` on each of `steps[kind]` equal parts of a slab, orthonormal in L2 of the slab.

    A column is a function: part by part, ascending degree in each. Sums over time are taken by `points` Gauss points
    on each interval of the common refinement of all kinds, so that facets between different kinds are integrated
    exactly as far as the rule is exact (degree 2 points - 1).
    """

    def __init__(self, degree: int, steps, points: int):
        self.degree, self.steps, self.points = degree, tuple(int(m) for m in steps), points
        self.size = degree + 1
        self.columns = max(self.steps) * self.size
        self.breaks = sorted({Fraction(j, m) for m in self.steps for j in range(m + 1)})

    def at(self, place: float, length: float) -> np.ndarray:
        """Functions [kind, column] at `place` in [0, 1] of a slab; where two parts meet, those of the first."""
        part = [min(max(int(np.ceil(place * m - 1e-12)) - 1, 0), m - 1) for m in self.steps]
        return self._rows([place], [part], length)[0][0]

    def tables(self, length: float) -> SlabTables:
        """All tables of slabs of one length."""
        points, weights = legendre.leggauss(self.points)
        places, parts, rule = [], [], []
        for begin, end in zip(self.breaks[:-1], self.breaks[1:], strict=True):
            inside = self._parts((begin + end) / 2)
            for x, w in zip(points, weights, strict=True):
                places.append(float(begin) + float(end - begin) * (1 + x) / 2)
                parts.append(inside)
                rule.append(w / 2 * float(end - begin) * length)
        value, rate = self._rows(places, parts, length)
        starts = self.breaks[:-1]
        after = self._rows([float(b) for b in starts], [self._parts(b) for b in starts], length)[0]
        begins = np.array([[(b * m).denominator == 1 for m in self.steps] for b in starts])
        before = self._rows([float(b) for b in starts], [self._parts(b, -1) for b in starts], length)[0]
        before[0] = 0
        return SlabTables(
            times=np.array(places) * length,
            weights=np.array(rule),
            starts=np.array([float(b) for b in starts]) * length,
            value=value,
            rate=rate,
            after=after,
            jump=(after - before) * begins[:, :, None],
            end=self.at(1.0, length),
        )

    def _parts(self, place: Fraction, shift: int = 0) -> list[int]:
        """Part of each kind that holds a place, or begins there; shift: so many parts earlier."""
        return [max(int(place * m) + shift, 0) for m in self.steps]

    def _rows(self, places, parts, length: float) -> tuple[np.ndarray, np.ndarray]:
        """Functions and their derivatives [place, kind, column], each kind in its part [place, kind]."""
        value = np.zeros((len(places), len(self.steps), self.columns))
        rate = np.zeros_like(value)
        powers = np.arange(self.size)
        for row, (place, inside) in enumerate(zip(places, parts, strict=True)):
            for kind, (m, part) in enumerate(zip(self.steps, inside, strict=True)):
                xi, factor = 2 * (place * m - part) - 1, np.sqrt((2 * powers + 1) * m / length)
                where = slice(part * self.size, (part + 1) * self.size)
                value[row, kind, where] = factor * legendre.legvander(xi, self.degree).ravel()
                slopes = [legendre.legval(xi, legendre.legder(np.eye(self.size)[k])) for k in powers]
                rate[row, kind, where] = factor * np.array(slopes) * 2 * m / length
        return value, rate
