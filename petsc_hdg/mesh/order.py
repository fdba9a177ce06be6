"""Orders in which neighbours in space are neighbours in memory: points along a Z-shaped (Morton) curve.

What touches other ranks comes last: the rest is one range, to be computed while ghost values are under way.
"""

from __future__ import annotations

import numpy as np

from ..threads import in_threads

CHUNK = 1 << 14  # points worked on at a time: temporaries stay in the cache
INNER, BY_VERTEX, BY_FACET = 0, 1, 2  # how a cell touches other ranks
BITS = {2: 31, 3: 21}  # bits of a coordinate in a 64-bit key
# Distances and masks that spread the bits of a coordinate, so that `dim - 1` gaps stand between them.
_SPREAD = {
    2: (
        (16, 0x0000FFFF0000FFFF),
        (8, 0x00FF00FF00FF00FF),
        (4, 0x0F0F0F0F0F0F0F0F),
        (2, 0x3333333333333333),
        (1, 0x5555555555555555),
    ),
    3: (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ),
}


def stable_order(numbers: np.ndarray) -> np.ndarray:
    """Permutation [item] that sorts 32-bit integers, equal ones as they stand; stable argsorts take thrice as long."""
    keys = numbers.astype(np.int64) << 32
    keys |= np.arange(len(numbers))
    keys.sort()
    keys &= 0xFFFFFFFF
    return keys


def morton_keys(x: np.ndarray, lower: np.ndarray, upper: np.ndarray, ranks: int = 1) -> np.ndarray:
    """Keys [point] uint64 of points [point, dim] in the box from lower to upper [dim] along the curve; `ranks`: see
    in_threads."""
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

    in_threads(fill, range(0, len(x), CHUNK), ranks)
    return keys


def morton_order(x: np.ndarray, classes: np.ndarray | None = None, ranks: int = 1) -> np.ndarray:
    """Permutation [point] that visits points [point, dim] along the curve, one of the classes [point] after another."""
    if not len(x):
        return np.zeros(0, dtype=np.int64)
    bounds = [(column.min(), column.max()) for column in x.T]
    keys = morton_keys(x, *np.array(bounds).T, ranks)
    several = classes is not None and classes.any()
    return np.lexsort((keys, classes)) if several else np.argsort(keys, kind="stable")


def cell_classes(topology, shared: np.ndarray, first_point: int) -> np.ndarray:
    """Class [owned cell]: INNER, BY_VERTEX with a vertex or edge, or BY_FACET with a facet that other ranks have too.

    shared [point of the chart] bool; the chart begins with `first_point`.
    """
    classes = np.full(topology.num_owned, INNER, np.int8)
    for dimension, kind in ((0, BY_VERTEX), (topology.dim - 1, BY_FACET)):
        entities = _of_cells(topology, dimension)
        mask = shared[topology.stratum[dimension][0] - first_point :][: topology.num_entities(dimension)]
        classes[mask[entities].any(axis=1)] = kind
    return classes


def _of_cells(topology, dimension: int) -> np.ndarray:
    """Vertices, edges or faces [owned cell, place] of cells."""
    return (topology.cell_vertices if dimension == 0 else topology.entity[dimension])[: topology.num_owned]


def point_classes(mesh) -> np.ndarray:
    """Class [point of the chart] of the cells around a point: the largest of `mesh.cell_classes`."""
    topology, (start, end) = mesh.topology, mesh.dm.getChart()
    classes = np.zeros(end - start, np.int8)
    for kind in (BY_VERTEX, BY_FACET):
        cells = np.flatnonzero(mesh.cell_classes == kind)
        classes[topology.cells[cells] - start] = kind
        for dimension in range(mesh.dim):
            first = topology.stratum[dimension][0] - start
            classes[first + _of_cells(topology, dimension)[cells].ravel()] = kind
    return classes


def plex_order(mesh) -> np.ndarray:
    """All plex points [point] of this rank along the curve, by the mean of their vertices, class by class."""
    topology, x = mesh.topology, mesh.geometry.nodes[: mesh.num_vertices]
    start, end = mesh.dm.getChart()
    middle = np.zeros((end - start, mesh.dim))
    first, last = topology.stratum[0]
    middle[first - start : last - start] = x
    for d in range(1, mesh.dim):
        first, last = topology.stratum[d]
        middle[first - start : last - start] = means(x, topology.entity_vertices[d], mesh.comm.size)
    middle[topology.cells - start] = means(x, topology.cell_vertices, mesh.comm.size)
    return morton_order(middle, point_classes(mesh), mesh.comm.size) + start


def means(x: np.ndarray, vertices: np.ndarray, ranks: int = 1) -> np.ndarray:
    """Mean [entity, dim] of the vertices [entity, vertex] of each; `ranks`: see in_threads."""
    found = np.empty((len(vertices), x.shape[1]))

    def fill(begin: int) -> None:
        part = slice(begin, begin + CHUNK)
        x[vertices[part]].mean(axis=1, out=found[part])

    in_threads(fill, range(0, len(vertices), CHUNK), ranks)
    return found
