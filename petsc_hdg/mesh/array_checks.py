"""Arrays and names that a user gives for a mesh, checked before numpy or PETSc takes them for something else."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import MeshError
from ..value_checks import array, plural
from .labels import INTERNAL
from .whole_mesh import centroids


def whole_numbers(what: str, given, width: int | None = None, below: int | None = None) -> np.ndarray:
    """Numbers [n], or [n, width], at least 0 and less than `below`. Raises MeshError."""
    try:
        found = np.asarray(given)
    except ValueError:
        found = np.empty(0, object)
    if not found.size and found.dtype != object:
        return np.empty((0,) if width is None else (0, width), np.int64)
    if found.dtype.kind not in "iu":
        raise MeshError(f"{what} is not made of whole numbers (it has the type {found.dtype}); give an integer array.")
    if width is None:
        found = found.ravel()
    elif found.ndim != 2 or found.shape[1] != width:
        raise MeshError(f"{what} has the shape {found.shape}; give an array [facet, {width}].")
    if below is not None and (found.min() < 0 or found.max() >= below):
        raise MeshError(f"{what} names {found.min()} to {found.max()}; there are {below}, counted from 0.")
    return found


def named(what: str, given) -> dict:
    """A mapping by names that a DMPlex label can have; None is an empty one. Raises MeshError."""
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise MeshError(f"The {what} are given as a {type(given).__name__}; give a dict of names.")
    for name in given:
        if not isinstance(name, str) or not name or name in INTERNAL:
            raise MeshError(
                f"The {what} have the name {name!r}; give a word that is none of PETSc's own, "
                f"{', '.join(sorted(INTERNAL))}."
            )
    return dict(given)


def cell_costs(mesh, cost) -> np.ndarray:
    """Cost of each cell of this rank [num_cells] float64; `cost` as in `agglomerate`."""
    if cost is None:
        return np.ones(mesh.num_cells)
    values = numbers(evaluated(cost, centroids(mesh), "costs"), mesh, "Costs", "iuf")
    if not (np.isfinite(values) & (values > 0)).all():
        raise MeshError("The cost of some cells is not a positive number; give each cell one.")
    return values.astype(float)


def evaluated(given, places: np.ndarray, what: str):
    """Return what was given, or the value of a given function at places [place, dim]."""
    if not callable(given):
        return given
    try:
        return given(places)
    except Exception as error:  # any error of the user's function
        raise MeshError(f"The function of {what} failed: {type(error).__name__}: {error}.") from error


def numbers(values, mesh, what: str, kinds: str) -> np.ndarray:
    """An array of one number a cell of this rank."""
    values, count = array(what, values, MeshError), mesh.num_cells
    if values.shape != (count,):
        raise MeshError(
            f"{what} of shape {values.shape} were given; rank {mesh.comm.rank} owns {plural(count, 'cell')}, so "
            f"give ({count},)."
        )
    if count and values.dtype.kind not in kinds:
        raise MeshError(
            f"{what} were given as {values.dtype}; give a {'real' if 'f' in kinds else 'whole'} number a cell."
        )
    return values
