"""Parts of equal cost by recursive bisection of coordinates (Berger and Bokhari 1987)."""

from __future__ import annotations

import numpy as np

SKEW = 1e-5  # of the other directions in the one along which places are divided: rows of a grid stay together
SAME = 1e-9  # of the extent: places that rounding alone tells apart are taken in their order


def balanced_parts(places: np.ndarray, count: int, costs: np.ndarray | None = None) -> np.ndarray:
    """Part of each place [place] int64, 0 … count - 1, as even as whole places allow; none is empty unless it must be.

    places [place, dim]: coordinates.   costs [place]: positive; None: the same for all.
    """
    number = len(places)
    if count >= number:
        return np.arange(number)
    part, sets = np.empty(number, np.int64), [(np.arange(number), 0, count)]
    while sets:
        members, first, parts = sets.pop()
        part[members] = first
        if parts > 1:
            left = parts // 2
            lower, upper = _divided(places[members], None if costs is None else costs[members], left, parts)
            sets += [(members[lower], first, left), (members[upper], first + left, parts - left)]
    return part


def _divided(places: np.ndarray, costs: np.ndarray | None, left: int, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """Two sets of places, for `left` of `parts` parts and for the others, across their longest extent."""
    extents = np.ptp(places, axis=0)
    along = np.full(len(extents), SKEW)
    along[extents.argmax()] = 1.0
    at = np.rint(places @ along / (SAME * extents.max() or 1.0)).astype(np.int64)
    if costs is None:
        size = len(at) * left // parts
        middle = np.partition(at, size)[size]
        is_lower, equal = at < middle, np.flatnonzero(at == middle)
        is_lower[equal[: size - np.count_nonzero(is_lower)]] = True
    else:
        order = np.argsort(at, kind="stable")
        middles = np.cumsum(costs[order]) - costs[order] / 2
        size = np.clip(np.searchsorted(middles, costs.sum() * left / parts), left, len(at) - (parts - left))
        is_lower = np.zeros(len(at), bool)
        is_lower[order[:size]] = True
    return np.flatnonzero(is_lower), np.flatnonzero(~is_lower)
