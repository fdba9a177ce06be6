"""Plane geometry of one polygon: crossings, the points that see all of it, its division into triangles."""

from __future__ import annotations

import numpy as np

FLAT = 1e-12  # areas below that, relative to the polygon's extent squared, are nothing


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Third component of the cross product of plane vectors [..., 2]."""
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def area(x: np.ndarray) -> float:
    """Area of a polygon x [vertex, 2], positive if it runs counterclockwise."""
    rest = x[1:] - x[0]
    return float(cross(rest[:-1], rest[1:]).sum() / 2)


def centroid(x: np.ndarray) -> np.ndarray:
    """Centroid [2] of a polygon x [vertex, 2] that has an area."""
    rest = x[1:] - x[0]
    weights = cross(rest[:-1], rest[1:])
    return x[0] + (weights[:, None] * (rest[:-1] + rest[1:])).sum(axis=0) / (3 * weights.sum())


def crossing(x: np.ndarray) -> tuple[int, int] | None:
    """Two edges of a polygon x [vertex, 2] that cross, touch or lie on one another, by their first vertices."""
    n, after = len(x), np.roll(x, -1, axis=0)
    along, small = after - x, FLAT * np.ptp(x, axis=0).max() ** 2
    # side[i, j]: on which side of edge i vertex j lies
    side = cross(along[:, None], x[None] - x[:, None])
    side[np.abs(side) <= small] = 0
    split = np.sign(side) * np.sign(np.roll(side, -1, axis=1)) <= 0
    low, high = np.minimum(x, after), np.maximum(x, after)
    near = ((low[:, None] <= high[None]) & (low[None] <= high[:, None])).all(axis=2)
    gap = (np.arange(n)[None] - np.arange(n)[:, None]) % n
    found = np.argwhere(split & split.T & near & (gap > 1) & (gap < n - 1))
    back = np.flatnonzero((np.diagonal(np.roll(side, -2, axis=1)) == 0) & ((along * np.roll(along, -1, 0)).sum(1) < 0))
    if len(found):
        return int(found[0, 0]), int(found[0, 1])
    return (int(back[0]), int(back[0] + 1) % n) if len(back) else None


def kernel(x: np.ndarray) -> np.ndarray:
    """Corners [corner, 2] of what sees all of a counterclockwise polygon x [vertex, 2]; none if no point does."""
    low, high = x.min(axis=0), x.max(axis=0)
    inside = np.array([low, [high[0], low[1]], high, [low[0], high[1]]])
    for a, b in zip(x, np.roll(x, -1, axis=0), strict=True):
        height = cross(b - a, inside - a)
        after, next_ = np.roll(height, -1), np.roll(inside, -1, axis=0)
        cut = height * after < 0
        part = np.where(cut, height / np.where(cut, height - after, 1), 0)[:, None]
        rows = np.stack([inside, inside + part * (next_ - inside)], axis=1).reshape(-1, 2)
        inside = rows[np.stack([height >= 0, cut], axis=1).ravel()]
        if len(inside) < 3:
            return np.empty((0, 2))
    return inside


def quality(corners: np.ndarray) -> np.ndarray:
    """Quality of triangles [triangle, 3, 2]: 1 if equilateral, 0 if flat, negative if clockwise."""
    sides = corners[:, [1, 2, 0]] - corners
    return 2 * np.sqrt(3) * cross(sides[:, 0], sides[:, 1]) / np.maximum((sides**2).sum(axis=(1, 2)), 1e-300)


def fan(x: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Corners [vertex, 3, 2] of the triangles between a point and the edges of a polygon x [vertex, 2]."""
    return np.stack([np.broadcast_to(point, x.shape), x, np.roll(x, -1, axis=0)], axis=1)


def clip_ears(x: np.ndarray) -> np.ndarray | None:
    """Triangles [triangle, 3], by vertices, of a simple counterclockwise polygon x [vertex, 2].

    The best ear is cut off again and again, then diagonals are flipped where that makes the worse of two triangles
    better. Every vertex is one of a triangle, also where its angle is straight. None if rounding leaves no ear.
    """
    left, triangles, small = np.arange(len(x)), [], FLAT * np.ptp(x, axis=0).max() ** 2
    while len(left) > 3:
        ear = _best_ear(x[left], small)
        if ear is None:
            return None
        triangles.append(left[[ear - 1, ear, (ear + 1) % len(left)]])
        left = np.delete(left, ear)
    return flipped(x, np.array([*triangles, left])) if quality(x[left][None])[0] > 0 else None


def flipped(x: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Triangles [triangle, 3] over vertices x [vertex, 2] in which no diagonal has better triangles across it."""
    found, at = [tuple(t) for t in triangles.tolist()], x.tolist()
    beside = {(t[k - 1], t[k]): i for i, t in enumerate(found) for k in range(3)}
    stack = list(beside)
    while stack:
        a, b = stack.pop()
        i, j = beside.get((a, b)), beside.get((b, a))
        if i is None or j is None:
            continue
        c, d = (next(v for v in found[k] if v not in (a, b)) for k in (i, j))
        now = min(_roundness(*at[a], *at[b], *at[c]), _roundness(*at[b], *at[a], *at[d]))
        then = min(_roundness(*at[c], *at[d], *at[b]), _roundness(*at[d], *at[c], *at[a]))
        if then > now * (1 + 1e-9):
            found[i], found[j] = (c, d, b), (d, c, a)
            del beside[a, b], beside[b, a]
            for k in (i, j):
                t = found[k]
                beside |= {(t[m - 1], t[m]): k for m in range(3)}
                stack += [(t[m - 1], t[m]) for m in range(3)]
    return np.array(found)


def _roundness(ax, ay, bx, by, cx, cy) -> float:
    """As `quality` of one triangle, but for a factor, in plain numbers: arrays of three points cost far more."""
    ux, uy, vx, vy = bx - ax, by - ay, cx - ax, cy - ay
    return (ux * vy - uy * vx) / (ux * ux + uy * uy + vx * vx + vy * vy + (ux - vx) ** 2 + (uy - vy) ** 2)


def _best_ear(x: np.ndarray, small: float) -> int | None:
    """Vertex of a polygon x [vertex, 2] whose triangle with its neighbours is best among those that can be cut off."""
    n = len(x)
    place = np.arange(n)
    corners = x[np.stack([place - 1, place, (place + 1) % n], axis=1)]
    values = quality(corners)
    values[cross(x - corners[:, 0], corners[:, 2] - x) <= small] = -1
    for ear in np.argsort(-values, kind="stable"):
        if values[ear] <= 0:
            return None
        others = x[(ear + 2 + place[: n - 3]) % n]
        heights = [
            cross(corners[ear, (k + 1) % 3] - corners[ear, k], others - corners[ear, k]) >= -small for k in range(3)
        ]
        if not (heights[0] & heights[1] & heights[2]).any():
            return int(ear)
    return None
