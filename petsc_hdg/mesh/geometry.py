"""Coordinates of a mesh: straight cells, or second-order cells as Gmsh writes them."""

from __future__ import annotations

import numpy as np

from ..errors import MeshError
from .topology import Topology


class Geometry:
    """Geometry of one rank's part of a mesh.

    degree: 1 (vertices only) or 2.
    nodes [node, dim] float64: in the mesh's own length unit, the vertices first.
    cell_nodes [cell, n] int32: nodes of basix' Lagrange element of this degree (vertices, edges, faces, interior).
    is_affine: whether every cell is an affine image of the reference cell.
    """

    def __init__(self, topology: Topology, blocks: dict[int, np.ndarray]):
        """`blocks[d]` [entity, dim]: the node inside each entity of dimension d, where that dimension has nodes."""
        shape = topology.shape
        self.degree = 2 if len(blocks) > 1 else 1
        self.nodes = np.ascontiguousarray(np.concatenate(list(blocks.values())))
        parts, offset = [], 0
        for d, block in blocks.items():
            parts.append(topology.entity[d] + np.int32(offset))
            offset += len(block)
        self.cell_nodes = np.ascontiguousarray(np.concatenate(parts, axis=1), np.int32)
        self.is_affine = shape.is_simplex and self.degree == 1


def cell_metrics(mesh) -> np.ndarray:
    """Matrices G [cell, dim, dim] of this rank's cells with bᵀG b = (2 |b| / h)², where h is the length of the cell
    along b: along the edges of boxes and of regular simplices."""
    vertices = mesh.geometry.nodes[mesh.topology.cell_vertices[: mesh.num_cells]]
    about = vertices - vertices.mean(axis=1, keepdims=True)
    factor = 2 / (mesh.dim + 1) if mesh.shape.is_simplex else 1.0
    return factor * np.linalg.inv(np.einsum("cvi,cvj->cij", about, about) / vertices.shape[1])


def node_dimensions(shape, degree: int) -> tuple[int, ...]:
    """Dimensions of the entities that hold one node each, in basix' order."""
    if degree == 1:
        return (0,)
    return (0, 1) if shape.is_simplex else tuple(range(shape.dim + 1))


def read_blocks(section, values: np.ndarray, topology: Topology, degree: int) -> dict[int, np.ndarray]:
    """The coordinates of a DMPlex as the node inside each entity: dimension → [entity, dim].

    `section`, `values`: PETSc's coordinate section and its local array. Raises MeshError.
    """
    dim = topology.dim
    blocks = {}
    for d in node_dimensions(topology.shape, degree):
        start, end = topology.stratum[d]
        blocks[d] = stratum_values(section, values, start, end, dim)
    if dim in blocks:
        blocks[dim] = blocks[dim][topology.cells - topology.stratum[dim][0]]
    return blocks


def local_degree(topology: Topology, section) -> int:
    """Order 1 or 2 of this rank's cells, from how many coordinates the first edge has. Raises MeshError for others."""
    dim, (start, end) = topology.dim, topology.stratum[1]
    low, high = section.getChart()
    if start == end or not (low <= start < high):
        return 1
    on_edge = section.getDof(start)
    if on_edge == 0:
        return 1
    if on_edge == dim:
        return 2
    raise MeshError(
        f"The mesh has cells of geometric order {on_edge // dim + 1}; order 1 or 2 is accepted (Gmsh: -order 2)."
    )


def stratum_values(section, values: np.ndarray, start: int, end: int, dim: int) -> np.ndarray:
    """Coordinates of a stratum [point, dim]; its values lie one after another in the local vector."""
    if start == end:
        return np.empty((0, dim))
    first, last = section.getOffset(start), section.getOffset(end - 1)
    if section.getDof(start) != dim or last - first != (end - 1 - start) * dim:
        raise MeshError(
            "The coordinates of the mesh are not one node a point; give straight or second-order cells, not periodic."
        )
    return values[first : first + (end - start) * dim].reshape(-1, dim).astype(np.float64)
