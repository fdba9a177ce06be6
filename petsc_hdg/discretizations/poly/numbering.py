"""Numbering of polytopic unknowns, on this rank and of the polytopes behind its facets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from petsc4py import PETSc

from ...mesh.order import cells_of, extents
from ..dofmap import DofMap
from ..sipg.interleaved import unconstrained_dofmap


@dataclass(frozen=True)
class Numbering:
    """Extended polytopes (owned, then ghosts) and where their unknowns stand.

    polytope_of  [extended base cell] extended polytope
    degrees      [extended polytope];  sizes [extended polytope] basis functions
    lower, upper [extended polytope, dim] bounding boxes
    first        [extended polytope + 1] compact number of the first unknown: owned ones, then ghosts
    dofmap       DofMap;  block_size unknowns of every polytope, or 1
    """

    polytope_of: np.ndarray
    degrees: np.ndarray
    sizes: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    first: np.ndarray
    dofmap: DofMap
    block_size: int

    @property
    def num_extended(self) -> int:
        return len(self.degrees)


def find_numbering(disc) -> Numbering:
    """The numbering of a PolytopicDG. Collective."""
    polytopes, near, components = disc.polytopes, disc.fine.neighbours, disc.physics.num_components
    of_cell, count = polytopes.of_cell, polytopes.count
    theirs = near.extended(of_cell[:, None])[near.num_cells :, 0]
    pairs = np.stack([near.ghost_rank, theirs], axis=1).reshape(-1, 2)
    ghosts, cell, which = np.unique(pairs, axis=0, return_index=True, return_inverse=True)

    lower, upper = _boxes(disc)
    starts = np.concatenate([[0], np.cumsum(disc.num_basis(disc.degrees) * components)])
    known = np.column_stack([lower, upper, disc.degrees, starts[:-1]]).astype(float)
    known = np.concatenate([known, near.extended(known[of_cell])[near.num_cells :][cell]])
    dim, degrees = disc.dim, known[:, -2].astype(np.int32)
    sizes = disc.num_basis(degrees).astype(np.int32)
    first = np.concatenate([[0], np.cumsum(sizes * components)])
    return Numbering(
        polytope_of=np.concatenate([of_cell, count + which.ravel()]).astype(np.int32),
        degrees=degrees,
        sizes=sizes,
        lower=known[:, :dim],
        upper=known[:, dim : 2 * dim],
        first=first.astype(np.int32),
        dofmap=_dofmap(disc, first, count, ghosts[:, 0], known[count:, -1].astype(np.int64)),
        block_size=_block_size(disc.mesh.comm, sizes[:count] * components),
    )


def _boxes(disc) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corners [polytope, dim] of the bounding boxes, those around finer polytopes where there are."""
    if disc.finer is None:
        return disc.polytopes.boxes(disc.mesh)
    within = cells_of(disc.finer.polytopes.parents(disc.polytopes), disc.polytopes.count)
    finer, count = disc.finer.numbering, disc.finer.polytopes.count
    return extents(np.stack([finer.lower[:count], finer.upper[:count]], axis=1), *within)


def _dofmap(disc, first, count: int, ghost_rank, ghost_first) -> DofMap:
    owned, sizes = int(first[count]), np.diff(first)[count:]
    rank = np.repeat(ghost_rank, sizes)
    index = np.repeat(ghost_first - (first[count:-1] - owned), sizes) + np.arange(first[-1] - owned)
    none = np.zeros((0, 0), np.int32)  # unknowns belong to no base cell
    return unconstrained_dofmap(disc.mesh.comm, owned, rank, index, none, 0)


def create_section(disc) -> PETSc.Section:
    """A section with a polytope's unknowns in the first of its cells, on all ranks that hold that cell. Collective."""
    sizes = np.diff(disc.numbering.first)[: disc.polytopes.count]
    start, cells = disc.polytopes.cells
    begin, end = disc.mesh.dm.getChart()
    sizes_of = np.zeros(end - begin, np.int32)
    sizes_of[disc.mesh.topology.cells[cells[start[:-1]]] - begin] = sizes
    sizes_of = disc.mesh.exchange.sum(sizes_of)
    points = np.flatnonzero(sizes_of)
    section = PETSc.Section().create(disc.mesh.dm.comm)
    section.setChart(begin, end)
    for point, size in zip((points + begin).tolist(), sizes_of[points].tolist(), strict=True):
        section.setDof(point, size)
    section.setUp()
    return section


def _block_size(comm, sizes: np.ndarray) -> int:
    found = set().union(*comm.allgather(set(np.unique(sizes).tolist())))
    return int(found.pop()) if len(found) == 1 else 1
