"""Facets of one kind: their blocks of the trace matrix are the same because the cells beside them are congruent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
