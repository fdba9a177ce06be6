"""Facets in groups of consecutive numbers, as a product with a dictionary reads them: few bytes per facet.

Facets of one kind have the same blocks of the trace matrix, because the cells beside them are congruent. Patches of
consecutive cells hold the facets of products that sum inside a patch before they write.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base import padded
from .layout import TraceLayout


@dataclass(frozen=True)
class FacetKinds:
    """kind [facet] int32: number of each facet's kind.   representative [kind] int32: a facet of it."""

    layout: TraceLayout
    kind: np.ndarray
    representative: np.ndarray

    @property
    def count(self) -> int:
        return len(self.representative)


def facet_kinds(layout: TraceLayout, shape: np.ndarray) -> FacetKinds:
    """Kinds of facets from the shape [cell] of each cell: its cells' shapes, its places there, all orientations."""
    turned = np.zeros(len(shape), dtype=np.int64)
    for column in layout.orientation.T:
        turned = turned * len(layout.permutations) + column
    if len(layout.permutations) > 1:
        turned = np.unique(turned, return_inverse=True)[1].ravel()
    code = shape.astype(np.int64) * (turned.max(initial=0) + 1) + turned
    sides = np.where(layout.cells < 0, 0, 1 + code[layout.cells] * layout.facets_per_cell + layout.local)
    both = sides[0] * (sides[1].max(initial=0) + 1) + sides[1]
    _, representative, kind = np.unique(both, return_index=True, return_inverse=True)
    return FacetKinds(layout, kind.ravel().astype(np.int32), representative.astype(np.int32))


LOWEST = -(1 << 15)  # of the 16 bits of a neighbour's number


@dataclass(frozen=True)
class FacetGroups:
    """Groups of `size` facets of consecutive numbers. Items of a group are its facets, sorted by kind.

    Numbers in a group are counted from its first facet, so that groups of a mesh with a pattern are often the same
    and share their items.

    size      facets of a group, of which the last one may lack some
    heads     [group, 4] int32: which pattern, where its kinds and its far neighbours begin, nothing
    entry     [pattern, item] uint16: place of the kind in the group's kinds, times size, plus place of the facet
    adjacent  [pattern, slot - 1, item] uint16, as int16: number of the neighbour in the slot less the group's first
              one, that of the facet itself where there is none; from LOWEST to LOWEST + (slots - 1) size - 1: which of
              the group's far neighbours
    kinds     [·] int32 kinds of the groups' facets;   far [·] int32 numbers of neighbours beyond 16 bits
    """

    size: int
    heads: np.ndarray
    entry: np.ndarray
    adjacent: np.ndarray
    kinds: np.ndarray
    far: np.ndarray

    @property
    def count(self) -> int:
        return len(self.heads)

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (self.heads, self.entry, self.adjacent, self.kinds, self.far))


def facet_groups(kinds: FacetKinds, size: int) -> FacetGroups:
    """Groups of the facets of all kinds. size: a power of 2, 256 at most."""
    facets = len(kinds.kind)
    count = -(-facets // size)
    kind = np.full(count * size, kinds.count, dtype=np.int32)
    kind[:facets] = kinds.kind
    kind = kind.reshape(count, size)
    place = np.argsort(kind, axis=1, kind="stable").astype(np.int32)
    kind = np.take_along_axis(kind, place, axis=1)
    listed, start, local = _local_kinds(kind, kinds.count)
    entry = local * size + place
    first = size * np.arange(count)[:, None]
    far, start_far, adjacent = _relative(kinds.layout.neighbours[1:], first + place, first, facets)
    valid = first + place < facets
    entry = np.where(valid, entry, 0).astype(np.uint16)
    # A pattern is all that groups may share; kinds and far neighbours are a group's own, by place.
    chosen, pattern = _distinct(np.concatenate([entry[:, None], adjacent], axis=1).reshape(count, -1))
    heads = np.stack([pattern, start, start_far, np.zeros(count)], axis=1).astype(np.int32)
    return FacetGroups(size, heads, entry[chosen], adjacent[chosen], listed, far)


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One of each kind of rows [row, uint16], and which kind each row is."""
    whole = np.ascontiguousarray(rows).view(f"V{rows.itemsize * rows.shape[1]}").ravel()
    _, chosen, kind = np.unique(whole, return_index=True, return_inverse=True)
    return chosen, kind.ravel()


def _local_kinds(kind: np.ndarray, none: int):
    """Kinds [·] of the groups one after the other, where each group's begin, and places [group, item] in them."""
    group, size = np.divmod(np.arange(kind.size), kind.shape[1])[0], kind.shape[1]
    keys, place = np.unique(group.astype(np.int64) * (none + 1) + kind.ravel(), return_inverse=True)
    of_group, listed = np.divmod(keys, none + 1)
    start = np.searchsorted(of_group, np.arange(len(kind)))
    local = place.ravel().reshape(-1, size) - start[:, None]
    return np.append(np.minimum(listed, max(0, none - 1)), 0).astype(np.int32), start, local


def _relative(neighbours: np.ndarray, facet: np.ndarray, first: np.ndarray, facets: int):
    """Far neighbours [·], where each group's begin, and numbers [group, slot - 1, item] as FacetGroups has them."""
    count, size = facet.shape
    slots = len(neighbours)
    inside = np.minimum(facet, facets - 1)
    found = neighbours[:, inside].transpose(1, 0, 2)
    found = np.where(found < 0, facet[:, None], found) - first[:, None]
    found = np.where((facet < facets)[:, None], found, 0)
    far = (found < LOWEST + slots * size) | (found >= -LOWEST)
    place = np.cumsum(far.reshape(count, -1), axis=1)
    start = np.concatenate([[0], np.cumsum(place[:, -1])])[:count] if count else np.zeros(0)
    numbers = (found + first[:, None])[far]
    number = np.where(far, LOWEST + place.reshape(found.shape) - 1, found)
    return np.append(numbers, 0).astype(np.int32), start, number.astype(np.int16).view(np.uint16)


@dataclass(frozen=True)
class FacetPatches:
    """Places are the facets of each patch: first those it owns (their first cell is in it), then the others, ascending.

    first    [patch + 1, 2] first place, and first owned facet in `order`
    facet    [place] facet at each place
    order    [facet] owned facets, patch by patch
    slot     [F, padded cells] uint16: 2 place + side of a cell's facet within its patch, side 1 for its second cell;
             2 most for an essential facet
    cut      [2, facet between patches] facets that a patch has without owning them, ascending, and which of all such
             places they are
    most     places of the patch that has most
    """

    first: np.ndarray
    facet: np.ndarray
    order: np.ndarray
    slot: np.ndarray
    cut: np.ndarray
    most: int

    @property
    def count(self) -> int:
        return len(self.first) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of the indices that a product reads."""
        return 4 * (self.first.size + self.facet.size + self.cut.size) + 2 * self.slot.size


def facet_patches(layout: TraceLayout, cells: int) -> FacetPatches:
    """Patches of `cells` cells each."""
    num_cells, num_facets = len(layout.facets), layout.num_facets
    num_patches = -(-num_cells // cells)
    patch = np.where(layout.cells < 0, -1, layout.cells // cells)
    order = np.argsort(patch[0], kind="stable").astype(np.int32)
    halo = np.flatnonzero((patch[1] >= 0) & (patch[1] != patch[0]))
    halo = halo[np.argsort(patch[1, halo], kind="stable")]

    num_own = np.bincount(patch[0], minlength=num_patches)[:num_patches]
    num_halo = np.bincount(patch[1, halo], minlength=num_patches)[:num_patches]
    first_own, first_halo = (np.concatenate([[0], np.cumsum(n)]) for n in (num_own, num_halo))
    first = first_own + first_halo
    own_place = np.arange(num_facets) - first_own[patch[0, order]]
    halo_place = np.arange(len(halo)) - first_halo[patch[1, halo]] + num_own[patch[1, halo]]
    facet = np.empty(num_facets + len(halo), dtype=np.int32)
    facet[first[patch[0, order]] + own_place] = order
    facet[first[patch[1, halo]] + halo_place] = halo

    place = np.empty((2, num_facets), dtype=np.int64)
    place[:, order] = own_place
    place[1, halo] = halo_place
    most = int(np.diff(first).max(initial=0))
    slot = np.full((layout.facets_per_cell, padded(num_cells)), 2 * most, dtype=np.uint16)
    for side in range(2):
        there = np.flatnonzero(layout.cells[side] >= 0)
        slot[layout.local[side, there], layout.cells[side, there]] = 2 * place[side, there] + side
    by_facet = np.argsort(halo)
    return FacetPatches(
        first=np.stack([first, first_own], axis=1).astype(np.int32),
        facet=facet,
        order=order,
        slot=slot,
        cut=np.stack([halo[by_facet], by_facet]).astype(np.int32),
        most=most,
    )
