"""Second-order simplices as PETSc 3.18 reads them: nodes cell by cell become nodes of vertices and edges."""

from __future__ import annotations

import numpy as np

from ..errors import MeshError, collectively
from ..petsc import c_library
from .shapes import shape
from .topology import Topology

# Where the vertices and the edge nodes are in the lexicographic order of the six or ten nodes of a cell.
_VERTICES = {2: (0, 2, 5), 3: (0, 2, 5, 9)}
_EDGES = {
    2: {(0, 2): 1, (0, 5): 3, (2, 5): 4},
    3: {(0, 2): 1, (0, 5): 3, (2, 5): 4, (0, 9): 6, (2, 9): 7, (5, 9): 8},
}


def make_continuous(dm, vertices: np.ndarray | None, comm) -> None:
    """Replace coordinates that are stored cell by cell; nothing happens if none are. Collective.

    vertices [vertex * dim]: coordinates of the vertices on the one rank that has the cells, None elsewhere.
    """
    if not any(comm.allgather(vertices is not None)):
        return
    dim = dm.getDimension()
    section, old = dm.getCoordinateSection(), dm.getCoordinatesLocal().getArray().copy()
    description = dm.clone()
    description.setNumFields(1)
    c_library.set_section(description, description.createSection([dim], [dim, dim] + [0] * (dim - 1)))
    new = description.createLocalVec()
    with collectively(comm):
        if vertices is not None:
            points = vertices.reshape(-1, dim)
            edges = _edge_nodes(dm, dim, _cell_nodes(dm, section, old), points)
            target, values = c_library.section_of(description), new.getArray()
            for d, block in ((0, points), (1, edges)):
                first = target.getOffset(dm.getDepthStratum(d)[0])
                values[first : first + block.size] = block.ravel()
    c_library.set_coordinate_dm(dm, description)
    new.setBlockSize(dim) if new.getBlockSize() == 1 else None
    dm.setCoordinatesLocal(new)


def _cell_nodes(dm, section, values: np.ndarray) -> np.ndarray:
    """Nodes in lexicographic order [cell, node, dim]. Raises MeshError unless the cells are of second order."""
    start, end = dm.getHeightStratum(0)
    dim = dm.getDimension()
    count = section.getDof(start) // dim
    if count != len(_VERTICES[dim]) + len(_EDGES[dim]):
        raise MeshError("The mesh has cells of geometric order 3 or more; order 1 or 2 is accepted (Gmsh: -order 2).")
    first = section.getOffset(start)
    return values[first : first + (end - start) * count * dim].reshape(-1, count, dim)


def _edge_nodes(dm, dim: int, nodes: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Node in the middle of each edge [edge, dim]; cells find their vertices among their nodes by equal coordinates."""
    s = shape("triangle" if dim == 2 else "tetrahedron")
    start, end = dm.getChart()
    topology = Topology(dm, s, np.ones(end - start, bool), np.arange(len(points)))
    corners = points[topology.cell_vertices]
    match = (nodes[:, _VERTICES[dim], None, :] == corners[:, None, :, :]).all(axis=3)  # [cell, position, vertex]
    if not (match.sum(axis=2) == 1).all():
        raise MeshError(
            "The second-order nodes of the mesh do not fit its vertices; write the file again with Gmsh as MSH 4.1."
        )
    local = match.argmax(axis=2)
    result = np.full((topology.num_entities(1), dim), np.nan)
    position = {lexicographic: i for i, lexicographic in enumerate(_VERTICES[dim])}
    for (a, b), node in _EDGES[dim].items():
        code = (1 << local[:, position[a]]) | (1 << local[:, position[b]])
        slot = s.slots[1][code].astype(np.int64)
        result[np.take_along_axis(topology.entity[1], slot[:, None], axis=1)[:, 0]] = nodes[:, node]
    return result
