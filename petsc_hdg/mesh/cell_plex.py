"""DMPlex of a mesh from its cells: faces and edges found by sorts of all cells' sides.

It is the one that DMPlexCreateFromCellList makes with its interpolation, point for point, whose search of a hash table
takes several times as long.
"""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ..petsc import c_library
from ..threads import stable_order_of, taken
from .order import sorted_columns

# DMPolytopeType of cells, faces and edges, by dimension and vertices of a cell.
_KINDS = {(2, 3): (3, 1), (2, 4): (4, 1), (3, 4): (6, 3, 1), (3, 8): (7, 4, 1)}
# Vertices of a cell's sides in PETSc's order, as they go around them: cells of space by their number of vertices.
_FACES = {
    4: ((0, 1, 2), (0, 3, 1), (0, 2, 3), (2, 1, 3)),
    8: ((0, 1, 2, 3), (4, 5, 6, 7), (0, 3, 5, 4), (2, 1, 7, 6), (3, 2, 6, 5), (0, 4, 7, 1)),
}


def cell_plex(cells: np.ndarray, points: np.ndarray, comm):
    """DMPlex on `comm` of cells [cell, vertex] in PETSc's order and points [point, dim]. Collective.

    Its points are cells, vertices, faces, then edges, each as the first that has them comes. Ranks may have no cells.
    """
    dim, above, sides = points.shape[1], cells, []
    if dim == 3:
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
    return filled_plex(cells.shape[1], cones, orientations, points, comm)


def filled_plex(num_vertices: int, cones, orientations, points: np.ndarray, comm):
    """DMPlex on `comm` of cells with so many vertices. Collective.

    cones, orientations: those of cells, faces and edges [point, cone]; points count on: cells, vertices, faces, edges.
    points [vertex, dim]: coordinates.
    """
    dim = points.shape[1]
    points_of = [len(cones[0]), len(points), *map(len, cones[1:])]
    sizes = np.repeat([cones[0].shape[1], 0, *(each.shape[1] for each in cones[1:])], points_of)
    counts = [points_of[1], *points_of[:1:-1], points_of[0]]
    dm = PETSc.DMPlex().create(comm)
    dm.setDimension(dim)
    dm.setCoordinateDim(dim)
    flat = [np.concatenate([each.ravel() for each in of_all]) for of_all in (cones, orientations)]
    c_library.set_points(dm, counts, sizes, *flat, points)
    cell, *others = _KINDS[dim, num_vertices]
    dm.createLabel("celltype")  # made by PETSc, point by point, it takes as long as the mesh
    for kind, count, last in zip((cell, 0, *others), points_of, np.cumsum(points_of), strict=True):
        if count:
            points_in = PETSc.IS().createStride(count, last - count, 1, comm=PETSc.COMM_SELF)
            dm.getLabel("celltype").setStratumIS(kind, points_in)
    return dm


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
