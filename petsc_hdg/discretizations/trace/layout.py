"""Facets as blocks of a trace system: which share a cell, in which slot, and where their unknowns stand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...errors import OptionError
from ...threads import stable_order
from .element import TraceElement


@dataclass(frozen=True)
class TraceLayout:
    """Facets of this rank with a free unknown, by ascending number of their first one: owned facets, then ghosts.

    F: facets of a cell.   m: unknowns of a facet, node by node, component fastest.   n_a = 2 F - 1: slots.
    Slot 0 of a facet is itself; 1 … F - 1 are the other facets of its first cell in their order there, the rest those
    of its second one (Roca, Nguyen and Peraire 2011, section III).

    facets       [cell, F] number of each facet of a cell, -1 where all its unknowns are essential
    num_owned    facets of this rank
    numbers      [facet, m] compact number of each unknown, that of an essential one included
    cells, local [2, facet] the facet's cells by ascending number and its place in them, -1 if there is no second one
    orientation  [cell, F] row of `permutations`
    permutations [orientation, node of the facet] node of the cell's facet
    num_inner_cells  cells, the first ones, that share no facet with other ranks
    """

    components: int
    facets: np.ndarray
    num_owned: int
    numbers: np.ndarray
    num_free: int
    cells: np.ndarray
    local: np.ndarray
    orientation: np.ndarray
    permutations: np.ndarray
    num_inner_cells: int

    @property
    def num_facets(self) -> int:
        return len(self.numbers)

    @cached_property
    def num_inner(self) -> int:
        """Facets, the first ones, whose cells have no facet of other ranks."""
        outer = (self.cells >= self.num_inner_cells).any(axis=0)
        return int(np.argmax(outer)) if outer.any() else self.num_facets

    @property
    def block(self) -> int:
        """Unknowns of a facet, m."""
        return self.numbers.shape[1]

    @property
    def facets_per_cell(self) -> int:
        return self.facets.shape[1]

    @property
    def num_slots(self) -> int:
        """Blocks of a row away from the boundary, n_a: 5 on triangles, 7 on quadrilaterals and tetrahedra, 11 else."""
        return 2 * self.facets_per_cell - 1

    @property
    def num_dense(self) -> int:
        """Entries of dense blocks, those beyond the boundary included."""
        return self.num_slots * self.block**2 * self.num_facets

    @cached_property
    def is_blocked(self) -> bool:
        """True if facet f holds the free numbers f m … f m + m - 1: none is essential in some components only."""
        expected = np.arange(self.num_facets)[:, None] * self.block + np.arange(self.block)
        return self.numbers.size == self.num_free and bool((self.numbers == expected).all())

    @cached_property
    def neighbours(self) -> np.ndarray:
        """Facet in each slot [slot, facet], -1 where there is none."""
        found = np.full((self.num_slots, self.num_facets), -1, dtype=np.int32)
        found[0] = np.arange(self.num_facets)
        for slot, facet, cell, _, other in self._pairs():
            found[slot, facet] = self.facets[cell, other]
        return found

    @cached_property
    def reverse(self) -> np.ndarray:
        """Slot in which the facet of each slot has this one [slot, facet], -1 where there is none."""
        found = np.full((self.num_slots, self.num_facets), -1, dtype=np.int32)
        found[0] = 0
        for slot, facet, cell, here, other in self._pairs():
            neighbour = self.facets[cell, other]
            side = np.where(self.cells[0, neighbour] == cell, 0, 1)
            found[slot, facet] = np.where(neighbour < 0, -1, self._slot(side, other, here))
        return found

    def _slot(self, side, place, other):
        """Slot of the facet at place `other` in the cell on `side` of the facet at `place`."""
        return 1 + side * (self.facets_per_cell - 1) + other - (other > place)

    def _pairs(self):
        """For each side and place in a cell: slots, facets, cells, places of the facets there, and the other place."""
        for side in range(2):
            facet = np.flatnonzero(self.cells[side] >= 0)
            for other in range(self.facets_per_cell):
                kept = facet[self.local[side, facet] != other]
                here = self.local[side, kept].astype(np.int32)
                yield self._slot(side, here, other), kept, self.cells[side, kept], here, other

    @cached_property
    def num_blocks(self) -> int:
        """Blocks that are not zero by structure."""
        return int((self.neighbours >= 0).sum())

    def facets_of_cells(self, first: int, count: int) -> np.ndarray:
        """Facets with one of the cells first … first + count - 1, ascending int32."""
        found = np.zeros(1 + len(self.numbers), dtype=bool)
        found[1 + self.facets[first : first + count]] = True
        return np.flatnonzero(found[1:]).astype(np.int32)


def trace_layout(mesh, dofmap, space) -> TraceLayout:
    """The facet blocks of a trace numbering. Raises OptionError if the unknowns of `space` are not those of facets."""
    if not isinstance(space.element, TraceElement):
        raise OptionError(
            f"blocks of facets were asked for, but field '{space.name}' has unknowns that facets share: "
            "use -hdg_trace_mat element or aij"
        )
    nodes, components = space.element.num_facet_basis, space.components
    block = nodes * components
    numbers = dofmap.compact.reshape(-1, block)
    num_free = dofmap.num_owned + dofmap.num_ghosts
    first = numbers.min(axis=1, initial=np.iinfo(np.int32).max)
    kept = np.flatnonzero(first < num_free)
    order = kept[np.argsort(first[kept], kind="stable")]
    place = np.full(len(numbers), -1, dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)

    dofs = dofmap.cell_dofs.reshape(mesh.num_cells, space.element.num_basis // nodes, nodes, components)[..., 0]
    facets = place[dofs[:, :, 0] // block]
    orientation, permutations = _orientations(dofs % block // components)
    cells, local = _sides(facets, len(order))
    return TraceLayout(
        components=components,
        facets=facets,
        num_owned=int((first < dofmap.num_owned).sum()),
        numbers=numbers[order],
        num_free=num_free,
        cells=cells,
        local=local,
        orientation=orientation,
        permutations=permutations,
        num_inner_cells=mesh.num_facet_inner,
    )


def _orientations(place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From the place [cell, F, node] of a cell's nodes on each facet: orientation [cell, F], permutations inverted."""
    nodes = place.shape[2]
    columns = np.ascontiguousarray(place.reshape(-1, nodes).T)
    which = np.zeros(columns.shape[1], dtype=np.int32)
    found, left = [], np.arange(columns.shape[1])
    while len(left):  # of all that are left those that equal the first: there are eight orientations at most
        found.append(columns[:, left[0]])
        same = np.logical_and.reduce([column[left] == column[left[0]] for column in columns])
        which[left[same]] = len(found) - 1
        left = left[~same]
    found = np.array(found, dtype=np.int32).reshape(-1, nodes)
    return which.reshape(place.shape[:2]), np.argsort(found, axis=1).astype(np.int32)


def _sides(facets: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Cells of each facet by ascending number, and its place in them, both [2, facet] int32, -1 where there is none."""
    flat = facets.ravel()
    where = stable_order(flat)
    where = where[np.searchsorted(flat[where], 0) :]
    facet = flat[where]
    second = np.concatenate([[False], facet[1:] == facet[:-1]])[: len(facet)].astype(int)
    cells, local = (np.full((2, count), -1, dtype=np.int32) for _ in range(2))
    cells[second, facet], local[second, facet] = np.divmod(where, facets.shape[1])
    return cells, local
