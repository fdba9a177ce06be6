"""Facets of a mesh given by its cells' nodes: the outer ones, and those between regions.

Cells and facets are cut into small straight pieces, so that curved shapes and high-order values can be drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import basix
import numpy as np

from ..mesh.order import box
from ..reference import ReferenceElement, facet_cell, is_tensor, on_facets
from .arrays import gather_rows

_GRID = 1e-8  # spacing of the grid that tells facets apart, relative to the mesh's size
_SHIFT = 0.6180339887498949  # grid points are off the round numbers that nodes like to have
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)


@cache
def lattice(cell: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Reference points [point, dim] and pieces between them, for n steps along each edge.

    Pieces are the segments [n, 2] of an interval, the triangles [piece, 3] of a triangle or a quadrilateral.
    """
    if cell == "interval":
        return np.arange(n + 1)[:, None] / n, np.stack((np.arange(n), np.arange(1, n + 1)), axis=1)
    keep = (lambda i, j: i + j <= n) if cell == "triangle" else (lambda i, j: True)
    number = {(i, j): 0 for j in range(n + 1) for i in range(n + 1) if keep(i, j)}
    number = {place: k for k, place in enumerate(number)}
    pieces = []
    for i, j in number:
        right, up, across = number.get((i + 1, j)), number.get((i, j + 1)), number.get((i + 1, j + 1))
        if right is not None and up is not None:
            pieces.append((number[i, j], right, up))
            if across is not None:
                pieces.append((right, across, up))
    return np.array(list(number)) / n, np.array(pieces)


def pieces_per_cell(cell: str, n: int) -> int:
    """Number of triangles in the lattice of a triangle or quadrilateral."""
    return n * n * (1 if cell == "triangle" else 2)


def steps(cell: str, wanted: int, num_cells: int, budget: int) -> int:
    """Steps along a cell's edges (triangle or quadrilateral): `wanted`, or fewer to stay within `budget` triangles."""
    affordable = int(np.sqrt(budget / max(1, num_cells * pieces_per_cell(cell, 1))))
    return max(1, min(wanted, affordable))


@cache
def facet_points(cell: str, n: int) -> np.ndarray:
    """The lattice of each facet in reference coordinates of the cell [facet, point, dim]."""
    return on_facets(cell, lattice(facet_cell(cell), n)[0])


@cache
def outline_points(cell: str, n: int) -> np.ndarray:
    """Indices in the lattice of a triangle or quadrilateral along its edges [edge, n + 1]."""
    places = np.rint(lattice(cell, n)[0] * n).astype(int)
    ends = facet_points(cell, n)
    index = {tuple(place): k for k, place in enumerate(places)}
    return np.array([[index[tuple(place)] for place in np.rint(edge * n).astype(int)] for edge in ends])


@dataclass(frozen=True)
class FacetSet:
    """Facets of this rank's cells. cells [n]: cell numbers.   local [n]: facet of the cell, in basix' order."""

    cells: np.ndarray
    local: np.ndarray

    def sample(self, element: ReferenceElement, n: int, values: np.ndarray) -> np.ndarray:
        """Values [facet, lattice point, component] on the lattice of n steps, from [cell, node, component]."""
        places = facet_points(element.cell, n)
        table = element.tabulate(places.reshape(-1, element.dim), 0)[0].reshape(*places.shape[:2], -1)
        found = np.empty((len(self.cells), places.shape[1], values.shape[2]))
        for facet, matrix in enumerate(table):
            on = self.local == facet
            found[on] = matrix @ values[self.cells[on]]
        return found


def all_facets(element: ReferenceElement, points: np.ndarray, cells: np.ndarray) -> FacetSet:
    """The facets of the given cells [n] of this rank, those between two of them once."""
    keys = _keys(element, points[cells], points.reshape(-1, element.dim).min(axis=0, initial=0.0), 1.0)
    number, first = np.unique(keys, return_index=True)
    first = first[number > 0]
    return FacetSet(cells[first // keys.shape[1]], first % keys.shape[1])


def skin(comm, element: ReferenceElement, points: np.ndarray, tags: np.ndarray) -> tuple[FacetSet, FacetSet]:
    """Exterior facets, and facets between cells of different tags (each on one of its ranks). Collective.

    points [cell, node, dim]; tags [cell] int. Facets are one if their centres agree to 1e-8 of the mesh's size.
    """
    lower, size = _box(comm, points)
    keys = _keys(element, points, lower, size).ravel()
    count = len(keys) // max(1, len(points))
    first, second = pairs(keys)
    alone = keys > 0
    alone[first] = alone[second] = False
    alone = np.flatnonzero(alone)
    status = _across_ranks(comm, keys[alone], tags[alone // count] if count else tags[:0])
    between = first[tags[first // count] != tags[second // count]] if count else first
    between = np.concatenate((between, alone[status == 2]))
    exterior = alone[status == 1]
    count = max(1, count)
    return FacetSet(exterior // count, exterior % count), FacetSet(between // count, between % count)


def pairs(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first and the second one [pair] of items that have one key [item] uint64, which is not 0."""
    order = np.argsort(keys, kind="stable")
    order = order[np.searchsorted(keys[order], 1) :]
    paired = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    return order[paired], order[paired + 1]


def _across_ranks(comm, keys: np.ndarray, tags: np.ndarray) -> np.ndarray:
    """Of facets with one cell on this rank: 1 exterior, 2 between tags (on the first of its ranks), 0 neither."""
    sizes = comm.gather(len(keys))
    keys, tags = gather_rows(comm, keys), gather_rows(comm, tags.astype(np.int64))
    parts = None
    if comm.rank == 0:
        first, second = pairs(keys)
        status = np.ones(len(keys), np.int8)
        status[first] = np.where(tags[first] != tags[second], 2, 0)
        status[second] = 0
        parts = np.split(status, np.cumsum(sizes)[:-1])
    return comm.scatter(parts)


def _box(comm, points: np.ndarray) -> tuple[np.ndarray, float]:
    """Lower corner [dim] and largest side of the box around all nodes. Collective."""
    lower, upper = box(comm, points.reshape(-1, points.shape[-1]))
    return lower, max(float((upper - lower).max()), np.finfo(float).tiny)


def _keys(element: ReferenceElement, points: np.ndarray, lower: np.ndarray, size: float) -> np.ndarray:
    """A number [cell, facet] uint64 for the place of each facet: of its centre, where sides of it have collapsed of the
    mean of the corners that are left; 0 of facets that have collapsed themselves."""
    kind, dim = basix.CellType[element.cell], element.dim
    centres = element.tabulate(facet_points(element.cell, 1).mean(axis=1), 0)[0] @ points
    flat = np.zeros(centres.shape[:2], bool)
    for facet, vertices in enumerate(basix.topology(kind)[dim - 1] if is_tensor(element.cell) else ()):
        corners = points[:, vertices]
        times = np.ones(corners.shape[:2])  # that each corner is there
        for a, b in combinations(range(len(vertices)), 2):
            same = np.abs(corners[:, a] - corners[:, b]).max(axis=1) <= _GRID * size
            times[:, a] += same
            times[:, b] += same
        count = (1 / times).sum(axis=1)
        some, flat[:, facet] = count < len(vertices) - 0.5, count < dim - 0.5
        centres[some, facet] = np.einsum("cv,cvd->cd", 1 / times[some], corners[some]) / count[some, None]
    return np.where(flat, np.uint64(0), place_keys(centres, lower, size) | np.uint64(1))


def place_keys(places: np.ndarray, lower: np.ndarray, size: float) -> np.ndarray:
    """A number [...] uint64 for each place [..., dim] in a box: equal for places that agree to 1e-8 of its size."""
    whole = np.floor((places - lower) / (size * _GRID) + _SHIFT).astype(np.int64).astype(np.uint64)
    return (whole * _FACTORS[: places.shape[-1]]).sum(axis=-1, dtype=np.uint64)
