"""Launch shapes of interior penalty in one pass on quadrilaterals and hexahedra for GPUs: work-items of cells."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

GPU_THREADS = 128  # work-items of a work-group, at most: each takes up to 168 registers
CELL_NODES = 16  # of a cell up to which one work-item holds it
CELLS = 128  # work-items of a work-group that has one a cell
LINK = 6  # numbers of what is behind a facet
WARP = 32  # work-items that run in step
FACET_COST = 1.5  # of a node on a facet, in costs of its cell's interior


@dataclass(frozen=True)
class PassShape:
    """Cells a work-group does at once, work-items of each, bytes of local memory of a residual and of an action.

    With one work-item of each on a GPU, that holds its cell in registers.
    """

    lanes: int
    threads: int
    residual_bytes: int
    action_bytes: int

    @property
    def local_size(self) -> int:
        return self.lanes * self.threads


def gpu_shapes(disc, geometry: int) -> list[PassShape]:
    """Shapes for a GPU, the likeliest to be fast first; none where no cell fits. geometry: nodes on an edge."""
    found = []
    if disc.dim == 2 and disc.num_dofs <= CELL_NODES and geometry == 2:
        found.append(PassShape(CELLS, 1, 0, 0))
    for lanes in (32, 16, 8, 4, 2, 1):
        residual, action = (lanes * cell_bytes(disc, geometry, s) for s in (0, int(not disc.physics.is_linear)))
        most = min(GPU_THREADS, disc.limits.max_work_group) // lanes
        if action <= disc.limits.local_bytes:
            threads = max(2, min(disc.flux_macros["NQF"], most))
            found.append(PassShape(lanes, threads, residual, action))
    return found


def cell_bytes(disc, geometry: int, states: int) -> int:
    """Bytes of local memory a cell takes, with so many states beside what is differentiated."""
    dim, components, faces = disc.dim, disc.physics.num_components, disc.num_facets_of_cell
    values = components * disc.num_nodes * (1 + dim + states)
    shape = (geometry**dim + faces * geometry ** (dim - 1)) * dim
    return (values + shape + components * faces) * disc.real_bytes + 4 * LINK * faces


def node_rounds(dim: int, count: int, shape: PassShape) -> np.ndarray:
    """Node [round, thread] that a work-item does, or -1; count: nodes on an edge.

    Work-items that run in step take nodes on facets of the same axes, as far as there are some, and all as much work.
    """
    together = max(1, WARP // shape.lanes)
    while shape.threads % together:
        together //= 2
    indices = np.stack(np.unravel_index(np.arange(count**dim), (count,) * dim), axis=1)
    on_axes = (indices == 0) | (indices == count - 1)
    alike = defaultdict(list)
    for node, axes in enumerate(on_axes):
        alike[tuple(axes)].append(node)
    order = [node for axes in sorted(alike, key=sum, reverse=True) for node in alike[axes]]
    groups = [order[k : k + together] for k in range(0, len(order), together)]
    slots: list[list] = [[] for _ in range(shape.threads // together)]
    costs = [0.0] * len(slots)
    for group in groups:
        least = min(range(len(slots)), key=costs.__getitem__)
        slots[least].append(group)
        costs[least] += 1 + FACET_COST * on_axes[group].any(axis=0).sum()
    rounds = np.full((max(map(len, slots)), shape.threads), -1, dtype=np.int32)
    for slot, mine in enumerate(slots):
        for k, group in enumerate(mine):
            rounds[k, slot * together : slot * together + len(group)] = group
    return rounds
