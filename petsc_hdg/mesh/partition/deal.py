"""Cells of a mesh that lie on rank 0 dealt to the ranks: by METIS, the same each time, or at random, for tests."""

from __future__ import annotations

import numpy as np
from mpi4py.util import pkl5
from petsc4py import PETSc

from ...errors import collectively
from ...options import Options, given_truth
from ...petsc.c_library import has_cell_coordinates
from ..plex_points import PlexPoints
from .metis import balanced_parts

CHOICE = "petscpartitioner_type"


def by_metis(prefix: str) -> bool:
    """True if METIS deals cells out, and not PETSc's partitioner: with -fe_deterministic, unless the user names one.

    PT-Scotch, which PETSc takes where it has it, deals the same mesh out in another way now and then.
    Raises OptionError.
    """
    database = PETSc.Options(prefix)
    if database.hasName(CHOICE):
        return False
    return given_truth(prefix, "fe_deterministic", Options.deterministic)


def deal_points(points: PlexPoints, comm, seed: int | None):
    """A DM of points that lie on rank 0, whose cells go to the ranks by METIS or with a seed at random; None of points
    that are left to PETSc, where a facet has three cells. Collective. Raises MeshError on all ranks."""
    with collectively(comm):
        is_manifold = points.is_manifold
    if not comm.bcast(is_manifold):
        return None
    return scattered(points if comm.rank == 0 else None, _target(points, points.num_cells, comm, seed), comm)


def deal(dm, comm, seed: int | None, scatter: bool):
    """A DM whose cells are to be sent to ranks, by METIS or with a seed at random, or are there if `scatter` allows.
    Collective. Raises MeshError on all ranks.

    What is neither at random nor on rank 0 alone, or has no facets, is left to PETSc. A DM whose cells are not sent yet
    knows where they go when PETSc distributes it.
    """
    start, end = dm.getHeightStratum(0)
    points, name = None, dm.getName()  # which is collective
    dm.getCoordinatesLocal()  # of a refined mesh all ranks make them, once
    is_periodic = has_cell_coordinates(dm)
    with collectively(comm):
        if comm.rank == 0:
            points = PlexPoints.of_plex(dm, name)
    is_straight = points is not None and points.vertices is not None
    facts = [points is not None, is_straight, comm.rank and end - start, is_periodic]
    is_whole, is_straight, elsewhere, is_periodic = comm.allreduce(np.array(facts, np.int64))
    if seed is None and (elsewhere or not is_whole):
        return dm
    target = _target(points, end - start, comm, seed)
    if scatter and is_straight and not (elsewhere or is_periodic):
        return scattered(points, target, comm)
    sizes = np.bincount(target, minlength=comm.size).astype(PETSc.IntType)
    partitioner = dm.getPartitioner()
    partitioner.setType(PETSc.Partitioner.Type.SHELL)
    partitioner.setShellPartition(comm.size, sizes, np.argsort(target, kind="stable").astype(PETSc.IntType))
    return dm


def _target(points: PlexPoints | None, count: int, comm, seed: int | None) -> np.ndarray:
    """The rank of each of the `count` cells here [cell]. Collective."""
    if seed is not None:
        return np.random.default_rng([seed, comm.rank]).integers(0, comm.size, count)
    with collectively(comm):
        return balanced_parts(points.dual_graph(), comm.size) if comm.rank == 0 else np.zeros(0, np.int64)


def forget(dm) -> None:
    """A partitioner as PETSc makes it, in place of the one that knows where cells went."""
    dm.setPartitioner(PETSc.Partitioner().create(dm.comm))


def scattered(points: PlexPoints | None, target: np.ndarray, comm):
    """A DMPlex on `comm` of the points that rank 0 has, each cell on the rank `target` [cell]. Collective."""
    parts = None
    with collectively(comm):
        if points is not None:
            parts = points.parts(target, comm.size)
    link = pkl5.Intracomm(comm)  # messages of any size
    if parts is None:
        part = link.recv(source=0)
    else:
        part = parts[0]
        for request in [link.isend(other, dest) for dest, other in enumerate(parts) if dest]:
            request.wait()
    mine, leaves, roots = part
    dm = mine.plex(comm)
    star_forest = PETSc.SF().create(dm.comm)
    star_forest.setGraph(dm.getChart()[1], leaves, roots)
    dm.setPointSF(star_forest)
    return dm
