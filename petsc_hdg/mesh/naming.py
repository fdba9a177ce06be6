"""Names that the user gives to facets and cells of a mesh by their places."""

from __future__ import annotations

import numpy as np

from ..errors import MeshError, collectively
from ..value_checks import shown, truth
from .labels import EXTERIOR, INTERNAL, Labels, mark


def name_boundary(mesh, name: str, where, inside: bool = False) -> None:
    """See Mesh.name_boundary."""
    exterior, dim, topology = mesh.exterior, mesh.dim, mesh.topology
    with collectively(mesh.comm):
        _require_new(mesh, name, 1)
        allowed = np.ones(len(exterior), bool) if truth("Whether facets are inside", inside, MeshError) else exterior
        found = np.zeros(len(exterior), bool)
        for part in mesh.parts:
            corners, facets = part.cell_corners, part.topology.entity[dim - 1]
            for local, vertices in enumerate(part.shape.entities[dim - 1]):
                found[facets[:, local]] = _holds(name, where, corners[:, vertices]).all(axis=1)
        points = np.flatnonzero(found & allowed) + topology.stratum[dim - 1][0]
    _add(mesh, name, points, "facet" if inside else "exterior facet")


def name_region(mesh, name: str, where) -> None:
    """See Mesh.name_region."""
    with collectively(mesh.comm):
        _require_new(mesh, name, 0)
        points = [part.topology.cells[_holds(name, where, part.cell_corners.mean(axis=1))] for part in mesh.parts]
        points = np.concatenate(points)
    _add(mesh, name, points, "cell")


def _require_new(mesh, name: str, height: int) -> None:
    """Raise MeshError for what is no name, and for one that the mesh has."""
    if not isinstance(name, str) or not name or name in (EXTERIOR, *INTERNAL):
        raise MeshError(f"A part of a mesh cannot be called {shown(name)}; give a text of your own.")
    if mesh.labels_table.has(name, height):
        raise MeshError(f"The mesh has a part called '{name}' already; give another name.")


def _holds(name: str, where, x: np.ndarray) -> np.ndarray:
    """What a function says of places [..., dim]. Raises MeshError for what is no such function."""
    if not callable(where):
        raise MeshError(f"The places of '{name}' are given as {shown(where)}; give a function of x [..., dim].")
    found = np.asarray(where(x))
    if found.shape != x.shape[:-1] or found.dtype != bool:
        raise MeshError(
            f"The function for the places of '{name}' returned {found.dtype} of shape {found.shape} for places of "
            f"shape {x.shape}; return bool of shape {x.shape[:-1]}, such as x[..., 0] < 1e-9."
        )
    return found


def _add(mesh, name: str, points: np.ndarray, what: str) -> None:
    """Mark plex points, and have the mesh know the name. Collective. Raises MeshError where all ranks have none."""
    total = mesh.comm.allreduce(len(points))
    with collectively(mesh.comm):
        if not total:
            raise MeshError(f"No {what} of the mesh is at the places of '{name}'; allow for rounding, as x < 1e-9.")
    mark(mesh.dm, name, points)
    mesh.labels_table = Labels(mesh.dm, mesh.comm, mesh.exchange)
