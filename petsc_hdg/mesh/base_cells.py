"""Lists of cells that belong together, and what they span."""

from __future__ import annotations

import numpy as np

from .order import stable_order


def cells_of(of_cell: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Cells of each of `count` groups as a compressed list: start [count + 1], cell [cell], ascending; both int32."""
    order = stable_order(of_cell)
    start = np.concatenate([[0], np.cumsum(np.bincount(of_cell, minlength=count))])
    return start.astype(np.int32), order.astype(np.int32)


def extents(places: np.ndarray, start: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corners [group, dim] of the boxes around nodes [cell, node, dim] of the groups of `cells_of`."""
    if not len(cells):
        empty = np.zeros((0, places.shape[2]))
        return empty, empty
    low, high = places.min(axis=1)[cells], places.max(axis=1)[cells]
    return np.minimum.reduceat(low, start[:-1], axis=0), np.maximum.reduceat(high, start[:-1], axis=0)
