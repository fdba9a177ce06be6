"""Cells sent to chosen ranks, with their labels and coordinates."""

from __future__ import annotations

import copy

import numpy as np
from mpi4py import MPI
from petsc4py import PETSc

from ..labels import Labels
from .distribute import clone_of, overlap_of, partitioned


def redistributed(mesh, target: np.ndarray, values: np.ndarray):
    """A mesh of the same cells in which each lies on the rank `target` [num_cells], and their values. Collective.

    values [num_cells] int64 travel with the cells. The overlap is as deep as it was, at most one layer.
    On one rank nothing moves. Returns mesh, values [num_cells].
    """
    overlap, dm = overlap_of(mesh.dm, mesh.comm), clone_of(mesh)
    if mesh.comm.size == 1:
        moved = copy.copy(mesh)
        moved.dm, moved.labels_table = dm, Labels(dm, mesh.comm, mesh.exchange)
        return moved, values
    points = np.full(mesh.topology.num_cells, -1, np.int64)
    cells = mesh.topology.cells[: mesh.num_cells]
    points[cells - mesh.topology.stratum[mesh.dim][0]] = values
    points = _distribute(dm, mesh, target, points)
    if overlap:
        dm.distributeOverlap(overlap)
    moved = type(mesh)(dm)
    return moved, points[moved.topology.cells[: moved.num_cells] - moved.topology.stratum[mesh.dim][0]]


def _distribute(dm, mesh, target: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Distribute a clone of a mesh's DM. Values of cells [cell], in PETSc's order, before and after."""
    by_point = np.empty(mesh.num_cells, np.int64)  # PETSc counts owned cells, in its own order
    by_point[np.argsort(np.argsort(mesh.topology.cells[: mesh.num_cells]))] = target
    sizes = np.bincount(by_point, minlength=mesh.comm.size).astype(PETSc.IntType)
    start, end = dm.getChart()
    first, last = dm.getHeightStratum(0)
    root = np.full(end - start, -1, np.int64)
    root[first - start : last - start] = values
    with partitioned(mesh, dm) as partitioner:
        partitioner.setType(PETSc.Partitioner.Type.SHELL)
        partitioner.setShellPartition(mesh.comm.size, sizes, np.argsort(by_point, kind="stable").astype(PETSc.IntType))
        dm.setPartitioner(partitioner)
        sf = dm.distribute(0)
    start, end = dm.getChart()
    leaf = np.full(end - start, -1, np.int64)
    sf.bcastBegin(MPI.INT64_T, root, leaf, MPI.REPLACE)
    sf.bcastEnd(MPI.INT64_T, root, leaf, MPI.REPLACE)
    first, last = dm.getHeightStratum(0)
    return leaf[first - start : last - start]
