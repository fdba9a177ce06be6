"""Meshes of second-order cells: coordinates of a DMPlex with a node inside each edge, face and cell that has one."""

from __future__ import annotations

import numpy as np

from ..errors import MeshError, collectively
from ..petsc import c_library
from ..reference import ReferenceElement, tabulate
from ..value_checks import shown
from .geometry import node_dimensions
from .shapes import CELLS, Shape


def curved(mesh, where):
    """The DMPlex of `Mesh.curved`. Collective. Raises MeshError."""
    dm = mesh.dm.clone()
    with collectively(mesh.comm):
        if mesh.polytopes is not None:
            raise MeshError("A mesh of polytopes has straight cells; curve the mesh before agglomerate.")
        if mesh.cell not in CELLS or mesh.geometry.periods.any():
            kind = "periodic mesh" if mesh.cell in CELLS else f"mesh of {mesh.cell} cells"
            raise MeshError(f"A {kind} has straight cells; give a bounded mesh of one shape, {', '.join(CELLS)}.")
        blocks = _nodes(mesh)
        found = _moved(where, np.concatenate(list(blocks.values())))
    places = np.split(found, np.cumsum([len(block) for block in blocks.values()])[:-1])
    set_nodes(dm, mesh.shape, dict(zip(blocks, places, strict=True)))
    return dm


def _nodes(mesh) -> dict[int, np.ndarray]:
    """Places of second-order nodes by the cells as they are: dimension → [point, dim], in the order of its stratum."""
    topology, geometry, shape = mesh.topology, mesh.geometry, mesh.shape
    own, second = (ReferenceElement(shape.name, degree) for degree in (geometry.degree, 2))
    table = tabulate(own, second.nodes).values
    of_cells = np.einsum("pn,cnd->cpd", table, geometry.nodes[geometry.cell_nodes])
    blocks, first = {}, 0
    for d in node_dimensions(shape, 2):
        entities = topology.entity[d] if d < shape.dim else topology.cells[:, None] - topology.stratum[d][0]
        blocks[d] = np.empty((topology.num_entities(d), shape.dim))
        blocks[d][entities] = of_cells[:, first : first + entities.shape[1]]
        first += entities.shape[1]
    return blocks


def _moved(where, x: np.ndarray) -> np.ndarray:
    """New places of nodes [node, dim]. Raises MeshError for what is no such function, or no place."""
    if not callable(where):
        raise MeshError(f"The places of nodes are given as {shown(where)}; give a function of x [..., dim].")
    found = np.asarray(where(x.copy()))
    if found.shape != x.shape or found.dtype.kind not in "iuf":
        raise MeshError(
            f"The function for the places of nodes returned {found.dtype} of shape {found.shape} for places of shape "
            f"{x.shape}; return real numbers of that shape."
        )
    if not np.isfinite(found).all():
        at = x[~np.isfinite(found).all(axis=1)][0]
        raise MeshError(
            f"The function for the places of nodes returned {shown(found[~np.isfinite(found)][0])} at "
            f"{at.tolist()}; return finite numbers."
        )
    return found.astype(float)


def set_nodes(dm, shape: Shape, blocks: dict[int, np.ndarray] | None) -> None:
    """Give a DMPlex second-order coordinates. Collective.

    blocks: dimension → node inside each point of its stratum [point, dim], in PETSc's order; None on ranks without
    cells.
    """
    dim, inside = shape.dim, node_dimensions(shape, 2)
    description = dm.getCoordinateDM()  # PETSc 3.26 would distribute another one by the options of the mesh, too
    description.setNumFields(1)
    of_dimension = [dim if d in inside else 0 for d in range(dim + 1)]
    c_library.set_section(description, description.createSection([dim], of_dimension))
    new = description.createLocalVec()
    target, values = c_library.section_of(description), new.getArray()
    for d, block in (blocks or {}).items():
        if block.size:
            first = target.getOffset(dm.getDepthStratum(d)[0])
            values[first : first + block.size] = block.ravel()
    new.setBlockSize(dim) if new.getBlockSize() == 1 else None
    dm.setCoordinatesLocal(new)
