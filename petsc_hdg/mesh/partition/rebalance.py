"""Cells moved between ranks so that each has about the same cost: by METIS, or by PETSc's partitioner with weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from petsc4py import PETSc

from ...errors import MeshError, collectively
from ...petsc.c_library import reason, set_section
from ...stages import stage
from ..mesh_checks import cell_costs, require_mesh
from ..whole_mesh import WholeMesh
from .distribute import by_metis, clone_of, overlap_of, partitioned, ranks_of_whole, redistributed
from .metis import balanced_parts, whole_weights


@stage("mesh")
def rebalance(mesh, cost):
    """A mesh of the same cells, dealt to the ranks by their cost. Collective.

    cost: positive numbers [num_cells] of this rank's cells, or a function of centroids [cell, dim] that gives them, or
    {region: number}, which covers the mesh. `problem.cell_costs` is what a scheme makes of its cells; measured seconds
    or steps of local iterations serve as well.

    METIS deals the whole mesh out on rank 0, the same each time; with -fe_deterministic 0 or -petscpartitioner_type
    PETSc's partitioner does it in parallel. Names, coordinates and overlap go along. On one rank the mesh itself comes
    back. Raises MeshError for a mesh of polytopes, which `agglomerate` balances by its own
    `cost`, and where the partitioner fails.
    """
    with collectively(require_mesh(mesh, "rebalance").comm):
        if mesh.polytopes is not None:
            raise MeshError("A mesh of polytopes is not rebalanced cell by cell; give `cost` to fe.agglomerate.")
    given = _by_region(mesh, cost) if isinstance(cost, Mapping) else cost
    with collectively(mesh.comm):
        costs = cell_costs(mesh, given)
    if mesh.comm.size == 1:
        return mesh
    if by_metis(mesh.dm.getOptionsPrefix() or ""):
        return _by_metis(mesh, costs)
    count = mesh.comm.allreduce(len(costs))
    mean = mesh.comm.allreduce(float(costs.sum())) / max(count, 1)
    overlap, dm = overlap_of(mesh.dm, mesh.comm), clone_of(mesh)
    set_section(dm, _weights(mesh, dm, whole_weights(costs, mean, count)))
    _distribute(mesh, dm)
    if overlap:
        dm.distributeOverlap(overlap)
    return type(mesh)(dm)


def balance(comm, costs: np.ndarray) -> float:
    """Largest cost of a rank over the mean of those with cells, from the costs of its own cells. Collective."""
    loads = np.array(comm.allgather(float(costs.sum())))
    return float(loads.max() / loads[loads > 0].mean()) if loads.any() else 1.0


def _by_metis(mesh, costs: np.ndarray):
    """The mesh dealt out by METIS, the same whatever partition it had. Collective. Raises MeshError."""
    whole, target = WholeMesh(mesh, costs), None
    with collectively(mesh.comm):
        if whole.graph is not None:
            target = balanced_parts(whole.graph, ranks_of_whole(mesh, whole))
    return redistributed(mesh, whole.deal(target), np.zeros(mesh.num_cells, np.int64))[0]


def _by_region(mesh, cost: Mapping) -> np.ndarray:
    """Costs [num_cells] from those of regions. Collective. Raises MeshError."""
    values = np.zeros(mesh.num_cells)
    for region in sorted(cost):
        values[mesh.cell_mask(region)] = cost[region]
    return values


def _weights(mesh, dm, weights: np.ndarray) -> PETSc.Section:
    """A section whose degrees of freedom are the weights of cells, which PETSc's partitioners take."""
    section = PETSc.Section().create(dm.comm)
    section.setChart(*dm.getChart())
    for cell, weight in zip(mesh.topology.cells[: mesh.num_cells].tolist(), weights.tolist(), strict=True):
        section.setDof(cell, weight)
    section.setUp()
    return section


def _distribute(mesh, dm) -> None:
    """Distribute a clone of a mesh's DM by a partitioner of its own. Collective. Raises MeshError."""
    with partitioned(mesh, dm) as partitioner:
        partitioner.setOptionsPrefix(mesh.dm.getOptionsPrefix() or "")
        try:
            partitioner.setFromOptions()
            dm.setPartitioner(partitioner)
            dm.distribute(0)
        except PETSc.Error as error:
            raise MeshError(
                f"PETSc's partitioner '{partitioner.getType()}' failed ({reason(error)}); choose another one by "
                "-petscpartitioner_type, for example ptscotch or simple."
            ) from None
