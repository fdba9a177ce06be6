"""Cells of a DMPlex that one rank has, sent to the ranks. DMPlexDistribute takes four times as long."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from mpi4py.util import pkl5
from petsc4py import PETSc

from ...errors import collectively
from ...petsc import c_library
from ..cell_plex import filled_plex
from ..geometry import stratum_values
from ..graph import Graph
from ..labels import mark, stratum_points, values_of
from ..shapes import CELLS, shape
from ..topology import cells_of_facets

OF_POINTS = {"celltype", "depth"}  # labels that come with the points


class WholePlex:
    """The points of an interpolated DMPlex of one cell shape, all on this rank.

    stratum[d]: (start, end) of the points of dimension d.   cones[d], d from dim to 1: [point, cone] plex points.
    """

    def __init__(self, dm, cell: str):
        self.dm, self.shape = dm, shape(cell)
        self.dim = self.shape.dim
        self.stratum = [dm.getDepthStratum(d) for d in range(self.dim + 1)]
        self.cones = {d: self._cones(d) for d in range(self.dim, 0, -1)}

    def _cones(self, d: int, orientations: bool = False) -> np.ndarray:
        return c_library.cones(self.dm, *self.stratum[d], self.shape.cone_size(d), orientations)

    @cached_property
    def _facets(self) -> np.ndarray:
        """Facets of each cell [cell, facet], counted from 0."""
        return self.cones[self.dim] - self.stratum[self.dim - 1][0]

    @cached_property
    def _sides(self) -> np.ndarray:
        return cells_of_facets(self._facets, self._count(self.dim - 1))

    @property
    def is_manifold(self) -> bool:
        """True if no facet has three cells."""
        return self._facets.size == np.count_nonzero(self._sides >= 0)

    @property
    def is_straight(self) -> bool:
        """True if coordinates are those of the vertices alone, in as many dimensions as the cells have."""
        section, first = self.dm.getCoordinateSection(), self.stratum[0][0]
        if self.dm.getCoordinateDim() != self.dim or section.getStorageSize() != self._count(0) * self.dim:
            return False
        return section.getOffset(first) == 0

    def dual_graph(self) -> Graph:
        """Cells, joined by the facets that two of them share."""
        cells = np.arange(self._count(self.dim))[:, None]
        first, last = np.moveaxis(self._sides[self._facets], 2, 0)
        other = np.where(first == cells, last, first)
        inside = other >= 0
        start = np.concatenate([[0], np.cumsum(np.count_nonzero(inside, axis=1))])
        neighbour = other[inside].astype(np.int64)
        return Graph(start, neighbour, np.ones(len(neighbour), np.int64), np.ones(len(cells)))

    def _count(self, d: int) -> int:
        return self.stratum[d][1] - self.stratum[d][0]

    def parts(self, target: np.ndarray, ranks: int) -> list[dict]:
        """The part of the mesh that each rank is sent, as arrays in the rank's own numbers. A point that several ranks
        have belongs to the lowest one. target [cell]: the rank of each cell."""
        dm, dim = self.dm, self.dim
        labels = {dm.getLabelName(i) for i in range(dm.getNumLabels())} - OF_POINTS
        named = [(name, int(v), stratum_points(dm, name, v)) for name in sorted(labels) for v in values_of(dm, name)]
        values = dm.getCoordinatesLocal().getArray()
        vertices = stratum_values(dm.getCoordinateSection(), values, *self.stratum[0], dim)
        orientations = {d: self._cones(d, True) for d in self.cones}
        owner, place = (np.full(max(end for _, end in self.stratum), -1, PETSc.IntType) for _ in range(2))
        found = []
        for rank in range(ranks):
            has = np.zeros(len(owner), bool)
            has[self.stratum[dim][0] + np.flatnonzero(target == rank)] = True
            rows = {}
            for d, cones in self.cones.items():
                rows[d] = np.flatnonzero(has[slice(*self.stratum[d])])
                has[cones[rows[d]]] = True
            rows[0] = np.flatnonzero(has[slice(*self.stratum[0])])
            points = np.concatenate([self.stratum[d][0] + rows[d] for d in (dim, 0, *range(dim - 1, 0, -1))])
            number = np.full(len(owner), -1, PETSc.IntType)
            number[points] = np.arange(len(points))
            mine = points[owner[points] < 0]
            owner[mine], place[mine] = rank, number[mine]
            shared = points[owner[points] < rank]
            found.append(
                {
                    "num_vertices": self.shape.num_vertices,
                    "cones": [number[cones[rows[d]]] for d, cones in self.cones.items()],
                    "orientations": [of_all[rows[d]] for d, of_all in orientations.items()],
                    "points": vertices[rows[0]],
                    "leaves": number[shared],
                    "roots": np.stack([owner[shared], place[shared]], axis=1),
                    "named": [(name, value, number[p][number[p] >= 0]) for name, value, p in named],
                    "labels": labels,
                }
            )
        return found


def whole_plex(dm) -> WholePlex | None:
    """The points of a DM, all on this rank; None of one that is no mesh of one cell shape with its facets."""
    shapes = list(c_library.cell_shapes(dm))
    if len(shapes) != 1 or shapes[0] not in CELLS or dm.getDepth() != dm.getDimension():
        return None
    plex = WholePlex(dm, shapes[0])
    return plex if plex.is_manifold else None


def scattered(plex: WholePlex | None, target: np.ndarray, name: str, comm):
    """A DMPlex on `comm` of the cells that rank 0 has, each on the rank `target` [cell]. Collective."""
    parts = None
    with collectively(comm):
        if plex is not None:
            parts = plex.parts(target, comm.size)
    link = pkl5.Intracomm(comm)  # messages of any size
    if parts is None:
        part = link.recv(source=0)
    else:
        part = parts[0]
        for request in [link.isend(other, dest) for dest, other in enumerate(parts) if dest]:
            request.wait()
    dm = filled_plex(part["num_vertices"], part["cones"], part["orientations"], part["points"], comm)
    dm.setName(name)
    for label in sorted(part["labels"]):
        dm.createLabel(label)
    for label, value, points in part["named"]:
        mark(dm, label, points, value)
    star_forest = PETSc.SF().create(dm.comm)
    star_forest.setGraph(dm.getChart()[1], part["leaves"], part["roots"])
    dm.setPointSF(star_forest)
    return dm
