"""Cells and facets cut into small straight pieces, so that curved shapes and high-order values can be drawn."""

from __future__ import annotations

from functools import cache

import basix
import numpy as np

from ..reference import cell_dim, facet_cell


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
    kind, dim = basix.CellType[cell], cell_dim(cell)
    corners = basix.geometry(kind)
    local = lattice(facet_cell(cell), n)[0]
    found = []
    for facet in basix.topology(kind)[dim - 1]:
        corner = corners[facet]
        found.append(corner[0] + local @ (corner[1:dim] - corner[0]))
    return np.array(found)


@cache
def outline_points(cell: str, n: int) -> np.ndarray:
    """Indices in the lattice of a triangle or quadrilateral along its edges [edge, n + 1]."""
    places = np.rint(lattice(cell, n)[0] * n).astype(int)
    ends = facet_points(cell, n)
    index = {tuple(place): k for k, place in enumerate(places)}
    return np.array([[index[tuple(place)] for place in np.rint(edge * n).astype(int)] for edge in ends])
