"""From a DMPlex on one rank to the one that PETSc's options ask for: refined, distributed, with overlap."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc


def prepare(dm, comm, prefix: str, overlap: int, partition_seed: int | None):
    """Apply PETSc's options (-dm_refine, -dm_distribute, -petscpartitioner_type …), then grow the overlap. Collective.

    `partition_seed`: deal the cells out at random, for tests of independence from the partition.
    """
    dm.setOptionsPrefix(prefix)
    if partition_seed is not None:
        _deal_at_random(dm, comm, partition_seed)
    dm.setFromOptions()
    missing = overlap - overlap_of(dm, comm)
    if missing > 0 and comm.size > 1:
        dm.distributeOverlap(missing)
    return dm


def overlap_of(dm, comm) -> int:
    """1 if some rank holds cells of another one, else 0. Collective."""
    if comm.size == 1:
        return 0
    _, leaves, _ = dm.getPointSF().getGraph()
    start, end = dm.getHeightStratum(0)
    leaves = np.asarray(leaves if leaves is not None else [])
    return int(comm.allreduce(bool(np.any((leaves >= start) & (leaves < end)))))


def _deal_at_random(dm, comm, seed: int) -> None:
    """Give each cell to a random rank; cells are where they are before distribution."""
    start, end = dm.getHeightStratum(0)
    target = np.random.default_rng([seed, comm.rank]).integers(0, comm.size, end - start)
    points = np.argsort(target, kind="stable").astype(PETSc.IntType)
    sizes = np.bincount(target, minlength=comm.size).astype(PETSc.IntType)
    partitioner = dm.getPartitioner()
    partitioner.setType(PETSc.Partitioner.Type.SHELL)
    partitioner.setShellPartition(comm.size, sizes, points)
