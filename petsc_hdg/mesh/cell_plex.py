"""The points of a mesh from its cells: faces and edges found by sorts of all cells' sides.

They are those that DMPlexCreateFromCellList makes with its interpolation, point for point, whose search of a hash table
takes several times as long.
"""

from __future__ import annotations

import numpy as np

from ..threads import stable_order_of, taken
from .order import sorted_columns
from .plex_points import PlexPoints
from .shapes import Shape

# Vertices of a cell's sides in PETSc's order, as they go around them: cells of space by their number of vertices.
_FACES = {
    4: ((0, 1, 2), (0, 3, 1), (0, 2, 3), (2, 1, 3)),
    8: ((0, 1, 2, 3), (4, 5, 6, 7), (0, 3, 5, 4), (2, 1, 7, 6), (3, 2, 6, 5), (0, 4, 7, 1)),
}


def cell_points(shape: Shape, cells: np.ndarray, points: np.ndarray) -> tuple[PlexPoints, np.ndarray]:
    """The points of cells [cell, vertex] in PETSc's order with points [point, dim], and the vertices of each facet
    [facet, vertex], in any order.

    They are cells, vertices, faces, then edges, each as the first that has them comes.
    """
    above, sides = cells, []
    if shape.dim == 3:
        sides.append(_sides([cells.take(corner, axis=1) for corner in np.transpose(_FACES[cells.shape[1]])]))
        above = sides[0][2]
    sides.append(_sides([above, np.roll(above, -1, axis=1)]))
    first, cones = len(cells) + len(points), []
    for numbers, _, vertices in sides:
        cones.append(first + numbers)
        first += len(vertices)
    edges = sides[-1][2]
    cones.append(len(cells) + edges)
    orientations = [*(orientation for _, orientation, _ in sides), np.zeros(edges.shape, np.int8)]
    return PlexPoints.in_order(shape, cones, orientations, points), sides[0][2]


def _sides(vertices: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number and orientation [item, side] of sides, given each of their vertices [item, side], and vertices
    [number, vertex] of each as the first item goes along or around it."""
    columns, count, shape = [each.ravel() for each in vertices], len(vertices), vertices[0].shape
    number, first = _distinct(columns)
    kept = [taken(column, first) for column in columns]
    start = sum(np.int8(k) * (taken(kept[k], number) == columns[0]) for k in range(1, count))  # where this item begins
    if count == 2:
        orientation = -start
    else:
        after = taken(np.stack(kept, axis=1).ravel(), number.astype(np.int64) * count + (start + 1) % count)
        orientation = np.where(after == columns[1], start, -1 - (start + 1) % count)
    return number.reshape(shape), orientation.reshape(shape), np.stack(kept, axis=1)


def _distinct(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Number [row] of vertices [vertex, row], in any order, as they first come; the first row [number]."""
    keys = _keys(sorted_columns(columns))
    order = stable_order_of(keys)
    is_new = np.zeros(len(order), bool)
    is_new[:1] = True
    for key in keys:
        key = taken(key, order)
        is_new[1:] |= key[1:] != key[:-1]
    first = order[is_new]  # of the rows of each group, since equal ones keep their order
    leads = np.zeros(len(order), bool)
    leads[first] = True
    of_lead = np.cumsum(leads, dtype=np.int32)
    group = np.cumsum(is_new, dtype=np.int32)
    group -= 1
    number = np.empty(len(order), np.int32)
    number[order] = taken(taken(of_lead, first) - 1, group)
    return number, np.flatnonzero(leads)


def _keys(columns: list[np.ndarray]) -> list[np.ndarray]:
    """Columns [row] of numbers from zero on in as few as hold them side by side in 63 bits, all int64."""
    bits, keys = max(int(column.max(initial=1)) for column in columns).bit_length(), []
    for begin in range(0, len(columns), 63 // bits):
        first, *others = columns[begin : begin + 63 // bits]
        keys.append(first.astype(np.int64))
        for column in others:
            keys[-1] = keys[-1] << bits | column
    return keys
