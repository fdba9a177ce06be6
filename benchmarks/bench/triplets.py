"""Approach 1 of Dong, Georgoulis and Kappas 2021: a block of each base cell, of each side of a facet and of each pair
of sides, which PETSc's COO interface sums. Beside it the library's assembly writes each value of the matrix once."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from petsc_hdg.discretizations.poly.matrix import INT, Blocks, Layout, _by_degree, _ranges, _rows
from petsc_hdg.discretizations.poly.scheme import PolytopicDG


class TripletBlocks(Blocks):
    """Interfaces of polytopes, and places of the blocks of approach 1: cells, facets, pairs."""

    def matrix(self) -> Layout:
        polytope, columns = self._blocks
        sizes = self.unknowns[polytope] * self.unknowns[columns]
        places, count, faces = np.cumsum(sizes) - sizes, self.disc.mesh.num_cells, len(self.faces)
        own, other, cells = self._before, self._behind, self.disc.polytopes.cells[1].astype(np.int64)
        coupling = np.full(faces, -1, np.int64)
        coupling[other >= 0] = places[count + faces :]
        of_cell = self.disc.polytopes.of_cell[cells].astype(np.int64)
        entry, face, beyond = np.arange(count), np.arange(faces), np.maximum(other, 0)
        volumes = _rows(of_cell, entry, entry + 1, places[cells], self.unknowns[of_cell])
        facets = _rows(own, face, face + 1, places[count : count + faces], self.unknowns[own])
        interfaces = _rows(other, face, face + 1, coupling, self.unknowns[beyond])
        degrees = self.numbering.degrees
        larger = np.maximum(degrees[own], np.where(other >= 0, degrees[beyond], 0))
        volumes = _by_degree(volumes, degrees[of_cell], np.ones(count))
        return Layout(int(sizes.sum()), volumes, _by_degree(facets, larger, np.ones(faces)), interfaces, adds=False)

    @cached_property
    def _behind(self) -> np.ndarray:
        """Polytope [facet] behind each facet, or -1."""
        return np.repeat(self.other, np.diff(self.bounds))

    @cached_property
    def _before(self) -> np.ndarray:
        """Polytope [facet] of each facet."""
        return np.repeat(self.own, np.diff(self.bounds))

    @cached_property
    def _blocks(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column polytope of each block."""
        of_cell, own, other = self.disc.polytopes.of_cell.astype(np.int64), self._before, self._behind
        return np.concatenate([of_cell, own, own[other >= 0]]), np.concatenate([of_cell, own, other[other >= 0]])

    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each value, row by row of each block."""
        row, column = self._blocks
        heights, widths = self.unknowns[row], self.unknowns[column]
        rows = np.repeat(_ranges(self.global_first[row], heights), np.repeat(widths, heights))
        columns = _ranges(np.repeat(self.global_first[column], heights), np.repeat(widths, heights))
        return rows.astype(INT, copy=False), columns.astype(INT, copy=False)


class TripletDG(PolytopicDG):
    """A PolytopicDG whose matrix is integrated by approach 1."""

    @cached_property
    def blocks(self) -> TripletBlocks:
        return TripletBlocks(self)

    def matrix_rows(self) -> None:
        return None
