"""The points of a DMPlex of one cell shape as arrays, before there is a DMPlex."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from mpi4py import MPI
from petsc4py import PETSc

from ..petsc import c_library
from ..threads import taken
from .labels import mark
from .order import means
from .shapes import Shape

_SIDES = {"tetrahedron": ["triangle"], "hexahedron": ["quadrilateral"]}  # shapes of faces


@dataclass
class PlexPoints:
    """The points of an interpolated mesh on this rank, which may have none.

    cones, orientations: dimension, from that of the mesh to 1 → [point, cone], plex points and how they are turned.
    start: dimension, the same and 0 → its first plex point.   vertices [vertex, dim]: coordinates.
    named: (label, value, its plex points).
    labels: names of all labels.
    periods [dim]: lengths after which the mesh repeats itself, 0 for directions in which it does not.
    """

    shape: Shape
    cones: dict[int, np.ndarray]
    orientations: dict[int, np.ndarray]
    start: dict[int, int]
    vertices: np.ndarray
    named: list[tuple[str, int, np.ndarray]] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)
    periods: np.ndarray | None = None

    @classmethod
    def in_order(cls, of: Shape, cones: list, orientations: list, vertices: np.ndarray, **more) -> PlexPoints:
        """Points that count on: cells, vertices, faces, edges; cones and orientations of cells, faces and edges."""
        dimensions = range(of.dim, 0, -1)
        cells, *others = map(len, cones)
        starts = np.cumsum([0, cells, len(vertices), *others]).tolist()
        start = dict(zip((of.dim, 0, *dimensions[1:]), starts, strict=False))
        of_all = (dict(zip(dimensions, each, strict=True)) for each in (cones, orientations))
        return cls(of, *of_all, start, vertices, **more)

    @property
    def num_cells(self) -> int:
        """Number of cells."""
        return len(self.cones[self.shape.dim])

    def mark(self, labels: list[tuple[str, int]], points: np.ndarray) -> None:
        """Give plex points labels with values."""
        self.named += [(label, value, points) for label, value in labels]
        self.labels |= {label for label, _ in labels}

    def centroids(self) -> np.ndarray:
        """Means of the vertices of the cells [cell, dim]."""
        places, below = self.vertices, 0
        for d in range(1, self.shape.dim + 1):
            places, below = means(places, self.cones[d] - self.start[below]), d
        return places

    def parts(self, target: np.ndarray, ranks: int) -> list[tuple[PlexPoints, np.ndarray, np.ndarray]]:
        """The part of the mesh for each rank: its points, numbered within the part; the numbers of those that another
        rank owns [leaf]; and of each of these the owner and its number there [leaf, 2]. The lowest of several ranks
        owns a point.

        target [cell]: the rank of each cell.
        """
        dim = self.shape.dim
        places = {d: slice(first, first + len(self.cones.get(d, self.vertices))) for d, first in self.start.items()}
        total = max(place.stop for place in places.values())
        owner, number_there = (np.full(total, -1, PETSc.IntType) for _ in range(2))
        found = []
        for rank in range(ranks):
            has, rows, cones = np.zeros(len(owner), bool), {}, {}
            has[places[dim]] = target == rank
            for d, of_all in self.cones.items():
                rows[d] = np.flatnonzero(has[places[d]])
                cones[d] = taken(of_all, rows[d])
                has[cones[d]] = True
            rows[0] = np.flatnonzero(has[places[0]])
            points = np.concatenate([self.start[d] + rows[d] for d in (dim, 0, *range(dim - 1, 0, -1))])
            number = np.full(len(owner), -1, PETSc.IntType)
            number[points] = np.arange(len(points))
            mine = points[owner[points] < 0]
            owner[mine], number_there[mine] = rank, number[mine]
            shared = points[owner[points] < rank]
            part = PlexPoints.in_order(
                self.shape,
                [taken(number, each) for each in cones.values()],
                [taken(of_all, rows[d]) for d, of_all in self.orientations.items()],
                taken(self.vertices, rows[0]),
                named=[(name, value, number[p][number[p] >= 0]) for name, value, p in self.named],
                labels=self.labels,
                periods=self.periods,
            )
            found.append((part, number[shared], np.stack([owner[shared], number_there[shared]], axis=1)))
        return found

    def forget(self) -> None:
        """Free the memory of all points, which callers still hold while a mesh is made of them."""
        vars(self).clear()

    def plex(self, comm):
        """DMPlex on `comm` of the points of all ranks, which are in order. Collective."""
        sides = range(self.shape.dim - 1, 0, -1)
        points_of = [self.num_cells, len(self.vertices), *(len(self.cones[d]) for d in sides)]
        dm = PETSc.DMPlex().create(comm)
        dm.setDimension(self.shape.dim)
        dm.setCoordinateDim(self.shape.dim)
        sizes = [self.shape.num_facets, 0, *map(self.shape.cone_size, sides)]
        flat = [np.concatenate([each.ravel() for each in of.values()]) for of in (self.cones, self.orientations)]
        counts = [points_of[1], *points_of[:1:-1], points_of[0]]
        c_library.set_points(dm, counts, np.repeat(sizes, points_of), *flat, self.vertices)
        shapes = [self.shape.name, "point", *_SIDES.get(self.shape.name, []), "segment"]
        c_library.set_shapes(dm, list(zip(shapes, points_of, strict=True)))
        for name in sorted(set().union(*comm.allgather(self.labels))):
            dm.createLabel(name)
        for name, value, points in self.named:
            mark(dm, name, points, value)
        periods = comm.bcast(self.periods)
        if periods is not None and periods.any():
            c_library.set_periods(dm, periods)
        return dm


class PointExchange:
    """Sums and logical ors over all copies of each point of a DMPlex. Every method is collective.

    Arrays have one entry for each point of the chart [point].
    """

    def __init__(self, dm, comm):
        self.comm = comm
        self.sf = dm.getPointSF()
        self.chart = dm.getChart()
        self._leaves = c_library.shared_points(dm) if comm.size > 1 else None
        self.active = bool(comm.allreduce(int(self._leaves is not None), MPI.MIN))

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Sum over all copies [point] int32 or float, the same on every rank that holds the point."""
        values = np.ascontiguousarray(values, float if np.asarray(values).dtype.kind == "f" else np.int32)
        root = values.copy()
        if not self.active:
            return root
        self.sf.reduceBegin(_unit(values), values, root, MPI.SUM)
        self.sf.reduceEnd(_unit(values), values, root, MPI.SUM)
        return self.from_owners(root)

    def from_owners(self, values: np.ndarray) -> np.ndarray:
        """The value [point] int32 or float of the rank that owns a point, at all copies of it."""
        result = values.copy()
        if self.active:
            self.sf.bcastBegin(_unit(values), values, result, MPI.REPLACE)
            self.sf.bcastEnd(_unit(values), values, result, MPI.REPLACE)
        return result

    def any(self, mask: np.ndarray) -> np.ndarray:
        """Logical or over all copies [point] bool."""
        return self.sum(mask) > 0 if self.active else np.array(mask, bool)

    def owned(self) -> np.ndarray:
        """Points that this rank owns [point] bool: those that are no leaf of the star forest."""
        start, end = self.chart
        mask = np.ones(end - start, bool)
        if self.active:
            mask[self._leaves - start] = False
        return mask


def _unit(values: np.ndarray) -> MPI.Datatype:
    return MPI.DOUBLE if values.dtype.kind == "f" else MPI.INT32_T
