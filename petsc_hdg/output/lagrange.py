"""VTK's Lagrange cells: where their nodes lie, and the values there of a polynomial given at our own nodes.

Order of nodes: VTK's classes vtkLagrangeCurve, …Triangle, …Quadrilateral, …Tetra, …Hexahedron as files of version 2.2
have it (vertices, edges, faces, interior; the vertical edges of a hexahedron follow its vertices' order).
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np

from ..reference import ReferenceElement

MAX_DEGREE = 10  # VTK's classes hold no more
STRAIGHT = {"prism": 1, "pyramid": 1}  # the degree of shapes of which no other is written
LINEAR_TYPE = {"interval": 3, "triangle": 5, "quadrilateral": 9, "tetrahedron": 10, "hexahedron": 12}
LINEAR_TYPE |= {"prism": 13, "pyramid": 14}
LAGRANGE_TYPE = {"interval": 68, "triangle": 69, "quadrilateral": 70, "tetrahedron": 71, "hexahedron": 72}

_CORNERS = {
    "interval": [(0,), (1,)],
    "triangle": [(0, 0), (1, 0), (0, 1)],
    "quadrilateral": [(0, 0), (1, 0), (1, 1), (0, 1)],
    "tetrahedron": [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)],
    "hexahedron": [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)],
    "prism": [(0, 0, 0), (0, 1, 0), (1, 0, 0), (0, 0, 1), (0, 1, 1), (1, 0, 1)],
    "pyramid": [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1)],
}
_EDGES = {
    "interval": [(0, 1)],
    "triangle": [(0, 1), (1, 2), (2, 0)],
    "quadrilateral": [(0, 1), (1, 2), (3, 2), (0, 3)],
    "tetrahedron": [(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)],
    "hexahedron": [(0, 1), (1, 2), (3, 2), (0, 3), (4, 5), (5, 6), (7, 6), (4, 7), (0, 4), (1, 5), (2, 6), (3, 7)],
}
_TETRAHEDRON_FACES = [(0, 1, 3), (2, 3, 1), (0, 3, 2), (0, 2, 1)]


def vtk_type(cell: str, degree: int) -> int:
    """VTK's number for a cell of this shape and degree."""
    return (LINEAR_TYPE if degree == 1 else LAGRANGE_TYPE)[cell]


@cache
def vtk_nodes(cell: str, degree: int) -> np.ndarray:
    """Nodes [node, dim] of VTK's cell in our reference coordinates: equispaced, in VTK's order."""
    corners = degree * np.array(_CORNERS[cell], np.int64)
    if cell in STRAIGHT:
        return corners.astype(float)
    lattice = {
        "interval": _interval,
        "triangle": _triangle,
        "tetrahedron": _tetrahedron,
        "quadrilateral": _quadrilateral,
        "hexahedron": _hexahedron,
    }[cell](corners, degree)
    return np.array(lattice) / degree


@cache
def to_vtk(cell: str, degree: int, vtk_degree: int, mirrored: bool = False) -> np.ndarray:
    """Matrix [VTK node, node]: values at VTK's nodes from values at the nodes of ReferenceElement(cell, degree).

    mirrored: VTK's cell is laid in with its first two axes exchanged (for cells of negative orientation).
    """
    points = vtk_nodes(cell, vtk_degree)
    if mirrored:
        points = points[:, [1, 0, *range(2, points.shape[1])]]
    table = ReferenceElement(cell, degree).tabulate(points, 0)[0]
    whole = np.rint(table)  # nodes that both sets have keep their values bit for bit
    return np.where(np.abs(table - whole) < 1e-14, whole, table)


def _edge_points(corners: np.ndarray, edges, n: int) -> list[np.ndarray]:
    """Lattice points inside the edges, each from its first vertex to its second."""
    return [corners[a] + (corners[b] - corners[a]) // n * i for a, b in edges for i in range(1, n)]


def _interval(corners: np.ndarray, n: int) -> list[np.ndarray]:
    """Ends, then the points between."""
    return [*corners, *_edge_points(corners, _EDGES["interval"], n)]


def _triangle(corners: np.ndarray, n: int) -> list[np.ndarray]:
    """Corners, edges, then the triangle of degree n - 3 inside. `corners` [3, dim] are n lattice steps apart."""
    if n == 0:
        return [corners[0]]
    points = [*corners, *_edge_points(corners, _EDGES["triangle"], n)]
    if n >= 3:
        inward = (corners.sum(axis=0) - 3 * corners) // n
        points += _triangle(corners + inward, n - 3)
    return points


def _tetrahedron(corners: np.ndarray, n: int) -> list[np.ndarray]:
    """Corners, edges, the insides of the faces, then the tetrahedron of degree n - 4 inside."""
    if n == 0:
        return [corners[0]]
    points = [*corners, *_edge_points(corners, _EDGES["tetrahedron"], n)]
    if n >= 3:
        for face in _TETRAHEDRON_FACES:
            points += _triangle(corners[list(face)], n)[3 * n :]
    if n >= 4:
        inward = (corners.sum(axis=0) - 4 * corners) // n
        points += _tetrahedron(corners + inward, n - 4)
    return points


def _quadrilateral(corners: np.ndarray, n: int) -> list[np.ndarray]:
    """Corners, edges, then rows along the first axis."""
    inside = [np.array((i, j)) for j, i in product(range(1, n), repeat=2)]
    return [*corners, *_edge_points(corners, _EDGES["quadrilateral"], n), *inside]


def _hexahedron(corners: np.ndarray, n: int) -> list[np.ndarray]:
    """Corners, edges, faces (x-, x+, y-, y+, z-, z+), then the inside, the first axis running fastest."""
    points = [*corners, *_edge_points(corners, _EDGES["hexahedron"], n)]
    for axis in range(3):
        for side in (0, n):
            points += [np.insert((i, j), axis, side) for j, i in product(range(1, n), repeat=2)]
    return points + [np.array((i, j, k)) for k, j, i in product(range(1, n), repeat=3)]
