"""Meshes of polygons and polyhedra given as such: divided into simplices, each a polytope of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...errors import MeshError, collectively
from ...stages import stage
from ...value_checks import path as given_path
from ...value_checks import reals
from .. import create
from ..cell_list import CellList
from ..files.meshio_file import read_polygons
from ..mesh import Mesh
from ..mesh_checks import named, place
from .agglomerate import agglomerate
from .polytope_lists import PolygonList, PolyhedronList


@stage("mesh")
def polygons(cells, points, boundaries=None, regions=None, degrees=None, comm=None, prefix: str = "") -> Mesh:
    """A mesh whose polytopes are simple polygons, read on rank 0 only (others may pass None). Collective.

    cells       vertices of each polygon, in their order around it either way: lists of different lengths. It need not
                be convex. A vertex of a neighbour that lies on an edge (a hanging vertex) is listed too.
    points      [point, 2]
    boundaries  name → edges [edge, 2], by their vertices.   regions: name → polygon numbers [n]
    degrees     polynomial degree: one number, [polygon], or a function of the polytopes' centroids [polygon, dim]

    Polygons are divided into triangles without new vertices on their edges. `polytopes.numbers` are the numbers of the
    polygons. Raises MeshError for polygons that intersect themselves or one another, or have no area.
    """
    return made_mesh(lambda: _triangles(cells, points, boundaries, regions), degrees, place(comm, prefix), prefix)


@dataclass
class Divided:
    """Polytopes divided into simplices, on one rank.

    cells [simplex, vertex], owner [simplex]: the polytope of each.   points [point, dim].
    boundaries: name → facets [facet, vertex].   regions: name → polytopes [n], or parts where `part` [simplex] says
    which part of a polytope each simplex is of.   degrees [polytope]: those known beforehand.
    """

    cell: str
    cells: np.ndarray
    points: np.ndarray
    owner: np.ndarray
    boundaries: dict[str, np.ndarray] = field(default_factory=dict)
    regions: dict[str, np.ndarray] = field(default_factory=dict)
    part: np.ndarray | None = None
    degrees: np.ndarray | None = None

    def checked(self) -> Divided:
        """This one, with its regions looked through. Raises MeshError."""
        count = int(self.owner.max()) + 1
        self.boundaries, self.regions = named("boundaries", self.boundaries), named("regions", self.regions)
        for name, wanted in self.regions.items():
            wanted = reals(f"Region '{name}'", wanted, MeshError)
            if wanted.size and (wanted.min() < 0 or wanted.max() >= count):
                raise MeshError(
                    f"Region '{name}' names polytopes {wanted.min():g} to {wanted.max():g}; there are {count}, from 0."
                )
        return self

    def listed(self) -> CellList:
        """The simplices as a cell list, with regions of simplices. Raises MeshError."""
        part = self.owner if self.part is None else self.part
        regions = {name: np.flatnonzero(np.isin(part, wanted)) for name, wanted in self.regions.items()}
        return CellList({self.cell: self.cells}, self.points, self.boundaries, regions).checked()


def made_mesh(divided, degrees, comm, prefix: str) -> Mesh:
    """The distributed mesh of the polytopes that divided() gives on rank 0. Collective. Raises MeshError."""
    made = listed = None
    with collectively(comm):
        if comm.rank == 0:
            made = divided()
            listed = made.listed()
            degrees = degrees if made.degrees is None else made.degrees
    dm = create.from_list(listed, comm).plex(comm)
    dm.setOptionsPrefix(prefix)
    whole = Mesh(dm)
    owner = made.owner if made is not None else np.empty(0, np.int64)
    mesh = agglomerate(
        whole, groups=owner[whole.topology.cells - whole.topology.stratum[whole.dim][0]], degrees=degrees
    )
    mesh.dm.viewFromOptions("-dm_view")
    return mesh


@stage("mesh")
def polyhedra(cells, points, boundaries=None, regions=None, degrees=None, comm=None, prefix: str = "") -> Mesh:
    """A mesh whose polytopes are polyhedra, read on rank 0 only (others may pass None). Collective.

    cells       of each polyhedron its faces, of each face its vertices in their order around it either way. Faces are
                flat and seen whole from their centroids, polyhedra from theirs; neighbours list the same faces.
    points      [point, 3]
    boundaries  name → faces, by their vertices.   regions, degrees: as of `polygons`.

    Polyhedra are divided into tetrahedra between the centroids of cells and of faces. Raises MeshError.
    """
    return made_mesh(lambda: _tetrahedra(cells, points, boundaries, regions), degrees, place(comm, prefix), prefix)


@stage("mesh")
def polygons_from_file(path, degrees=None, comm=None, prefix: str = "") -> Mesh:
    """A mesh whose polytopes are the cells of a file: VTU polygons, triangles and quadrilaterals, or VTU polyhedra.

    The file is read by meshio on rank 0. Lines with a tag are boundaries, cells with a tag are regions.
    degrees: as of `polygons`; of polyhedra in the order of meshio, by number of vertices. Collective. Raises MeshError.
    """

    def divided() -> Divided:
        dim, *found = read_polygons(given_path("A file of polytopes", path, MeshError))
        return (_triangles if dim == 2 else _tetrahedra)(*found)

    return made_mesh(divided, degrees, place(comm, prefix), prefix)


def _triangles(cells, points, boundaries, regions) -> Divided:
    """Polygons as triangles. Raises MeshError."""
    triangles, owner, all_points = PolygonList(cells, points).triangles()
    return Divided("triangle", triangles, all_points, owner, boundaries, regions).checked()


def _tetrahedra(cells, points, boundaries, regions) -> Divided:
    """Polyhedra as tetrahedra. Raises MeshError."""
    found = PolyhedronList(cells, points)
    triangles = {name: found.triangles_of(name, faces) for name, faces in named("boundaries", boundaries).items()}
    tetrahedra, owner, all_points = found.tetrahedra()
    return Divided("tetrahedron", tetrahedra, all_points, owner, triangles, regions).checked()
