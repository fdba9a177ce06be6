"""Polytopes: cells of any shape, each an agglomerate of the mesh's own (base) cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .order import cells_of, extents


@dataclass(frozen=True)
class Polytopes:
    """Agglomerates of the cells that a rank owns; each polytope is whole on one rank.

    of_cell  [num_cells] int32 polytope of each owned cell, 0 … count - 1, all used
    count    polytopes of this rank
    degrees  [count] polynomial degree of each, or None: that of the options
    balance  largest cost of a rank over the mean
    numbers  [count] int64, ascending: number of each among those of all ranks, 0 … total - 1; None if nobody gave any
    """

    of_cell: np.ndarray
    count: int
    degrees: np.ndarray | None = None
    balance: float = 1.0
    numbers: np.ndarray | None = None

    @classmethod
    def of_cells(cls, mesh) -> Polytopes:
        """Each cell for itself."""
        return cls(np.arange(mesh.num_cells, dtype=np.int32), mesh.num_cells)

    @cached_property
    def cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Cells of each polytope as a compressed list: start [count + 1], cell [num_cells], both int32."""
        return cells_of(self.of_cell, self.count)

    def parents(self, coarse: Polytopes) -> np.ndarray:
        """Polytope of `coarse` [count] in which each lies."""
        start, cells = self.cells
        return coarse.of_cell[cells[start[:-1]]]

    def boxes(self, mesh) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corners [count, dim] of the bounding boxes."""
        return extents(mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells]], *self.cells)
