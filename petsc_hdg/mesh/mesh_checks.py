"""Meshes, DMs and what goes with them as users give them, checked before PETSc sees them."""

from __future__ import annotations

from copy import copy

from mpi4py import MPI
from petsc4py import PETSc

from ..errors import MeshError, collectively
from ..petsc import c_library
from ..value_checks import shown, text, whole_number
from .shapes import CELLS

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


def kind(dm, comm) -> tuple[int, str]:
    """Dimension and cell shape. Raises MeshError on all ranks."""
    with collectively(comm):
        if dm.getType() != "plex":
            raise MeshError(f"A DM of type '{dm.getType()}' was given; a DMPlex ('plex') is accepted.")
        dim = dm.getDimension()
        if dim not in (2, 3):
            raise MeshError(f"The mesh has dimension {dim}; 2 and 3 are accepted.")
    total: dict[str, int] = {}
    for found in comm.allgather(c_library.cell_shapes(dm)):
        for name, count in found.items():
            total[name] = total.get(name, 0) + count
    with collectively(comm):
        if not total:
            raise MeshError("The mesh has no cells.")
        if len(total) > 1 or not set(total) <= set(CELLS):
            listed = ", ".join(sorted(total))
            raise MeshError(
                f"The mesh has cells of shape {listed}; one shape in a mesh is accepted: {', '.join(CELLS)}."
            )
    return dim, next(iter(total))


def interpolated(dm, comm, dim: int):
    """A reference to the DM, which its owner may then destroy, or an interpolated clone. Collective."""
    if max(comm.allgather(dm.getDepth())) == dim:
        return copy(dm)
    clone = dm.clone()
    clone.interpolate()
    return clone
