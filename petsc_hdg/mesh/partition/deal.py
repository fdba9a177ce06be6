"""Cells of a DMPlex that lie on rank 0 dealt to the ranks: by METIS, the same each time, or at random, for tests."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ...errors import collectively
from ...options import Options, given_truth
from ...petsc.c_library import has_cell_coordinates
from .metis import balanced_parts
from .scatter import scattered, whole_plex

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


def deal(dm, comm, seed: int | None, scatter: bool):
    """A DM whose cells are to be sent to ranks, by METIS or with a seed at random, or are there if `scatter` allows.
    Collective. Raises MeshError on all ranks.

    What is neither at random nor on rank 0 alone, or has no facets, is left to PETSc. A DM whose cells are not sent yet
    knows where they go when PETSc distributes it.
    """
    start, end = dm.getHeightStratum(0)
    plex = target = None
    dm.getCoordinatesLocal()  # of a refined mesh all ranks make them, once
    is_periodic = has_cell_coordinates(dm)
    with collectively(comm):
        if comm.rank == 0:
            plex = whole_plex(dm)
    is_straight = plex is not None and plex.is_straight
    facts = [plex is not None, is_straight, comm.rank and end - start, is_periodic]
    is_whole, is_straight, elsewhere, is_periodic = comm.allreduce(np.array(facts, np.int64))
    if seed is not None:
        target = np.random.default_rng([seed, comm.rank]).integers(0, comm.size, end - start)
    elif is_whole and not elsewhere:
        with collectively(comm):
            target = balanced_parts(plex.dual_graph(), comm.size) if plex else np.zeros(0, np.int64)
    if target is None:
        return dm
    if scatter and is_straight and not (elsewhere or is_periodic):
        return scattered(plex, target, dm.getName(), comm)
    sizes = np.bincount(target, minlength=comm.size).astype(PETSc.IntType)
    partitioner = dm.getPartitioner()
    partitioner.setType(PETSc.Partitioner.Type.SHELL)
    partitioner.setShellPartition(comm.size, sizes, np.argsort(target, kind="stable").astype(PETSc.IntType))
    return dm


def forget(dm) -> None:
    """A partitioner as PETSc makes it, in place of the one that knows where cells went."""
    dm.setPartitioner(PETSc.Partitioner().create(dm.comm))
