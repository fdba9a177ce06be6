"""Facets of one kind: their blocks of the trace matrix are the same because the cells beside them are congruent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .trace_layout import TraceLayout


@dataclass(frozen=True)
class FacetKinds:
    """kind [facet] int32: number of each facet's kind.   representative [kind] int32: a facet of it."""

    layout: TraceLayout
    kind: np.ndarray
    representative: np.ndarray

    @property
    def count(self) -> int:
        return len(self.representative)

    def listed(self, chunk: int) -> tuple[np.ndarray, np.ndarray]:
        """Facets in chunks of consecutive numbers, sorted by kind in each: entry [item], adjacent [slot - 1, item].

        Item t is facet (t // chunk) · chunk + entry % chunk, of kind entry // chunk; adjacent is the facet in each slot
        but the first, itself where there is none.
        """
        count = len(self.kind)
        keys = np.full(-(-count // chunk) * chunk, self.count, dtype=np.int32)
        keys[:count] = self.kind
        place = np.argsort(keys.reshape(-1, chunk), axis=1, kind="stable")
        facet = (place + chunk * np.arange(len(place))[:, None]).ravel()[:count]
        entry = self.kind[facet].astype(np.int64) * chunk + place.ravel()[:count]
        adjacent = self.layout.neighbours[1:, facet]
        return entry.astype(np.int32), np.where(adjacent < 0, facet, adjacent).astype(np.int32)


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
