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
    "interval": [],  # whose inside is an edge
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
    lattice = _simplex if cell in ("triangle", "tetrahedron") else _tensor
    return np.array(lattice(cell, corners, degree)) / degree


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


def _around(cell: str, corners: np.ndarray, n: int) -> list[np.ndarray]:
    """Corners, then the lattice points inside the edges, each from its first vertex to its second."""
    return [*corners, *(corners[a] + (corners[b] - corners[a]) // n * i for a, b in _EDGES[cell] for i in range(1, n))]


def _simplex(cell: str, corners: np.ndarray, n: int) -> list[np.ndarray]:
    """Corners, edges, the insides of the faces of a tetrahedron, then the simplex inside, of a degree that is less by
    the number of corners. `corners` [vertex, dim] are n lattice steps apart."""
    if n == 0:
        return [corners[0]]
    points, count = _around(cell, corners, n), len(corners)
    for face in _TETRAHEDRON_FACES if cell == "tetrahedron" and n >= 3 else ():
        points += _simplex("triangle", corners[list(face)], n)[3 * n :]
    if n >= count:
        inward = (corners.sum(axis=0) - count * corners) // n
        points += _simplex(cell, corners + inward, n - count)
    return points


def _tensor(cell: str, corners: np.ndarray, n: int) -> list[np.ndarray]:
    """Corners, edges, faces of a hexahedron (x-, x+, y-, y+, z-, z+), then the inside, the first axis fastest."""
    points, dim = _around(cell, corners, n), corners.shape[1]
    for axis, side in product(range(3), (0, n)) if dim == 3 else ():
        points += [np.insert(place[::-1], axis, side) for place in product(range(1, n), repeat=2)]
    return points + [np.array(place[::-1]) for place in product(range(1, n), repeat=dim)]
