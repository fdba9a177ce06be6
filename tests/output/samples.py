"""Meshes and fields that the tests of output draw and write."""

from __future__ import annotations

import numpy as np

from petsc_hdg.mesh import Mesh
from petsc_hdg.reference import ReferenceElement

BOXES = {
    "triangle": ((4, 3), True),
    "quadrilateral": ((4, 3), False),
    "tetrahedron": ((4, 2, 2), True),
    "hexahedron": ((4, 2, 2), False),
}
ONE = ((1, 1), False)  # a single cell: most ranks have none


def box(cell: str, comm=None) -> Mesh:
    """A small mesh of the shape ("one": a single quadrilateral), of the box (0, 0) to (2, 1) (to (2, 1, 1))."""
    faces, simplex = BOXES.get(cell, ONE)
    return Mesh.box(faces, simplex, upper=(2.0, *[1.0] * (len(faces) - 1)), comm=comm)


def node_places(mesh: Mesh, degree: int) -> np.ndarray:
    """Places [cell, node, dim] of the nodes of degree `degree` of this rank's cells."""
    geometry = ReferenceElement(mesh.cell, mesh.geometry.degree)
    table = geometry.tabulate(ReferenceElement(mesh.cell, degree).nodes, 0)[0]
    return table @ mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells]]
