"""From a DMPlex on one rank to the one that PETSc's options ask for: refined, distributed, with overlap."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
from petsc4py import PETSc

from ..errors import MeshError
from .box import MOST_CELLS
from .petsc_c import reason, shared_points

REFINEMENTS = ("dm_refine", "dm_refine_pre", "dm_refine_hierarchy")


def prepare(dm, comm, prefix: str, overlap: int, partition_seed: int | None):
    """Apply PETSc's options (-dm_refine, -dm_distribute, -petscpartitioner_type …), then grow the overlap. Collective.

    `partition_seed`: deal the cells out at random, for tests of independence from the partition.
    """
    dm.setOptionsPrefix(prefix)
    _refuse_curved_refinement(dm, comm, prefix)
    _refuse_endless_refinement(dm, comm, prefix)
    if partition_seed is not None and dm.getDimension() > 0:
        _deal_at_random(dm, comm, partition_seed)
    try:
        dm.setFromOptions()
    except PETSc.Error as error:
        raise MeshError(
            f"PETSc cannot set up this mesh ({reason(error)}); check the options that begin with -{prefix}dm_."
        ) from None
    missing = overlap - overlap_of(dm, comm)
    if missing > 0 and comm.size > 1:
        dm.distributeOverlap(missing)
    return dm


def _refuse_curved_refinement(dm, comm, prefix: str) -> None:
    """Raise MeshError for second-order cells with -dm_refine: PETSc (3.18 to 3.26) would straighten them or fail."""
    options = PETSc.Options(prefix)
    asked = [name for name in REFINEMENTS if options.hasName(name) and options.getString(name) != "0"]
    if asked and any(comm.allgather(is_curved(dm))):
        raise MeshError(
            f"The mesh has curved cells, which PETSc cannot refine (-{prefix}{asked[0]} was given); refine it in Gmsh, "
            "or add -dm_plex_gmsh_highorder 0 to refine straight cells."
        )


def _refuse_endless_refinement(dm, comm, prefix: str) -> None:
    """Raise MeshError where -dm_refine would make more cells than there are numbers for, after hours."""
    options, dim = PETSc.Options(prefix), max(dm.getDimension(), 0)
    levels = 0
    for name in REFINEMENTS[:2]:
        text = options.getString(name, "0")
        levels += int(text) if text.isdigit() else 0  # else PETSc refuses it
    start, end = dm.getHeightStratum(0)
    cells = comm.allreduce(end - start) * 2 ** (dim * min(levels, 40))
    if levels and cells > comm.size * MOST_CELLS:
        raise MeshError(
            f"-{prefix}dm_refine {levels} would make {cells:.3g} cells; a rank has at most {MOST_CELLS:.3g}: "
            "refine less, or use more ranks."
        )


def is_curved(dm) -> bool:
    """Whether this rank's coordinates have more nodes than the vertices."""
    if dm.getDimension() < 2 or dm.getDepth() < 1:
        return False
    section = dm.getCoordinateSection()
    low, high = section.getChart()
    return any(
        low <= start < end <= high and section.getDof(start) > 0
        for start, end in (dm.getDepthStratum(1), dm.getHeightStratum(0))
    )


def clone_of(mesh):
    """A DM of a mesh's cells, to be distributed anew, with its options. Collective."""
    dm = mesh.dm.clone()
    dm.setOptionsPrefix(mesh.dm.getOptionsPrefix())
    return dm


@contextmanager
def partitioned(mesh, dm):
    """A partitioner for a clone of a mesh's DM; the one that both share is theirs again when the block ends."""
    used = mesh.dm.getPartitioner()
    try:
        yield PETSc.Partitioner().create(dm.comm)
    finally:
        mesh.dm.setPartitioner(used)
        dm.setPartitioner(used)


def overlap_of(dm, comm) -> int:
    """1 if some rank holds cells of another one, else 0. Collective."""
    if comm.size == 1:
        return 0
    leaves, (start, end) = shared_points(dm), dm.getHeightStratum(0)
    found = leaves is not None and bool(np.any((leaves >= start) & (leaves < end)))
    return int(max(comm.allgather(found)))


def _deal_at_random(dm, comm, seed: int) -> None:
    """Give each cell to a random rank; cells are where they are before distribution."""
    start, end = dm.getHeightStratum(0)
    target = np.random.default_rng([seed, comm.rank]).integers(0, comm.size, end - start)
    points = np.argsort(target, kind="stable").astype(PETSc.IntType)
    sizes = np.bincount(target, minlength=comm.size).astype(PETSc.IntType)
    partitioner = dm.getPartitioner()
    partitioner.setType(PETSc.Partitioner.Type.SHELL)
    partitioner.setShellPartition(comm.size, sizes, points)
