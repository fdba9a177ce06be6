"""Orders in which neighbours in space are neighbours in memory: points along a Morton curve; cells by groups.

What touches other ranks comes last: the rest is one range, to be computed while ghost values are under way.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from ..threads import in_threads, stable_order, stable_order_of

CHUNK = 1 << 14  # points worked on at a time: temporaries stay in the cache
INNER, BY_VERTEX, BY_FACET = 0, 1, 2  # how a cell touches other ranks
BITS = {2: 31, 3: 21}  # bits of a coordinate in a 64-bit key
_GROUPS = (16, 8, 4, 2, 1)
# Distances and masks that spread the bits of a coordinate, so that `dim - 1` gaps stand between them: groups of 16 bits
# stand apart first, then of 8, 4, 2 and 1.
_SPREAD = {
    dim: [((dim - 1) * size, sum((2**size - 1) << at for at in range(0, 64, dim * size)) % 2**64) for size in _GROUPS]
    for dim in BITS
}


def samples(count: int, most: int) -> np.ndarray:
    """Numbers of at most `most` of `count` items, evenly spread, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).astype(int))


def sorted_columns(columns) -> list[np.ndarray]:
    """Columns [vertex] of arrays [item] such that each item's numbers ascend; numpy's sort of short rows takes several
    times as long."""
    columns = list(columns)
    for end in range(len(columns) - 1, 0, -1):
        for k in range(end):
            columns[k : k + 2] = np.minimum(*columns[k : k + 2]), np.maximum(*columns[k : k + 2])
    return columns


def morton_keys(x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Keys [point] uint64 of points [point, dim] in the box from lower to upper [dim] along the curve."""
    dim = x.shape[1]
    extent = np.max(upper - lower)
    scale = (2 ** BITS[dim] - 1) / extent if extent > 0 else 0.0
    keys = np.zeros(len(x), dtype=np.uint64)

    def fill(begin: int) -> None:
        part = slice(begin, begin + CHUNK)
        for axis in range(dim):
            bits = ((x[part, axis] - lower[axis]) * scale).astype(np.uint64)
            for shift, mask in _SPREAD[dim]:
                bits = (bits | (bits << np.uint64(shift))) & np.uint64(mask)
            keys[part] |= bits << np.uint64(axis)

    in_threads(fill, range(0, len(x), CHUNK))
    return keys


def ends(x: np.ndarray) -> np.ndarray:
    """Lower and upper corner [2, dim] of the box around points [point, dim], which may be none."""
    return np.array([(column.min(initial=np.inf), column.max(initial=-np.inf)) for column in x.T]).T


def box(comm, x: np.ndarray) -> np.ndarray:
    """The same of the points of all ranks. Collective."""
    lower, upper = ends(x)
    return comm.allreduce(np.stack([lower, -upper]), op=np.minimum) * [[1], [-1]]


def by_class(keys: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Permutation [point] by ascending keys, one of the classes [point] after another."""
    return stable_order_of([classes, keys]) if classes.any() else stable_order(keys)


def cell_classes(topology, shared: np.ndarray, first_point: int) -> np.ndarray:
    """Class [owned cell]: INNER, BY_VERTEX with a vertex or edge, or BY_FACET with a facet that other ranks have too.

    shared [point of the chart] bool; the chart begins with `first_point`.
    """
    classes = np.full(topology.num_owned, INNER, np.int8)
    for dimension, kind in ((0, BY_VERTEX), (topology.dim - 1, BY_FACET)):
        entities = _of_cells(topology, dimension)
        mask = shared[topology.stratum[dimension][0] - first_point :][: topology.num_entities(dimension)]
        if mask.any():
            classes[mask[entities].any(axis=1)] = kind
    return classes


def _of_cells(topology, dimension: int) -> np.ndarray:
    """Vertices, edges or faces [owned cell, place] of cells."""
    return (topology.cell_vertices if dimension == 0 else topology.entity[dimension])[: topology.num_owned]


def point_classes(mesh) -> np.ndarray:
    """Class [point of the chart] of the cells around a point: the largest of `mesh.cell_classes`."""
    start, end = mesh.dm.getChart()
    classes = np.zeros(end - start, np.int8)
    for kind, part in product((BY_VERTEX, BY_FACET), mesh.parts):
        topology, cells = part.topology, np.flatnonzero(part.cell_classes == kind)
        classes[topology.cells[cells] - start] = kind
        for dimension in range(mesh.dim):
            first = topology.stratum[dimension][0] - start
            classes[first + _of_cells(topology, dimension)[cells].ravel()] = kind
    return classes


def plex_order(mesh, dimensions) -> np.ndarray:
    """All plex points [point] of this rank: those of some dimensions along the curve, by the mean of their vertices,
    class by class; then the others as they stand."""
    topology, x = mesh.topology, mesh.geometry.nodes[: mesh.num_vertices]
    (start, end), box = mesh.dm.getChart(), ends(x)
    keys, points, others = [np.zeros(0, np.uint64)], [np.zeros(0, np.int32)], np.ones(end - start, bool)
    for d in sorted(dimensions, key=lambda d: topology.stratum[d]):
        vertices = topology.cell_vertices if d == mesh.dim else topology.entity_vertices[d]
        keys.append(morton_keys(means(x, vertices), *box))
        points.append(topology.cells if d == mesh.dim else np.arange(*topology.stratum[d], dtype=np.int32))
        others[slice(*topology.stratum[d])] = False
    points = np.concatenate(points)
    order = by_class(np.concatenate(keys), point_classes(mesh)[points - start])
    return np.concatenate([points[order], np.flatnonzero(others).astype(np.int32)])


def means(x: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """Mean [entity, dim] of the vertices [entity, vertex] of each."""
    found = np.empty((len(vertices), x.shape[1]))

    def fill(begin: int) -> None:
        first, *others = vertices[begin : begin + CHUNK].T
        total = x.take(first, axis=0)
        for each in others:
            total += x.take(each, axis=0)
        np.divide(total, vertices.shape[1], out=found[begin : begin + CHUNK])

    in_threads(fill, range(0, len(vertices), CHUNK))
    return found


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
