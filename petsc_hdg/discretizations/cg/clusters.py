"""Clusters of cells for one thread: fans of simplices around a vertex (2D) or an edge (3D), which share vertices."""

from __future__ import annotations

import numpy as np

LONGEST = 3  # any path of three simplices is a fan: two facets of the middle one share its hub


def fan_vertices(cell_nodes: np.ndarray, fans: np.ndarray) -> np.ndarray:
    """Vertices [cluster, hub then ring] of fans [cluster, LONGEST] of cells along a path, -1 behind the last.

    Cell i of a fan has the hub (dim - 1 vertices) and ring vertices i and i + 1; behind the last the first is repeated.
    """
    corners = cell_nodes.shape[1]
    out = np.repeat(cell_nodes[fans[:, 0], :1], corners + LONGEST - 1, axis=1)
    size = (fans >= 0).sum(axis=1)
    for length in range(1, LONGEST + 1):
        rows = np.flatnonzero(size == length)
        if len(rows):
            out[rows, : corners + length - 1] = _ordered([cell_nodes[fans[rows, k]] for k in range(length)])
    return out


def _ordered(path: list) -> np.ndarray:
    """Hub and ring [fan, vertex] of the cells [fan, corner] of paths of one length."""
    if len(path) == 1:
        return path[0]
    first, middle, last = path[0], path[1], path[-1]
    before, after = _among(middle, first), _among(middle, last)
    own = [_picked(first, ~_among(first, middle))]
    if len(path) == 2:
        shared = _picked(first, _among(first, middle))
        return np.concatenate([shared[:, :-1], own[0], shared[:, -1:], _picked(middle, ~before)], axis=1)
    ends = [_picked(middle, before & ~after), _picked(middle, after & ~before), _picked(last, ~_among(last, middle))]
    return np.concatenate([_picked(middle, before & after), *own, *ends], axis=1)


def _among(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Mask of the corners [cell, corner] that are corners of the other cell."""
    return (some[:, :, None] == others[:, None, :]).any(axis=2)


def _picked(some: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return some[mask].reshape(len(some), -1)


def find_fans(cell_nodes: np.ndarray, facet_cells: np.ndarray, patch: int, longest: int = LONGEST) -> np.ndarray:
    """Fans [cluster, LONGEST] of the cells [cell, corner], each within a patch of `patch` consecutive cells; -1 fills.

    facet_cells [facet, 2]: cells on both sides, -1 for none. In each patch the first cell left takes the neighbour
    with the fewest neighbours left, and these two another; all patches go on at once. Patches come in order, longer
    fans first.
    """
    num_cells, corners = cell_nodes.shape
    around = _neighbours(cell_nodes, facet_cells, patch)
    free = np.ones(num_cells + 1, dtype=bool)
    free[-1] = False
    left = free[around].sum(axis=1).astype(np.int8)
    fans = []
    for c in range(min(patch, num_cells)):
        start = np.arange(c, num_cells, patch)
        start = start[free[start]]
        fan = np.full((len(start), LONGEST), -1)
        fan[:, 0] = start
        _take(start, free, left, around)
        for length in range(1, longest):
            members = fan[:, :length]
            near = around[members].reshape(len(fan), length * corners)
            near[np.repeat(members < 0, corners, axis=1)] = num_cells
            score = np.where(free[near], left[near], 127)
            best = score.argmin(axis=1)
            rows = np.flatnonzero(score[np.arange(len(fan)), best] < 127)
            chosen, place = near[rows, best[rows]], best[rows] // corners
            before = rows[place == 0] if length > 1 else rows[:0]  # next to the path's beginning
            fan[before, 1 : length + 1] = fan[before, :length]
            fan[before, 0] = chosen[place == 0] if length > 1 else chosen[:0]
            behind = (place > 0) | (length == 1)
            fan[rows[behind], length] = chosen[behind]
            _take(chosen, free, left, around)
        fans.append(fan)
    fans = np.concatenate(fans) if fans else np.zeros((0, LONGEST), dtype=np.int64)
    return fans[np.lexsort((-(fans >= 0).sum(axis=1), fans[:, 0] // patch))]


def _take(cells, free, left, around) -> None:
    free[cells] = False
    left[around[cells]] -= 1


def _neighbours(cell_nodes, facet_cells, patch) -> np.ndarray:
    """Neighbours [cell + 1, corner] in the same patch that share a facet's vertices, the number of cells for none."""
    num_cells, corners = cell_nodes.shape
    pairs = facet_cells[(facet_cells >= 0).all(axis=1) & (facet_cells < num_cells).all(axis=1)]
    pairs = pairs[pairs[:, 0] // patch == pairs[:, 1] // patch]
    pairs = pairs[_among(cell_nodes[pairs[:, 0]], cell_nodes[pairs[:, 1]]).sum(axis=1) == corners - 1]
    cell, other = pairs.ravel(), pairs[:, ::-1].ravel()
    order = np.argsort(cell, kind="stable")
    cell, other = cell[order], other[order]
    column = np.arange(len(cell)) - np.searchsorted(cell, np.arange(num_cells))[cell]
    around = np.full((num_cells + 1, corners), num_cells)
    around[cell, column] = other
    return around
