"""Our meshes in scikit-fem, and the distance of what both codes assemble."""

from __future__ import annotations

import numpy as np
import skfem

MESHES = {
    "triangle": (skfem.MeshTri, skfem.ElementTriP1, skfem.ElementTriP2),
    "quadrilateral": (skfem.MeshQuad, skfem.ElementQuad1, skfem.ElementQuad2),
    "tetrahedron": (skfem.MeshTet, skfem.ElementTetP1, skfem.ElementTetP2),
    "hexahedron": (skfem.MeshHex, skfem.ElementHex1, skfem.ElementHex2),
}
# basix's tensor order of a cell's vertices in the places of scikit-fem's
VERTICES = {"quadrilateral": [0, 1, 3, 2], "hexahedron": [0, 1, 2, 4, 3, 5, 6, 7]}
HEX_OF_SKFEM = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1)]


def to_skfem(mesh):
    """The same mesh in scikit-fem."""
    cells = mesh.geometry.cell_nodes
    if mesh.cell == "hexahedron":
        cells = cells[:, [b[0] + 2 * b[1] + 4 * b[2] for b in HEX_OF_SKFEM]]
    elif mesh.cell == "quadrilateral":
        cells = cells[:, VERTICES["quadrilateral"]]
    kind = MESHES[mesh.cell][0]
    return kind(np.ascontiguousarray(mesh.geometry.nodes.T), np.ascontiguousarray(cells.T), sort_t=False)


def relative(got, expected) -> float:
    assert np.abs(expected).max() > 1e-3
    return float(np.abs(got - expected).max() / np.abs(expected).max())
