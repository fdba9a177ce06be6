"""What a user may give to agglomerate cells, checked: each function is local and raises MeshError."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from ...errors import MeshError
from ...value_checks import array, plural, shown
from ..cell_values import evaluated, numbers
from ..labels import stratum_points
from ..whole_mesh import centroids

DEGREES = range(7)


def checked_count(count, most: int, what: str) -> int:
    """A number of polytopes between 1 and `most`, the number of things of which `what` is one."""
    if isinstance(count, bool) or not isinstance(count, Integral) or not 1 <= count <= most:
        raise MeshError(
            f"{shown(count)} polytopes were asked for; a mesh of {plural(most, what)} takes a whole number 1 … {most}."
        )
    return int(count)


def checked_groups(mesh, groups) -> np.ndarray:
    """Group of each cell of this rank [num_cells] int64; `groups` as in `agglomerate`."""
    return numbers(evaluated(groups, centroids(mesh), "groups"), mesh, "Groups", "iub").astype(np.int64)


def label_groups(mesh, label) -> np.ndarray:
    """Group of each cell of this rank [num_cells] int64, by the names and values that it carries; 0 if it has none."""
    if not isinstance(label, str | list | tuple | set) or not label:
        raise MeshError(f"The label {shown(label)} was given to agglomerate; give a name or a list of them.")
    names = [label] if isinstance(label, str) else label
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
    values = array("Degrees", evaluated(degrees, middles() if of_place else None, "degrees"), MeshError)
    wanted = len(groups) if of_place else int(groups.max()) + 1
    if values.ndim and values.shape != (wanted,):
        raise MeshError(
            f"Degrees of shape {values.shape} were given; for {wanted} agglomerates give ({wanted},), or one number."
        )
    wrong = values.ravel()[~np.isin(values.ravel(), DEGREES)]
    if len(wrong) or values.dtype.kind not in "iu":
        got = shown(wrong[0]) if len(wrong) else f"type {values.dtype}"
        raise MeshError(f"A degree of {got} was given to a polytope; whole numbers 0 … {max(DEGREES)} are accepted.")
    of_all = np.broadcast_to(values, wanted)
    return of_all if of_place else of_all[groups]
