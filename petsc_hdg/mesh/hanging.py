"""Hanging nodes: vertices in the middle of a facet of another cell, which looks like boundary then."""

from __future__ import annotations

from itertools import combinations

import basix
import numpy as np

from ..errors import MeshError

CLOSE = 1e-8  # of the mesh's extent: places nearer than that are the same


def check_conforming(mesh) -> None:
    """Raise MeshError if a vertex of the exterior is the middle of an exterior facet, or of its edge. Collective."""
    corners = _exterior_corners(mesh)
    pairs = list(combinations(range(corners.shape[1]), 2))
    middles = np.concatenate([corners[:, pair].mean(axis=1) for pair in pairs])
    vertices = np.concatenate(mesh.comm.allgather(corners.reshape(-1, mesh.dim)))
    if not len(vertices):
        return
    extent = np.ptp(vertices, axis=0).max()
    hanging = np.isin(_keys(middles, extent), _keys(vertices, extent))
    places = np.concatenate(mesh.comm.allgather(middles[hanging]))
    if len(places):
        count, near = len(np.unique(places, axis=0)), ", ".join(f"{x:.4g}" for x in places[0])
        raise MeshError(
            f"The mesh has hanging nodes, {count} of them, the first near ({near}); cells must share whole facets: "
            "refine the larger cells there, or split them."
        )


def _exterior_corners(mesh) -> np.ndarray:
    """Corners [facet, corner, dim] of this rank's exterior facets."""
    cells, faces = np.nonzero(mesh.exterior[mesh.topology.entity[mesh.dim - 1][: mesh.num_cells]])
    of_facet = np.array(basix.topology(basix.CellType[mesh.cell])[mesh.dim - 1])
    numbers = mesh.geometry.cell_nodes[cells[:, None], of_facet[faces]]
    return mesh.geometry.nodes[numbers]


def _keys(points: np.ndarray, extent: float) -> np.ndarray:
    """Places [point] as records that are equal where points [point, dim] are close."""
    whole = np.floor(points / (CLOSE * extent) + 0.377).astype(np.int64)
    return np.ascontiguousarray(whole).view([("", np.int64)] * points.shape[1]).ravel()
