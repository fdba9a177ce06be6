"""Patches of consecutive cells and the facets in them, for products that sum inside a patch before they write."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base import padded
from .layout import TraceLayout


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
