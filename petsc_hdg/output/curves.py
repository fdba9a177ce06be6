"""Facets of a 2D mesh as curves that can be told from the colours under them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..reference import ReferenceElement
from .facets import FacetSet
from .style import contrasting
from .transfer import gather_rows


@dataclass(frozen=True)
class Curves:
    """Curves of all ranks, on rank 0: points [curve, point, 2] in the mesh's length unit, mean values [curve] there."""

    points: np.ndarray
    values: np.ndarray

    @classmethod
    def gather(cls, comm, element: ReferenceElement, facets: FacetSet, n: int, points, values) -> Curves | None:
        """The facets of all ranks on rank 0, None elsewhere. Collective.

        n: steps along a facet.   points and values [cell, node, component].
        """
        places = gather_rows(comm, facets.sample(element, n, points))
        under = gather_rows(comm, facets.sample(element, n, values).mean(axis=(1, 2)))
        return cls(places, under) if comm.rank == 0 else None

    def drawn(self, axes, width: float, colour, alpha: float | None = None, place=None, **more):
        """Add the curves to the axes.

        colour: one colour, or (colour map, norm) for white on dark and ink on light values.
        place: function of points [..., 2] to where they are drawn.
        """
        from matplotlib.collections import LineCollection

        if isinstance(colour, tuple):
            colour_map, norm = colour
            colour = contrasting(colour_map(norm(self.values)))
        points = self.points if place is None else place(self.points)
        lines = LineCollection(points, colors=colour, linewidths=width, alpha=alpha, capstyle="round", **more)
        axes.add_collection(lines)
        return lines
