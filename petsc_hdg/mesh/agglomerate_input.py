"""What a user may give to agglomerate cells, checked: each function is local and raises MeshError."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from ..errors import MeshError
from .labels import stratum_points
from .whole_mesh import centroids

DEGREES = range(7)


def checked_count(count, most: int, what: str) -> int:
    """A number of polytopes between 1 and `most`, the number of `what`."""
    if not isinstance(count, Integral) or not 1 <= count <= most:
        raise MeshError(f"{count!r} polytopes were asked for; a mesh of {most} {what} takes a whole number 1 … {most}.")
    return int(count)


def cell_costs(mesh, cost) -> np.ndarray:
    """Cost of each cell of this rank [num_cells] float64; `cost` as in `agglomerate`."""
    if cost is None:
        return np.ones(mesh.num_cells)
    values = _numbers(_evaluated(cost, centroids(mesh), "costs"), mesh, "Costs", "iuf")
    if not (np.isfinite(values) & (values > 0)).all():
        raise MeshError("The cost of some cells is not a positive number; give each cell one.")
    return values.astype(float)


def checked_groups(mesh, groups) -> np.ndarray:
    """Group of each cell of this rank [num_cells] int64; `groups` as in `agglomerate`."""
    return _numbers(_evaluated(groups, centroids(mesh), "groups"), mesh, "Groups", "iub").astype(np.int64)


def _evaluated(given, places: np.ndarray, what: str):
    """What was given, or the value of a function that was given at places [place, dim]."""
    if not callable(given):
        return given
    try:
        return given(places)
    except Exception as error:  # any error of the user's function
        raise MeshError(f"The function of {what} failed: {type(error).__name__}: {error}.") from error


def _numbers(values, mesh, what: str, kinds: str) -> np.ndarray:
    """An array of one number a cell of this rank."""
    values, count = np.asarray(values), mesh.num_cells
    if values.shape != (count,):
        raise MeshError(
            f"{what} of shape {values.shape} were given; rank {mesh.comm.rank} owns {count} cells, so give ({count},)."
        )
    if count and values.dtype.kind not in kinds:
        raise MeshError(
            f"{what} were given as {values.dtype}; give a {'real' if 'f' in kinds else 'whole'} number a cell."
        )
    return values


def label_groups(mesh, label) -> np.ndarray:
    """Group of each cell of this rank [num_cells] int64, by the names and values that it carries; 0 if it has none."""
    names = [label] if isinstance(label, str) else list(label)
    found = np.zeros(mesh.topology.num_cells, np.int64)
    first, last = mesh.topology.stratum[mesh.dim]
    pairs = [pair for name in names for pair in mesh.labels_table.resolve(name, 0)]
    for k, (name, value) in enumerate(pairs):
        points = stratum_points(mesh.dm, name, value)
        found[points[(points >= first) & (points < last)] - first] = k + 1
    return found[mesh.topology.cells[: mesh.num_cells] - first]


def checked_degrees(degrees, groups: np.ndarray, middles) -> np.ndarray | None:
    """Degree of each polytope [polytope] int, or None.

    degrees: as in `agglomerate`.   groups [polytope]: what each is a piece of.   middles(): places [polytope, dim].
    """
    if degrees is None:
        return None
    of_place = callable(degrees)
    values = np.asarray(_evaluated(degrees, middles() if of_place else None, "degrees"))
    wanted = len(groups) if of_place else int(groups.max()) + 1
    if values.ndim and values.shape != (wanted,):
        raise MeshError(
            f"Degrees of shape {values.shape} were given; for {wanted} agglomerates give ({wanted},), or one number."
        )
    wrong = values.ravel()[~np.isin(values.ravel(), DEGREES)]
    if len(wrong) or values.dtype.kind not in "iu":
        got = wrong[0] if len(wrong) else f"type {values.dtype}"
        raise MeshError(f"A degree of {got} was given to a polytope; whole numbers 0 … {max(DEGREES)} are accepted.")
    of_all = np.broadcast_to(values, wanted)
    return of_all if of_place else of_all[groups]
