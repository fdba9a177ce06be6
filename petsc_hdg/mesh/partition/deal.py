"""Cells of a DMPlex that lie on rank 0 dealt to the ranks: by METIS, the same each time, or at random, for tests."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ...errors import collectively
from ...options import Options, given_truth
from ...petsc.c_library import dual_graph
from ..graph import Graph
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


def deal(dm, comm, seed: int | None) -> None:
    """Say which rank receives each cell when the DM is distributed: by METIS, or with a seed at random. Collective.

    A mesh that has cells on other ranks than rank 0 is left to PETSc. Raises MeshError on all ranks.
    """
    start, end = dm.getHeightStratum(0)
    if seed is not None:
        target = np.random.default_rng([seed, comm.rank]).integers(0, comm.size, end - start)
    elif comm.size == 1 or comm.allreduce(end - start if comm.rank else 0):
        return
    else:
        graph = dual_graph(dm)
        with collectively(comm):
            target = balanced_parts(_unweighted(*graph), comm.size)
    sizes = np.bincount(target, minlength=comm.size).astype(PETSc.IntType)
    partitioner = dm.getPartitioner()
    partitioner.setType(PETSc.Partitioner.Type.SHELL)
    partitioner.setShellPartition(comm.size, sizes, np.argsort(target, kind="stable").astype(PETSc.IntType))


def forget(dm) -> None:
    """A partitioner as PETSc makes it, in place of the one that knows where cells went."""
    dm.setPartitioner(PETSc.Partitioner().create(dm.comm))


def _unweighted(start: np.ndarray, neighbour: np.ndarray) -> Graph:
    return Graph(start, neighbour, np.ones(len(neighbour), np.int64), np.ones(len(start) - 1))
