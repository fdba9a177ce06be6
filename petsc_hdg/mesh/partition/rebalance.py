"""Cells moved between ranks so that each has about the same cost."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import MeshError, collectively
from ...stages import stage
from ..mesh_checks import cell_costs, require_mesh
from ..whole_mesh import WholeMesh
from .bisection import balanced_parts
from .distribute import ranks_of_whole, redistributed


@stage("mesh")
def rebalance(mesh, cost):
    """A mesh of the same cells, dealt to the ranks by their cost. Collective.

    cost: positive numbers [num_cells] of this rank's cells, or a function of centroids [cell, dim] that gives them, or
    {region: number}, which covers the mesh. `problem.cell_costs` is what a scheme makes of its cells; measured seconds
    or steps of local iterations serve as well.

    Bisection of coordinates deals the whole mesh out on rank 0, the same whatever partition it had. Names, coordinates
    and overlap go along. On one rank the mesh itself comes back. Raises MeshError for a mesh of polytopes, which
    `agglomerate` balances by its own `cost`.
    """
    with collectively(require_mesh(mesh, "rebalance").comm):
        if mesh.polytopes is not None:
            raise MeshError("A mesh of polytopes is not rebalanced cell by cell; give `cost` to fe.agglomerate.")
    given = _by_region(mesh, cost) if isinstance(cost, Mapping) else cost
    with collectively(mesh.comm):
        costs = cell_costs(mesh, given)
    if mesh.comm.size == 1:
        return mesh
    whole, target = WholeMesh(mesh, costs), None
    with collectively(mesh.comm):
        if whole.centroids is not None:
            target = balanced_parts(whole.centroids, ranks_of_whole(mesh, whole), whole.costs)
    return redistributed(mesh, whole.deal(target), np.zeros(mesh.num_cells, np.int64))[0]


def balance(comm, costs: np.ndarray) -> float:
    """Largest cost of a rank over the mean of those with cells, from the costs of its own cells. Collective."""
    loads = np.array(comm.allgather(float(costs.sum())))
    return float(loads.max() / loads[loads > 0].mean()) if loads.any() else 1.0


def _by_region(mesh, cost: Mapping) -> np.ndarray:
    """Costs [num_cells] from those of regions. Collective. Raises MeshError."""
    values = np.zeros(mesh.num_cells)
    for region in sorted(cost):
        values[mesh.cell_mask(region)] = cost[region]
    return values
