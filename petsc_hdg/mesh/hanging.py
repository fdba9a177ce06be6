"""Hanging nodes: vertices in the middle of a facet of another cell, which looks like boundary then."""

from __future__ import annotations

from itertools import combinations

import basix
import numpy as np

from ..errors import MeshError

MIXED = np.array([1, 0x9E3779B1, 0x7FEB352D1B5])  # one number of a place; numpy sorts records many times slower
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
    middles = middles[np.isin(*(_keys(x, extent) @ MIXED[: mesh.dim] for x in (middles, vertices)))]  # few, if any
    hanging = np.isin(*(_records(_keys(x, extent)) for x in (middles, vertices)))
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
    """Numbers [point, dim] that are equal where points [point, dim] are close."""
    return np.floor(points / (CLOSE * extent) + 0.377).astype(np.int64)


def _records(keys: np.ndarray) -> np.ndarray:
    """Keys [point, dim] as records [point]."""
    return np.ascontiguousarray(keys).view([("", np.int64)] * keys.shape[1]).ravel()
