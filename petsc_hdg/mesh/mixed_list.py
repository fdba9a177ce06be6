"""Meshes of several cell shapes from arrays. PETSc makes their edges and faces."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from petsc4py import PETSc

from ..errors import MeshError, collectively
from ..petsc import c_library
from ..value_checks import reals, shown
from .cell_list import PLEX_ORDER, CellList, facet_numbers
from .labels import mark
from .mesh_checks import named, whole_numbers
from .shapes import SHAPES, shape
from .topology import Topology


@dataclass
class MixedList:
    """A whole mesh on one rank.

    cells: shape name → [cell, vertex], in basix' order; cells count on from one shape to the next.
    points [point, dim]: coordinates.
    boundaries: name → facets [facet, vertex], or a list of such arrays, of facets with 3 and with 4 vertices.
    regions: name → cells [n].
    """

    cells: dict[str, np.ndarray]
    points: np.ndarray
    boundaries: dict[str, list[np.ndarray]] = field(default_factory=dict)
    regions: dict[str, np.ndarray] = field(default_factory=dict)

    def checked(self) -> MixedList:
        """This list with int32 cells of one dimension and without unused points. Raises MeshError."""
        if not self.cells or not set(self.cells) <= set(SHAPES):
            raise MeshError(f"Cells of shapes {shown(list(self.cells))} were given; accepted are {', '.join(SHAPES)}.")
        dims = {shape(name).dim for name in self.cells}
        if len(dims) > 1:
            raise MeshError(f"Cells of shapes {', '.join(self.cells)} were given; give cells of one dimension.")
        points = reals("The array of points", self.points, MeshError)
        used, cells = np.zeros(len(points), bool), {}
        for name, given in self.cells.items():
            cells[name], points = CellList(name, given, points).checked_cells()
            used[cells[name].ravel()] = True
        number = np.cumsum(used, dtype=np.int64) - 1
        boundaries = {}
        for name, facets in named("boundaries", self.boundaries).items():
            listed = facets if isinstance(facets, list | tuple) and np.ndim(facets[0]) == 2 else [facets]
            boundaries[name] = [self._facets(name, each, used, number) for each in listed]
        below = sum(map(len, cells.values()))
        regions = {
            name: whole_numbers(f"Cell region '{name}'", given, below=below)
            for name, given in named("cell regions", self.regions).items()
        }
        return MixedList({name: number[of] for name, of in cells.items()}, points[used], boundaries, regions)

    def joined(self, axes: str) -> MixedList:
        """This list, as CellList.joined without axes. Raises MeshError for any."""
        if axes:
            raise MeshError(
                f"periodic={axes!r} is given with cells of shapes {', '.join(self.cells)}; give triangles, "
                "quadrilaterals, tetrahedra or hexahedra alone, or leave it out."
            )
        return self

    def _facets(self, name: str, facets, used: np.ndarray, number: np.ndarray) -> np.ndarray:
        """Facets [facet, vertex] with the numbers of used points. Raises MeshError."""
        width = np.shape(facets)[-1] if np.ndim(facets) == 2 else 0
        dim = shape(next(iter(self.cells))).dim
        if width not in ((2,) if dim == 2 else (3, 4)):
            raise MeshError(
                f"Boundary '{name}' has facets of shape {np.shape(facets)}; give an array [facet, 2] in the plane, in "
                "space one [facet, 3], one [facet, 4], or a list of both."
            )
        found = whole_numbers(f"Boundary '{name}'", facets, width, len(used))
        if not used[found].all():
            raise MeshError(f"Boundary '{name}' names point {found[~used[found]][0]}, which no cell has.")
        return number[found]


def plex_of(listed: MixedList | None, comm) -> PETSc.DMPlex:
    """DMPlex of a checked list that rank 0 has. Collective. Raises MeshError."""
    names = comm.bcast([list(listed.cells), [*listed.boundaries, *listed.regions]] if listed else None)
    shapes = [shape(name) for name in names[0]]
    dm = PETSc.DMPlex().create(comm)
    dm.setDimension(shapes[0].dim)
    dm.setCoordinateDim(shapes[0].dim)
    cells = [listed.cells[s.name] if listed else np.empty((0, s.num_vertices), np.int64) for s in shapes]
    points = listed.points if listed else np.empty((0, shapes[0].dim))
    counts = [len(points), sum(map(len, cells))]
    sizes = [np.full(len(of), s.num_vertices) for s, of in zip(shapes, cells, strict=True)]
    cones = [counts[1] + of[:, PLEX_ORDER[s.name]].ravel() for s, of in zip(shapes, cells, strict=True)]
    cones = np.concatenate(cones)
    c_library.set_points(dm, counts, np.concatenate([*sizes, np.zeros(len(points))]), cones, 0 * cones, points)
    c_library.set_shapes(dm, [(s.name, len(of)) for s, of in zip(shapes, cells, strict=True)], len(points))
    dm.interpolate()
    found: dict[str, np.ndarray] = {}
    with collectively(comm):
        if listed is not None:
            owned = np.ones(dm.getChart()[1], bool)
            topology = Topology(dm, [s for s in shapes if len(listed.cells[s.name])], owned, np.arange(len(points)))
            found = _facets(topology, listed) | listed.regions
    for name in names[1]:
        mark(dm, name, found.get(name, np.empty(0, np.int64)))
    return dm


def _facets(topology: Topology, listed: MixedList) -> dict[str, np.ndarray]:
    """Plex points of the facets of each boundary. Raises MeshError."""
    first, table = topology.stratum[topology.dim - 1][0], _sorted(topology.entity_vertices[topology.dim - 1])
    return {
        name: first + np.concatenate([facet_numbers(table, _sorted(of, table.shape[1]), name) for of in facets])
        for name, facets in listed.boundaries.items()
    }


def _sorted(facets: np.ndarray, width: int = 0) -> np.ndarray:
    """Facets [facet, vertex] in one order, triangles among quadrilaterals with -1 for the last vertex."""
    facets = np.pad(facets, ((0, 0), (0, max(0, width - facets.shape[1]))), mode="edge")
    if facets.shape[1] == 4:
        facets = np.where((facets[:, 2] == facets[:, 3])[:, None] & (np.arange(4) == 3), -1, facets)
    return np.sort(facets, axis=1)
