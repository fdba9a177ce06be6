"""Values that a user gives cell by cell, as an array or a function of places; local, and raises MeshError."""

from __future__ import annotations

import numpy as np

from ..errors import MeshError
from ..value_checks import array, plural
from .whole_mesh import centroids


def cell_costs(mesh, cost) -> np.ndarray:
    """Cost of each cell of this rank [num_cells] float64; `cost` as in `agglomerate`."""
    if cost is None:
        return np.ones(mesh.num_cells)
    values = numbers(evaluated(cost, centroids(mesh), "costs"), mesh, "Costs", "iuf")
    if not (np.isfinite(values) & (values > 0)).all():
        raise MeshError("The cost of some cells is not a positive number; give each cell one.")
    return values.astype(float)


def evaluated(given, places: np.ndarray, what: str):
    """What was given, or the value of a function that was given at places [place, dim]."""
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
