"""The mesh: a DMPlex with its topology, geometry and names as bulk arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import basix
import numpy as np
from numpy.typing import ArrayLike
from petsc4py import PETSc

from .. import log
from ..errors import MeshError, collectively, warn_user
from ..petsc import c_library
from ..petsc.lifetimes import Alive
from ..reference import entity_shapes, is_tensor
from ..representation import Described
from ..stages import stage
from ..threads import taken
from ..value_checks import Comm, FilePath, plural
from . import create, naming, quality, second_order
from .geometry import Geometry, local_degree, read_blocks, require_straight, stratum_values
from .labels import EXTERIOR, Labels, require_exterior, require_one_side
from .mesh_checks import interpolated, kind, place, require_dm
from .mesh_part import Cells, MeshPart
from .order import box, by_class, cell_classes, ends, means, morton_keys, plex_order
from .plex_points import PointExchange
from .polytopes import Polytopes
from .shapes import SURFACE, Shape, shape
from .topology import Topology, global_vertices, places


class Mesh(Described, Cells):
    """A mesh of cells of one shape or several, distributed over the ranks of `comm`. Making one is collective.

    num_cells      cells of this rank
    num_vertices   vertices of this rank
    num_facets     facets of this rank
    num_cells_all  cells of all ranks
    dm             DMPlex (interpolated)
    comm           mpi4py communicator
    dim            2 or 3
    cell           "triangle", "quadrilateral", "tetrahedron", "hexahedron", "prism" or "pyramid", joined by " and "
                   where there are several shapes, such as "triangle and quadrilateral"
    parts          the cells of each shape, in this order, as meshes of one shape have theirs; the mesh itself of one.
                   `parts[0].cells` are their numbers among this rank's cells
    topology       connectivity as arrays; cells count from 0 on each rank, owned ones first, along a space-filling
                   curve, those of several shapes part by part, and `topology.cells` has their plex points
    geometry       coordinates as arrays: `geometry.nodes` [node, dim], `geometry.cell_nodes` [cell, node of the cell]
    polytopes      agglomerates of the cells (see petsc_hdg.agglomerate), or None: each cell for itself

    Raises MeshError, on all ranks, for a mesh that cannot be used.
    """

    PUBLIC = tuple(
        "boundaries boundary_facets box cell cell_mask cell_regions comm curved destroy dim dm from_cells from_file "
        "from_meshio from_options from_pyvista geometry labels name_boundary name_region num_cells num_cells_all "
        "num_facets num_vertices parts polytopes topology".split()
    )
    polytopes: Polytopes | None = None
    _told = False  # whether it was told what `left_out` says
    dm = Alive("The mesh (mesh.dm)", MeshError)

    def __init__(self, dm: PETSc.DMPlex):
        """Take the user's own DMPlex; it is not changed (one that is not interpolated is interpolated as a clone)."""
        self.comm = require_dm(dm).comm.tompi4py()
        self.dim, names = kind(dm, self.comm)
        shapes = [shape(name) for name in names]
        self.cell = " and ".join(names)
        of_several = Shape(self.cell, self.dim, False, (), (), np.zeros((0, self.dim)))
        self.shape = shapes[0] if len(shapes) == 1 else of_several
        self.dm = interpolated(dm, self.comm, self.dim)
        self.exchange = PointExchange(self.dm, self.comm)
        self._orders: dict[tuple[int, ...], np.ndarray] = {}
        numbers = global_vertices(self.dm)
        with collectively(self.comm):
            found = None if all(is_tensor(name) for name in names) else places(self._vertices())
            self.topology = Topology(self.dm, shapes, self.exchange.owned(), numbers, found)
        geometries = self._geometry(shapes)
        self.geometry = geometries[0]
        self._parts: tuple[MeshPart, ...] = ()
        if len(shapes) > 1:
            of_parts = zip(names, shapes, self.topology.parts, geometries, strict=True)
            self._parts = tuple(MeshPart(self.dm, self.exchange, *part) for part in of_parts)
        self._order_cells()
        self.labels_table = Labels(self.dm, self.comm, self.exchange)
        quality.check(self)
        self.num_cells_all = self.comm.allreduce(self.num_cells)

    def __repr__(self) -> str:
        cells, *names = self.facts().items()
        return f"<Mesh: {'; '.join([cells[1], *(f'{what} {names}' for what, names in names if names)])}>"

    def facts(self) -> dict[str, str]:
        """Cells, boundaries and regions, in words."""
        cells = f"{plural(self.num_cells_all, f'{self.cell} cell')} on {plural(self.comm.size, 'rank')}"
        return {"cells": cells, "boundaries": ", ".join(self.boundaries), "regions": ", ".join(self.cell_regions)}

    @classmethod
    @stage("mesh")
    def from_options(
        cls, comm: Comm = None, prefix: str = "", overlap: int = 0, partition_seed: int | None = None
    ) -> Mesh:
        """The mesh of PETSc's options: -dm_plex_filename, or a box by -dm_plex_dim, -dm_plex_simplex, -dm_plex_box_…

        -mesh_partition_seed deals the cells out at random, for tests.
        """
        comm = place(comm, prefix, overlap, partition_seed)
        options = PETSc.Options(prefix)
        if partition_seed is None and options.hasName("mesh_partition_seed"):
            partition_seed = options.getInt("mesh_partition_seed")
        return cls._finish(create.from_options(comm, prefix), comm, prefix, overlap, partition_seed)

    @classmethod
    @stage("mesh")
    def box(
        cls,
        faces: Sequence[int],
        simplex: bool = True,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = 1.0,
        comm: Comm = None,
        overlap: int = 0,
        prefix: str = "",
        partition_seed: int | None = None,
        periodic: str = "",
    ) -> Mesh:
        """A rectangle or box of faces[0] × faces[1] (× faces[2]) squares or cubes, split into simplices if `simplex`.

        Sides are called left, right (x), bottom, top (y), front, back (z), each with the lower one first.
        periodic  axes along which the mesh repeats itself, such as "x" or "xy", with three cells or more; there are no
                  sides there
        """
        comm = place(comm, prefix, overlap, partition_seed)
        dm = create.box(faces, simplex, lower, upper, comm, periodic)
        return cls._finish(dm, comm, prefix, overlap, partition_seed)

    @classmethod
    @stage("mesh")
    def from_file(
        cls, path: FilePath, comm: Comm = None, overlap: int = 0, prefix: str = "", partition_seed: int | None = None
    ) -> Mesh:
        """A mesh file with its names: Gmsh (.msh, also of second order), other formats through meshio."""
        comm = place(comm, prefix, overlap, partition_seed)
        return cls._finish(create.from_file(path, comm), comm, prefix, overlap, partition_seed)

    @classmethod
    @stage("mesh")
    def from_cells(
        cls,
        cells: ArrayLike | Mapping[str, ArrayLike] | None,
        points: ArrayLike | None,
        boundaries: Mapping[str, Any] | None = None,
        regions: Mapping[str, ArrayLike] | None = None,
        cell: str | None = None,
        comm: Comm = None,
        overlap: int = 0,
        prefix: str = "",
        partition_seed: int | None = None,
        periodic: str = "",
    ) -> Mesh:
        """A mesh from arrays, read on rank 0 only (others may pass None).

        cells [cell, vertex] in basix' vertex order (tensor order for quadrilaterals and hexahedra), or a dict of shapes
        to such arrays, whose cells count on from one shape to the next.
        points [point, dim].   boundaries: name → facets [facet, vertex], or a list of such arrays where facets have 3
        and 4 vertices.   regions: name → cell numbers [n].
        cell: shape name, or None to infer it.
        periodic: axes as of `box`; the points of the two sides lie opposite to each other.
        """
        comm = place(comm, prefix, overlap, partition_seed)
        dm = create.from_cells(cells, points, boundaries, regions, cell, comm, periodic)
        return cls._finish(dm, comm, prefix, overlap, partition_seed)

    @classmethod
    @stage("mesh")
    def from_meshio(
        cls,
        mesh: Any,
        comm: Comm = None,
        overlap: int = 0,
        prefix: str = "",
        partition_seed: int | None = None,
        periodic: str = "",
    ) -> Mesh:
        """A meshio.Mesh of straight cells with its names, as `from_file` has them, read on rank 0 only; periodic as of
        `from_cells`."""
        comm = place(comm, prefix, overlap, partition_seed)
        return cls._finish(create.from_meshio(mesh, comm, periodic), comm, prefix, overlap, partition_seed)

    @classmethod
    @stage("mesh")
    def from_pyvista(
        cls, mesh: Any, comm: Comm = None, overlap: int = 0, prefix: str = "", partition_seed: int | None = None
    ) -> Mesh:
        """A pyvista.UnstructuredGrid, or another data set of straight cells, read on rank 0 only.

        Integers of cell data are names, as in `from_file`: `side` gives "side=3". Points that are listed twice are two.
        """
        comm = place(comm, prefix, overlap, partition_seed)
        return cls._finish(create.from_pyvista(mesh, comm), comm, prefix, overlap, partition_seed)

    @classmethod
    def _finish(cls, dm: PETSc.DMPlex, comm: Comm, prefix: str, overlap: int, seed: int | None) -> Mesh:
        mesh = cls(create.prepare(dm, comm, prefix, overlap, seed))
        mesh.dm.viewFromOptions("-dm_view")
        log.info("made %r", mesh)
        return mesh

    @property
    def num_vertices(self) -> int:
        """Number of vertices on this rank, shared ones included."""
        return self.topology.num_entities(0)

    @property
    def num_facets(self) -> int:
        """Number of facets on this rank, shared ones included."""
        return self.topology.num_entities(self.dim - 1)

    @property
    def parts(self) -> tuple:
        """The cells of each shape, see above."""
        return self._parts or (self,)

    def part_of(self, cell: int) -> int:
        """Number of the part that an owned cell belongs to."""
        return next(number for number, part in enumerate(self.parts) if cell < part.cells.stop)

    @cached_property
    def corners(self) -> np.ndarray:
        """Lower and upper corner [2, dim] of the box around the nodes of all ranks. Collective at first use."""
        return box(self.comm, self.geometry.nodes)

    def name_boundary(self, name: str, where: Callable[[np.ndarray], np.ndarray], inside: bool = False) -> None:
        """Name the exterior facets at whose vertices a function holds, by a label of `dm`. Collective.

        where   function of coordinates x [..., dim] that returns bool [...], as lambda x: x[..., 0] < 1e-9
        inside  also facets inside the mesh

        Raises MeshError for a name that the mesh has, another kind of function, and where there are no such facets.
        """
        naming.name_boundary(self, name, where, inside)

    def name_region(self, name: str, where: Callable[[np.ndarray], np.ndarray]) -> None:
        """Name the cells at the mean of whose vertices a function holds; as `name_boundary`. Collective."""
        naming.name_region(self, name, where)

    def curved(self, where: Callable[[np.ndarray], np.ndarray]) -> Mesh:
        """The mesh of these cells as ones of second order, whose nodes are at `where` of their places. Collective.

        where  function of coordinates x [node, dim] that returns the new ones [node, dim]; nodes are at vertices, in
               the middle of edges and, of quadrilaterals and hexahedra, of faces and cells

        Names are those of this mesh. Raises MeshError for another kind of function, and for cells that it turns over.
        """
        return Mesh(second_order.curved(self, where))

    @property
    def boundaries(self) -> tuple[str, ...]:
        """Names of boundaries, the same on all ranks."""
        return self.labels_table.boundaries

    @property
    def cell_regions(self) -> tuple[str, ...]:
        """Names of cell regions, the same on all ranks."""
        return self.labels_table.regions

    @property
    def labels(self) -> tuple[str, ...]:
        """All names, of boundaries and of cell regions."""
        return tuple(sorted({*self.boundaries, *self.cell_regions}))

    @cached_property
    def exterior(self) -> np.ndarray:
        """Facets of one cell only, counted over all ranks [facet] bool. Collective at first use."""
        return self.facet_counts == 1

    @cached_property
    def facet_counts(self) -> np.ndarray:
        """Number of cells on each facet, over all ranks [facet] int32. Collective at first use."""
        return self.count_sides()

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Shapes of plex points, by ascending dimension; "point" and "interval" are the first."""
        shapes = [entity_shapes(part.cell) for part in self.parts]
        return tuple(dict.fromkeys(name for d in range(self.dim + 1) for of in shapes for name in sorted(set(of[d]))))

    @cached_property
    def point_kinds(self) -> np.ndarray:
        """Number of its shape among `kinds` of each plex point of the chart [point] int8."""
        start, end = self.dm.getChart()
        found = np.zeros(end - start, np.int8)
        if len(self.kinds) == self.dim + 1:
            for d in range(self.dim + 1):
                found[slice(*self.topology.stratum[d])] = d
            return found
        for part in self.parts:
            for d, shapes in enumerate(entity_shapes(part.cell)):
                points = part.topology.entity[d] + self.topology.stratum[d][0]
                for local, name in enumerate(shapes):
                    at = part.topology.cells if d == self.dim else points[:, local]
                    found[at - start] = self.kinds.index(name)
        return found

    def point_order(self, dimensions: tuple[int, ...]) -> np.ndarray:
        """All plex points of this rank [point], those of some dimensions first: see order.plex_order."""
        if dimensions not in self._orders:
            self._orders[dimensions] = plex_order(self, dimensions).astype(PETSc.IntType)
        return self._orders[dimensions]

    def on_sides(self, of_facets: np.ndarray) -> np.ndarray:
        """Values [facet, …] at the facets of owned cells [cell, facet of the cell, …], 0 where a cell has fewer."""
        none = np.zeros_like(of_facets, shape=(1, *of_facets.shape[1:]))
        return np.concatenate([of_facets, none])[self.topology.entity[self.dim - 1][: self.num_cells]]

    def count_sides(self, chosen: Any = slice(None)) -> np.ndarray:
        """Number of chosen cells or sides on each facet, over all ranks [facet] int32. Collective.

        chosen: mask of owned cells [cell], or of their facets [cell, facet of the cell].
        """
        facets = self.topology.entity[self.dim - 1][: self.num_cells][chosen]
        return self.exchange_facets(np.bincount(facets.ravel(), minlength=self.num_facets + 1)[:-1])

    def exchange_facets(self, values: np.ndarray) -> np.ndarray:
        """Sum [facet] int32 over all ranks that hold a facet. Collective."""
        start, end = self.dm.getChart()
        first, last = self.topology.stratum[self.dim - 1]
        points = np.zeros(end - start, np.int32)
        points[first - start : last - start] = values
        return self.exchange.sum(points)[first - start : last - start]

    def facet_mask(self, label: str) -> np.ndarray:
        """Facets of a named boundary [facet] bool, also interior ones with that name. Collective. Raises MeshError.

        "boundary" is all exterior facets, unless the mesh has a label of that name; one that leaves some out is told.
        """
        if isinstance(label, str) and label == EXTERIOR and not self.labels_table.has(label, 1):
            return self.exterior
        with collectively(self.comm):
            self.labels_table.resolve(label, 1)
        if label == EXTERIOR and self.left_out and not self._told:
            self._told = True
            if self.comm.rank == 0:
                warn_user(f"'{EXTERIOR}' is {self.left_out}; give its label another name to mean all.")
        return self.labels_table.points(label, 1)

    @cached_property
    def left_out(self) -> str:
        """Say what the mesh's own label "boundary" leaves out; "" where all is meant. Collective at first use."""
        if not self.labels_table.has(EXTERIOR, 1):
            return ""
        exterior = self.on_sides(self.exterior)
        without = exterior & ~self.on_sides(self.labels_table.points(EXTERIOR, 1))
        left, total = self.comm.allreduce(np.array([without.sum(), exterior.sum()]))
        return f"a label of the mesh, which leaves out {left} of {total} exterior facets" if left else ""

    def boundary_facets(
        self, label: str, inside: bool = False, side: str | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Exterior facets of owned cells on a named boundary ("boundary": all), each once over all ranks. Collective.

        inside: also those inside the mesh, which stand for either of their cells.
        side: name of a region; those of its cells alone, and inside the mesh for these, of which there has to be one.
        Returns cells [n] int32, ascending, and local facets [n] int32, in basix' order. Raises MeshError.
        """
        mask, facets = self.facet_mask(label), self.topology.entity[self.dim - 1][: self.num_cells]
        there = self.on_sides(mask)
        if not inside:
            require_exterior(label, np.count_nonzero(mask & ~self.exterior), self.comm)
        if side is not None:
            there &= self.cell_mask(side)[:, None]
            seen = self.count_sides(there)
            require_one_side(label, side, seen[mask], self.facet_counts[mask], self.comm)
        elif inside:
            first, last = self.topology.stratum[self.dim - 1]
            start, once = self.dm.getChart()[0], np.zeros(facets.size, bool)
            once[np.unique(facets, return_index=True)[1]] = True
            there &= once.reshape(facets.shape) & self.on_sides(self.exchange.owned()[first - start : last - start])
        cells, local = np.nonzero(there)
        return cells.astype(np.int32), local.astype(np.int32)

    def closure_mask(self, label: str) -> np.ndarray:
        """Plex points in the closure of a boundary's facets [point of the chart] bool, the same on all ranks that hold
        a point, also if the facet is on another rank. Collective. Raises MeshError."""
        start, end = self.dm.getChart()
        points = np.zeros(end - start, bool)
        self.topology.closure(self.dim - 1, self.facet_mask(label), points)
        return self.exchange.any(points)

    def facets_around(self, sides: np.ndarray) -> np.ndarray:
        """Count the sides, of some [cell, facet of the cell] bool of owned cells of all ranks, with each plex point in
        their closure [point of the chart] int32. Collective."""
        start, end = self.dm.getChart()
        counts = np.zeros(end - start, np.int32)
        for part in self.parts:
            of_facets = basix.cell.sub_entity_connectivity(basix.CellType[part.cell])[self.dim - 1]
            for d in range(self.dim):
                points = part.topology.entity[d][: part.num_cells] + self.topology.stratum[d][0]
                for local, closure in enumerate(of_facets):
                    np.add.at(counts, points[sides[part.cells, local]][:, closure[d]], 1)
        return self.exchange.sum(counts)

    def cell_mask(self, label: str, remedy: str = "") -> np.ndarray:
        """Owned cells of a named region [num_cells] bool. Collective. Raises MeshError; remedy: see Labels.resolve."""
        with collectively(self.comm):
            self.labels_table.resolve(label, 0, remedy)
        start = self.topology.stratum[self.dim][0]
        mask = self.labels_table.points(label, 0)
        return mask[self.topology.cells[: self.num_cells] - start]

    def _vertices(self) -> np.ndarray:
        """Coordinates [vertex, dim]; zeros for a mesh that `_geometry` refuses."""
        start, end = self.dm.getDepthStratum(0)
        section, vector = self.dm.getCoordinateSection(), self.dm.getCoordinatesLocal()
        refused = self.dm.getCoordinateDim() != self.dim or c_library.has_only_cell_coordinates(self.dm)
        if refused or not vector.handle or end <= start:
            return np.zeros((max(0, end - start), self.dim))
        return stratum_values(section, np.asarray(vector.getArray(readonly=True)), start, end, self.dim)

    def _geometry(self, shapes: list[Shape]) -> list[Geometry]:
        """Geometry of the cells of each shape. Collective."""
        section, vector = self.dm.getCoordinateSection(), self.dm.getCoordinatesLocal()
        embedding, periods = self.dm.getCoordinateDim(), c_library.periods(self.dm)
        with collectively(self.comm):
            if embedding != self.dim:
                raise MeshError(
                    f"The mesh has cells of dimension {self.dim} in a space of dimension {embedding}; {SURFACE}"
                )
            if c_library.has_only_cell_coordinates(self.dm):
                raise MeshError(
                    "The coordinates of the mesh live on cells, and its periods are not known: give periodic= to "
                    "fe.Mesh.box, from_cells or from_meshio, or set them by DMSetPeriodicity."
                )
            values = np.asarray(vector.getArray(readonly=True)) if vector.handle else np.empty(0)
            degree = local_degree(self.topology, section)
        degree = max(self.comm.allgather(degree))
        with collectively(self.comm):
            require_straight(shapes, degree)
            if len(shapes) > 1 and periods.any():
                raise MeshError("The mesh is periodic and has cells of several shapes; give cells of one shape.")
            blocks = read_blocks(section, values, self.topology.parts[0], degree)
            found = [Geometry(part, blocks, periods) for part in self.topology.parts]
        for other in found[1:]:
            other.nodes = found[0].nodes
        return found

    def _order_cells(self) -> None:
        """Number owned cells along a space-filling curve, so that neighbours in space are neighbours in memory, with
        those that touch other ranks behind the others. Collective."""
        start, end = self.dm.getChart()
        shared = self.exchange.sum(np.ones(end - start, np.int32)) > 1
        first = 0
        for part in self.parts:
            classes, count = cell_classes(part.topology, shared, start), part.num_cells
            corners = part.geometry.cell_nodes[:count, : part.shape.num_vertices]
            order = np.arange(part.topology.num_cells)
            middle = means(part.geometry.nodes, corners)
            low, high = ends(middle)
            order[:count] = by_class(morton_keys(middle, low, high), classes)
            part.cell_classes, part.first = classes[order[:count]], first
            part.topology.reorder(order)
            part.geometry.cell_nodes = taken(part.geometry.cell_nodes, order)
            first += count
        if len(self.parts) > 1:
            self.topology.join()
            self.geometry = Geometry.joined(self.topology, [part.geometry for part in self.parts])
            self.cell_classes = np.concatenate([part.cell_classes for part in self.parts])

    def destroy(self) -> None:
        """Free the DMPlex, when no problem needs it. Collective."""
        vars(self)["dm"].destroy()
