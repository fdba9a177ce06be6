"""Matrices of polytopic DG: which block stands where, in PETSc's numbers, and what work-items write it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...petsc.c_library import INT
from ...threads import in_threads

CHUNK = 1 << 10  # polytopes whose columns fit in the cache


@dataclass(frozen=True)
class Items:
    """Work on the polytopes of one degree (facets: the largest of a polytope and its neighbours), the largest first.

    rows   [item, 5] polytope, first and last entry of a list, place of its block, length of the block's rows
    """

    degree: int
    rows: np.ndarray


@dataclass(frozen=True)
class Layout:
    """A way to lay matrices out, and the work that fills it.

    size        values
    volumes     Items, entries are `cells`
    facets      Items, entries are `interfaces` [interface, 5], see poly_matrix_facets.cl
    adds        whether facets add to what volumes wrote
    """

    size: int
    volumes: tuple[Items, ...]
    facets: tuple[Items, ...]
    interfaces: np.ndarray
    adds: bool = True


class Blocks:
    """Interfaces of the polytopes of a rank and the places of the blocks of their matrix.

    Values stand row by row, in each row by ascending PETSc column: the arrays of a CSR matrix. An
    interface is all facets that a polytope shares with another; those on the boundary are one too, without a block.
    """

    def __init__(self, disc):
        self.disc, self.numbering = disc, disc.numbering
        self.count, self.components = disc.polytopes.count, disc.physics.num_components
        self.unknowns = self.numbering.sizes.astype(np.int64) * self.components
        numbers = self.numbering.dofmap.global_numbers
        self.global_first = np.concatenate([numbers, [0]])[self.numbering.first[:-1]].astype(np.int64)
        self._find_interfaces()

    def _find_interfaces(self) -> None:
        near = self.disc.fine.neighbours.neighbour
        faces = np.flatnonzero(near.ravel() != -1)
        behind = near.ravel()[faces]
        own = self.disc.polytopes.of_cell[faces // near.shape[1]].astype(np.int64)
        other = np.where(behind >= 0, self.numbering.polytope_of[np.maximum(behind, 0)], -1)
        key = own * (self.numbering.num_extended + 1) + other + 1
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        self.faces = faces[order].astype(np.int32)  # [facet] cell * F + facet of the cell
        self.bounds = np.append(first, len(key)).astype(np.int64)  # [interface + 1] first facet
        self.own, self.other = own[order][first], other[order][first].astype(np.int64)
        self.start = np.searchsorted(self.own, np.arange(self.count + 1))  # [polytope + 1] first interface

    @property
    def num_interfaces(self) -> int:
        return len(self.own)

    @cached_property
    def facet_degrees(self) -> np.ndarray:
        """Largest degree [polytope] of each polytope and its neighbours."""
        degrees = self.numbering.degrees
        found = degrees[: self.count].copy()
        inside = self.other >= 0
        np.maximum.at(found, self.own[inside], degrees[self.other[inside]])
        return found

    # Places -------------------------------------------------------------------------------------------------------

    @cached_property
    def _order(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Blocks with their columns ascending in each row: row and column polytope [block], and which it is: the
        number of an interface, or -1 on the diagonal."""
        inside = np.flatnonzero(self.other >= 0)
        row = np.concatenate([np.arange(self.count), self.own[inside]])
        column = np.concatenate([np.arange(self.count), self.other[inside]])
        which = np.concatenate([np.full(self.count, -1), inside])
        order = np.argsort(row * (self.global_first.max(initial=0) + 1) + self.global_first[column], kind="stable")
        return row[order], column[order], which[order]

    @cached_property
    def width(self) -> np.ndarray:
        """Values [polytope] in each row of a polytope."""
        row, column, _ = self._order
        return np.bincount(row, self.unknowns[column], self.count).astype(np.int64)

    @cached_property
    def row_starts(self) -> np.ndarray:
        """Place [polytope + 1] of the first value of each polytope's rows."""
        return np.concatenate([[0], np.cumsum(self.width * self.unknowns[: self.count])])

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Places of diagonal blocks [polytope] and of the blocks of interfaces [interface], -1 without."""
        row, column, which = self._order
        ends = np.cumsum(self.unknowns[column])
        before = np.concatenate([[0], np.cumsum(self.width)])[:-1]
        place = self.row_starts[row] + ends - self.unknowns[column] - before[row]
        diagonal, coupling = np.empty(self.count, np.int64), np.full(self.num_interfaces, -1, np.int64)
        diagonal[row[which < 0]] = place[which < 0]
        coupling[which[which >= 0]] = place[which >= 0]
        return diagonal, coupling

    def csr(self) -> tuple[np.ndarray, np.ndarray]:
        """Row starts [owned row + 1] and PETSc columns [value], ascending in each row."""
        row, column, _ = self._order
        sizes, blocks = self.unknowns[: self.count], np.bincount(row, minlength=self.count)
        start = np.concatenate([[0], np.cumsum(np.repeat(self.width, sizes))])
        first, found = np.cumsum(blocks) - blocks, np.empty(start[-1], INT)

        def fill(begin: int) -> None:
            part = slice(begin, begin + CHUNK)
            in_row = column[_ranges(*(np.repeat(each[part], sizes[part]) for each in (first, blocks)))]
            place = self.row_starts[begin : begin + CHUNK + 1]
            found[place[0] : place[-1]] = _ranges(self.global_first[in_row], self.unknowns[in_row])

        in_threads(fill, range(0, self.count, CHUNK))
        return start.astype(INT), found

    # Layouts -------------------------------------------------------------------------------------------------------

    def matrix(self) -> Layout:
        """Each value of the matrix once."""
        return self._of_polytopes(int(self.row_starts[-1]), *self.places, self.width)

    def diagonal(self) -> Layout:
        """Diagonal blocks alone [polytope] one after the other, each row by row."""
        starts = self.diagonal_starts
        none = np.full(self.num_interfaces, -1, np.int64)
        return self._of_polytopes(int(starts[-1]), starts[:-1], none, self.unknowns[: self.count])

    @cached_property
    def diagonal_starts(self) -> np.ndarray:
        """Place [polytope + 1] of each block of `diagonal`."""
        return np.concatenate([[0], np.cumsum(self.unknowns[: self.count] ** 2)])

    def everything(self) -> tuple[Items, ...]:
        """All work on the polytopes of one degree (the largest of a polytope and its neighbours): polytope, first and
        last base cell, first and last facet."""
        start, each = self.disc.polytopes.cells[0], np.arange(self.count)
        first, last = self.bounds[self.start[:-1]], self.bounds[self.start[1:]]
        rows = _rows(each, start[:-1], start[1:], first, last)
        return _by_degree(rows, self.facet_degrees, np.diff(start) + last - first)

    def diagonal_places(self) -> np.ndarray:
        """Place [owned unknown] of each diagonal entry among the values of `diagonal`."""
        sizes = self.unknowns[: self.count]
        row = _ranges(np.zeros(self.count, np.int64), sizes)
        return np.repeat(self.diagonal_starts[:-1], sizes) + row * (np.repeat(sizes, sizes) + 1)

    def _of_polytopes(self, size: int, diagonal, coupling, pitch) -> Layout:
        start, degrees = self.disc.polytopes.cells[0], self.numbering.degrees[: self.count]
        each = np.arange(self.count)
        volumes = _rows(each, start[:-1], start[1:], diagonal, pitch)
        facets = _rows(each, self.start[:-1], self.start[1:], diagonal, pitch)
        interfaces = _rows(self.other, self.bounds[:-1], self.bounds[1:], coupling, pitch[self.own])
        volumes = _by_degree(volumes, degrees, np.diff(start))
        facets = _by_degree(facets, self.facet_degrees, self.bounds[self.start[1:]] - self.bounds[self.start[:-1]])
        return Layout(size, volumes, facets, interfaces)

    # Numbers -------------------------------------------------------------------------------------------------------

    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """PETSc row and column of each value of `matrix`."""
        start, columns = self.csr()
        own = self.numbering.dofmap.global_numbers[: self.numbering.dofmap.num_owned]
        return np.repeat(own.astype(INT), np.diff(start)), columns


def _ranges(first: np.ndarray, length: np.ndarray) -> np.ndarray:
    """first[k], first[k] + 1, …, length[k] numbers of each, one after the other."""
    total = int(length.sum())
    kind = np.int32 if max(total, int(first.max(initial=0)) + total) < 2**31 else np.int64
    if len(length) and (length == length[0]).all():
        return (first.astype(kind)[:, None] + np.arange(length[0], dtype=kind)).ravel()
    before = np.cumsum(length) - length
    return np.arange(total, dtype=kind) + np.repeat((first - before).astype(kind), length)


def _rows(*columns: np.ndarray) -> np.ndarray:
    return np.stack(columns, axis=1).reshape(-1, len(columns))


def _by_degree(rows: np.ndarray, degrees: np.ndarray, work: np.ndarray) -> tuple[Items, ...]:
    """Items of each degree that have something to do, most work first."""
    found = []
    for degree in np.unique(degrees):
        those = np.flatnonzero((degrees == degree) & (work > 0))
        if len(those):
            found.append(Items(int(degree), rows[those[np.argsort(-work[those], kind="stable")]]))
    return tuple(found)
