"""Numbering of discontinuous unknowns: chunks of 32 cells, interleaved so that neighbouring threads read neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from petsc4py import PETSc

from ..dofmap import DofMap

CHUNK = 32  # cells of a chunk


@dataclass(frozen=True)
class Interleaved:
    """Place of row r of cell c among `num_cells` cells with `rows` unknowns each:

    (c // 32) 32 rows + r w + c % 32, where w is the number of cells in the chunk: 32, less in the last one.
    """

    rows: int

    def index(self, num_cells, cell, row) -> np.ndarray:
        """Place of unknowns; arguments are numbers or arrays that broadcast."""
        chunk = np.asarray(cell) // CHUNK
        width = np.minimum(CHUNK, np.asarray(num_cells) - chunk * CHUNK)
        return chunk * (CHUNK * self.rows) + np.asarray(row) * width + np.asarray(cell) % CHUNK

    def table(self, num_cells: int, rows=None) -> np.ndarray:
        """Places [cell, row] int32 of some rows of each cell, by default of all."""
        rows = np.arange(self.rows) if rows is None else rows
        cells = np.arange(num_cells, dtype=np.int32)[:, None]
        return self.index(np.int32(num_cells), cells, rows.astype(np.int32))


def discontinuous_dofmap(mesh, spaces, neighbours, row_of_dof: np.ndarray) -> tuple[DofMap, np.ndarray]:
    """Numbering with all unknowns in the cells, and compact numbers [extended cell, dof].

    row_of_dof [dof]: row of each degree of freedom of a cell. Collective.
    """
    layout, rows = Interleaved(len(row_of_dof)), len(row_of_dof)
    owned, ghosts = neighbours.num_cells * rows, neighbours.num_ghosts * rows
    parts = [layout.table(count, row_of_dof) for count in (neighbours.num_cells, neighbours.num_ghosts)]
    compact = np.concatenate([parts[0], np.int32(owned) + parts[1]])
    counts = np.array(mesh.comm.allgather(neighbours.num_cells))
    where = _owners(layout, neighbours, counts)
    dofmap = unconstrained_dofmap(mesh.comm, owned, *where, compact[: neighbours.num_cells], owned + ghosts)
    return dofmap, compact


def unconstrained_dofmap(comm, owned: int, rank, index, cell_dofs: np.ndarray, num_compact: int) -> DofMap:
    """The DofMap of unknowns that belong to cells; rank, index [ghost]: owner and place there. Collective."""
    starts = np.concatenate([[0], np.cumsum(comm.allgather(owned))])
    own = np.arange(owned) + starts[comm.rank]
    return DofMap(
        cell_dofs=cell_dofs,
        compact=np.arange(num_compact, dtype=np.int32),
        num_owned=owned,
        num_ghosts=len(rank),
        num_constrained=0,
        ghost_rank=rank.astype(np.int32),
        ghost_index=index.astype(np.int32),
        constrained=np.zeros(0, np.int64),
        global_numbers=np.concatenate([own, starts[:-1][rank] + index]).astype(PETSc.IntType),
    )


def _owners(layout: Interleaved, neighbours, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rank [ghost unknown] and place there of each unknown of the ghost cells, in the order of the tail."""
    places = layout.table(neighbours.num_ghosts)
    rank, index = (np.zeros(places.size, np.int64) for _ in range(2))
    rank[places] = neighbours.ghost_rank[:, None]
    there = counts[neighbours.ghost_rank][:, None], neighbours.ghost_cell[:, None].astype(np.int64)
    index[places] = layout.index(*there, np.arange(layout.rows))
    return rank, index


def create_section(mesh, spaces, dm) -> PETSc.Section:
    """A section with all degrees of freedom in the cells, for a clone of the mesh's DM. Collective."""
    dm.setNumFields(len(spaces))
    counts = [0 if d < mesh.dim else s.num_dofs for s in spaces for d in range(mesh.dim + 1)]
    section = dm.createSection([s.components for s in spaces], counts)
    for k, space in enumerate(spaces):
        section.setFieldName(k, space.name)
    return section
