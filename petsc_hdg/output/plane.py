"""Parts of a picture of a 2D field, sampled on all ranks and gathered on rank 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mpi4py.MPI import MAX

from ..mesh.order import box
from ..reference import ReferenceElement
from .arrays import gather_rows
from .facets import FacetSet, all_facets, lattice, pieces_per_cell, skin, steps
from .inset import Lens, pick_focus
from .style import contrasting

_TRIANGLES = 600_000  # how many are worth drawing
_MOST_TRIANGLES = 4_000_000  # more cells than this are drawn as dots
_DOTS = 1_000_000


@dataclass(frozen=True)
class Plane:
    """Drawing on rank 0, in the (deformed) mesh's length unit.

    points [n, 2], values [n], triangles [t, 3]: the shaded field; triangles is None for dots.
    first: the outline of the mesh that was not deformed.
    """

    points: np.ndarray
    values: np.ndarray
    triangles: np.ndarray | None
    outline: Curves
    interfaces: Curves
    edges: Curves
    first: Curves | None
    boundaries: dict[str, Curves]
    lens: Lens | None
    note: str

    def corners(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [2] of the box around all."""
        found = [curves.points.reshape(-1, 2) for curves in (self.outline, self.first) if curves is not None]
        return np.min([of.min(axis=0) for of in found], axis=0), np.max([of.max(axis=0) for of in found], axis=0)


def collect_plane(
    comm, element: ReferenceElement, points, values, tags, boundaries, displacement, wish
) -> Plane | None:
    """Sample the field on each rank and gather it: a Plane on rank 0, None elsewhere. Collective."""
    exterior, between = skin(comm, element, points, tags)
    shape, note = deformed(comm, points, displacement, wish.scale)
    total = comm.allreduce(len(points))
    wanted = 1 if (element.cell, element.degree) == ("triangle", 1) else min(16, 4 * element.degree)
    n = steps(element.cell, wanted, total, _TRIANGLES)
    fine = max(n, min(4, wanted))

    def curves(facets: FacetSet, places=shape) -> Curves | None:
        return Curves.gather(comm, element, facets, fine, places, values)

    lens, edges = _mesh_edges(comm, element, shape, wish)
    parts = {
        "outline": curves(exterior),
        "interfaces": curves(between),
        "edges": curves(edges),
        "first": None if displacement is None else curves(exterior, points),
        "boundaries": {name: curves(facets) for name, facets in boundaries.items()},
        "lens": lens,
    }
    if pieces_per_cell(element.cell, 1) * total > _MOST_TRIANGLES:
        field, note = _dots(comm, element, shape, values, total), f"{note}  one dot for several cells".strip()
    else:
        field = _triangles(comm, element, shape, values, n)
    return Plane(*field, note=note, **parts) if comm.rank == 0 else None


def deformed(comm, points: np.ndarray, displacement: np.ndarray | None, scale: float | None) -> tuple[np.ndarray, str]:
    """Points moved by a displacement times a factor, and what to note of it. Collective.

    scale: the factor; None: the one that makes the largest displacement a tenth of the mesh's size.
    """
    if displacement is None:
        return points, ""
    if scale is None:
        largest = comm.allreduce(np.linalg.norm(displacement, axis=-1).max(initial=0.0), MAX)
        size = np.ptp(box(comm, points.reshape(-1, points.shape[-1])), axis=0).max()
        scale = float(0.1 * size / largest) if largest > 0 else 1.0
    return points + scale * displacement, f"displacement × {scale:.3g}"


def _mesh_edges(comm, element, shape, wish) -> tuple[Lens | None, FacetSet]:
    """The lens, if one is wanted, and the cells' edges that are drawn: all, those seen through the lens, or none."""
    lens = pick_focus(comm, element, shape, wish.inset) if wish.inset else None
    if wish.mesh_lines or (wish.inset and lens is None):
        cells = np.arange(len(shape))
    elif lens is not None:
        reach = np.linalg.norm(shape - shape.mean(axis=1, keepdims=True), axis=2).max(axis=1, initial=0.0)
        cells = np.flatnonzero(np.linalg.norm(shape.mean(axis=1) - lens.focus, axis=1) < lens.radius + reach)
    else:
        cells = np.arange(0)
    return lens, all_facets(element, shape, cells)


def _triangles(comm, element, shape, values, n: int):
    """Points, values and triangles of all cells on rank 0."""
    places, pieces = lattice(element.cell, n)
    table = element.tabulate(places, 0)[0]
    points, found = gather_rows(comm, table @ shape), gather_rows(comm, table @ values)
    if comm.rank:
        return None
    triangles = (np.arange(len(points))[:, None, None] * len(places) + pieces).reshape(-1, 3)
    return points.reshape(-1, 2), found.ravel(), triangles


def _dots(comm, element, shape, values, total: int):
    """Centres and values there of every so many cells on rank 0."""
    stride = -(-total // _DOTS)
    table = element.tabulate(element.nodes.mean(axis=0, keepdims=True), 0)[0]
    points, found = gather_rows(comm, table @ shape[::stride]), gather_rows(comm, table @ values[::stride])
    return (points.reshape(-1, 2), found.ravel(), None) if comm.rank == 0 else None


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
