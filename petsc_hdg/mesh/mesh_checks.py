"""Meshes, DMs, arrays and names as users give them, checked before PETSc and numpy take them for something else."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

import numpy as np
from mpi4py import MPI
from petsc4py import PETSc

from ..errors import MeshError, collectively
from ..petsc import c_library
from ..value_checks import array, plural, shown, text, whole_number
from .labels import INTERNAL
from .shapes import SHAPES
from .whole_mesh import centroids

MOST = 2**31 - 1


def require_mesh(mesh, who: str = "This"):
    """The mesh. Raises MeshError for what is none, and for one that was destroyed."""
    if not hasattr(mesh, "topology"):
        raise MeshError(
            f"{who} takes a Mesh, and {shown(mesh)} is given; make one with fe.Mesh.from_file(name), fe.Mesh.box "
            "or fe.Mesh(dm)."
        )
    mesh.dm  # noqa: B018  raises if it was destroyed
    return mesh


def require_dm(dm):
    """The DM. Raises MeshError for what is none, and for one that was destroyed."""
    if not isinstance(dm, PETSc.DM) or not dm.handle:
        found = "a DM that was destroyed" if isinstance(dm, PETSc.DM) else shown(dm)
        raise MeshError(
            f"A mesh is made of a DMPlex, and {found} is given; fe.Mesh.from_file(name) and fe.Mesh.box make others."
        )
    return dm


def communicator(comm):
    """An mpi4py communicator, from one of mpi4py, one of petsc4py, or None for PETSc's default. Raises MeshError."""
    comm = PETSc.COMM_WORLD if comm is None else comm
    if not isinstance(comm, PETSc.Comm | MPI.Comm):
        raise MeshError(f"A mesh lives on a communicator, and {shown(comm)} is given; give one of mpi4py or petsc4py.")
    return comm.tompi4py() if isinstance(comm, PETSc.Comm) else comm


def place(comm, prefix=None, overlap: int = 0, seed=None):
    """The communicator of a mesh that is to be made, after a look at what else says how it is dealt out.

    Raises MeshError.
    """
    text("The prefix of a mesh' options", prefix, MeshError)
    whole_number("The overlap of a mesh", overlap, 0, MOST, MeshError)
    if seed is not None:
        whole_number("partition_seed", seed, 0, MOST, MeshError)
    return communicator(comm)


def kind(dm, comm) -> tuple[int, tuple[str, ...]]:
    """Dimension and cell shapes. Raises MeshError on all ranks."""
    with collectively(comm):
        if dm.getType() != "plex":
            raise MeshError(f"A DM of type '{dm.getType()}' was given; a DMPlex ('plex') is accepted.")
        dim = dm.getDimension()
        if dim not in (2, 3):
            raise MeshError(f"The mesh has dimension {dim}; 2 and 3 are accepted.")
    total = set().union(*comm.allgather(c_library.cell_shapes(dm)))
    with collectively(comm):
        if not total:
            raise MeshError("The mesh has no cells.")
        if not set(total) <= set(SHAPES):
            listed = ", ".join(sorted(total))
            raise MeshError(f"The mesh has cells of shape {listed}; accepted are {', '.join(SHAPES)}.")
    return dim, tuple(name for name in SHAPES if name in total)


def interpolated(dm, comm, dim: int):
    """A reference to the DM, which its owner may then destroy, or an interpolated clone. Collective."""
    if max(comm.allgather(dm.getDepth())) == dim:
        return copy(dm)
    clone = dm.clone()
    clone.interpolate()
    return clone


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
