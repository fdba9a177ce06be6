"""Meshes from arrays: cells by their vertices, points, named facets and regions; rectangles and boxes are such lists.

PETSc makes faces and edges of cells of several shapes, of prisms and of pyramids. Others are found by sorts of all
cells' sides. They are those that DMPlexCreateFromCellList makes with its interpolation, point for point, whose search
of a hash table takes several times as long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import permutations, product
from typing import Any

import numpy as np
from petsc4py import PETSc

from ..errors import MeshError, collectively
from ..petsc import c_library
from ..threads import stable_order_of, taken
from ..value_checks import array, plural, reals, shown
from .labels import mark
from .mesh_checks import named, whole_numbers
from .order import sorted_columns
from .plex_points import PlexPoints
from .shapes import CELLS, SHAPES, Shape, shape
from .topology import Topology

# Vertex order of DMPlexCreateFromCellList for a cell of positive volume, from basix' order.
PLEX_ORDER = {
    "triangle": (0, 1, 2),
    "quadrilateral": (0, 1, 3, 2),
    "tetrahedron": (1, 0, 2, 3),
    "hexahedron": (0, 2, 3, 1, 4, 5, 7, 6),
    "prism": (0, 2, 1, 3, 4, 5),
    "pyramid": (0, 2, 3, 1, 4),
}
# Vertices of a cell's sides in PETSc's order, as they go around them: cells of space by their number of vertices.
_FACES = {
    4: ((0, 1, 2), (0, 3, 1), (0, 2, 3), (2, 1, 3)),
    8: ((0, 1, 2, 3), (4, 5, 6, 7), (0, 3, 5, 4), (2, 1, 7, 6), (3, 2, 6, 5), (0, 4, 7, 1)),
}
CLOSE = 1e-9  # of the extent of a mesh: points nearer to its ends are on them
MOST_CELLS = 2**31 // 10  # PETSc counts the points of a mesh, several a cell, in 32 bits
SIDES = (("left", "right"), ("bottom", "top"), ("front", "back"))
_CELL = {(2, True): "triangle", (2, False): "quadrilateral", (3, True): "tetrahedron", (3, False): "hexahedron"}


@dataclass
class CellList:
    """A whole mesh on one rank.

    blocks: shape name → cells [cell, vertex], in basix' order (tensor order for quadrilaterals and hexahedra); cells
    count on from one shape to the next.
    points [point, dim]: coordinates.
    boundaries: name → facets [facet, vertex], in any vertex order, or a list of such arrays of facets with 3 and with 4
    vertices; in a checked list an array, triangles among quadrilaterals with the last vertex twice.
    regions: name → cells [n].
    periods [dim]: lengths after which the mesh repeats itself, or 0; None for one that does not.
    labels: label and value of each name of boundaries and regions, where they are others than the name and 1.
    inside: of second-order cells vertices [n, vertex] of some edges, faces and cells, and the nodes inside [n, dim].
    """

    blocks: dict[str, np.ndarray]
    points: np.ndarray
    boundaries: dict[str, Any] = field(default_factory=dict)
    regions: dict[str, np.ndarray] = field(default_factory=dict)
    periods: np.ndarray | None = None
    labels: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    inside: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def labels_of(self, name: str) -> list[tuple[str, int]]:
        """Labels and values of a boundary or region."""
        return self.labels.get(name, [(name, 1)])

    @property
    def cell(self) -> str | None:
        """Shape of the cells, None of several shapes and of those with facets of two shapes."""
        cell, *others = self.blocks
        return None if others or cell not in CELLS else cell

    @property
    def cells(self) -> np.ndarray:
        """Cells [cell, vertex] of the first shape."""
        return next(iter(self.blocks.values()))

    def joined(self, axes: str) -> CellList:
        """This list, checked, with one point for each two that lie opposite to each other on the ends of some axes,
        whose boundaries go. Raises MeshError."""
        dim = self.points.shape[1]
        if not isinstance(axes, str) or not set(axes) <= set("xyz"[:dim]):
            raise MeshError(f"periodic={axes!r} is given; give names of axes, such as 'x' or '{'xyz'[:dim]}'.")
        if not axes:
            return self
        if self.cell is None:
            raise MeshError(
                f"periodic={axes!r} is given with cells of shapes {', '.join(self.blocks)}; give triangles, "
                "quadrilaterals, tetrahedra or hexahedra alone, or leave it out."
            )
        lower, upper = self.points.min(axis=0), self.points.max(axis=0)
        periods, same, ends = np.zeros(dim), np.arange(len(self.points)), []
        for axis in map("xyz".index, sorted(set(axes))):
            periods[axis] = upper[axis] - lower[axis]
            near = [
                np.flatnonzero(np.abs(self.points[:, axis] - at[axis]) <= CLOSE * periods[axis])
                for at in (lower, upper)
            ]
            ends += near
            others = [np.delete(self.points[side], axis, axis=1) / (upper - lower).max() for side in near]
            order = [side[np.lexsort(np.round(x / CLOSE).T)] for side, x in zip(near, others, strict=True)]
            matches = len(near[0]) == len(near[1])
            apart = np.delete(self.points[order[1]] - self.points[order[0]], axis, axis=1) if matches else np.inf
            if np.abs(apart).max(initial=0.0) > 10 * CLOSE * (upper - lower).max():
                raise MeshError(
                    f"periodic={axes!r} is given, and the {len(near[0])} and {len(near[1])} points on the ends of the "
                    f"{'xyz'[axis]} axis do not lie opposite to each other; give a mesh whose ends match."
                )
            same[order[1]] = order[0]
            same = same[same]
        return self._with_one_point_of(same, periods, ends)

    def _with_one_point_of(self, same: np.ndarray, periods: np.ndarray, ends: list) -> CellList:
        """This list with point same[p] in the place of p, without the boundaries on the ends. Raises MeshError."""
        long = np.ptp(self.points[self.cells], axis=1) > 0.49 * np.where(periods > 0, periods, np.inf)
        _refuse(long.any(axis=1), "Cell {} is as long as half of the period; give three cells or more along it.")
        kept, number = np.unique(same, return_inverse=True)
        on_end = [np.isin(np.arange(len(same)), end) for end in ends]
        boundaries = {}
        for name, facets in self.boundaries.items():
            facets = facets[~np.any([end[facets].all(axis=1) for end in on_end], axis=0)]
            boundaries |= {name: number[facets]} if len(facets) else {}
        blocks = {name: number[cells].astype(PETSc.IntType) for name, cells in self.blocks.items()}
        return CellList(blocks, self.points[kept], boundaries, self.regions, periods)

    def checked(self) -> CellList:
        """This list with cells of PETSc's integers, of one dimension, and without unused points. Raises MeshError."""
        if not self.blocks or not set(self.blocks) <= set(SHAPES):
            raise MeshError(f"Cells of shapes {shown(list(self.blocks))} were given; accepted are {', '.join(SHAPES)}.")
        if len({shape(name).dim for name in self.blocks}) > 1:
            raise MeshError(f"Cells of shapes {', '.join(self.blocks)} were given; give cells of one dimension.")
        points = reals("The array of points", self.points, MeshError)
        blocks = {name: _checked_cells(name, given, points) for name, given in self.blocks.items()}
        used = np.zeros(len(points), bool)
        for cells in blocks.values():
            used[cells.ravel()] = True
        number = np.cumsum(used, dtype=np.int64) - 1
        given = named("boundaries", self.boundaries).items()
        boundaries = {name: number[self._facets(name, facets, used)] for name, facets in given}
        regions = {
            name: whole_numbers(f"Cell region '{name}'", given, below=sum(map(len, blocks.values())))
            for name, given in named("cell regions", self.regions).items()
        }
        blocks = {name: number[cells].astype(PETSc.IntType) for name, cells in blocks.items()}
        inside = [(number[around], x) for around, x in self.inside]
        return CellList(blocks, points[used], boundaries, regions, labels=self.labels, inside=inside)

    def _facets(self, name: str, given, used: np.ndarray) -> np.ndarray:
        """Facets [facet, vertex] of a boundary, all of points that cells have [point]. Raises MeshError."""
        widths = sorted({len(set(facet)) for cell in self.blocks for facet in shape(cell).entities[-2].tolist()})
        several = isinstance(given, list | tuple) and len(given) and np.ndim(given[0]) == 2
        found = []
        for each in given if several else [given]:
            width = np.shape(each)[-1] if np.ndim(each) == 2 and np.shape(each)[-1] in widths else widths[-1]
            facets = whole_numbers(f"Boundary '{name}'", each, width, len(used))
            strays = np.isin(np.arange(len(used)), facets) & ~used
            _refuse(strays, f"Boundary '{name}' names point {{}}, which no cell has.")
            found.append(np.pad(facets, ((0, 0), (0, widths[-1] - width)), mode="edge"))
        return np.concatenate(found)


def _checked_cells(cell: str, given, points: np.ndarray) -> np.ndarray:
    """Cells [cell, vertex] of a shape as numbers of points [point, dim] that belong to them. Raises MeshError."""
    nv, dim = shape(cell).num_vertices, shape(cell).dim
    cells = array("Cells", given, MeshError)
    if cells.ndim != 2 or cells.shape[1] != nv:
        raise MeshError(f"Cells of shape {cells.shape} were given; a {cell} mesh takes an array [cell, {nv}].")
    whole_numbers("The array of cells", cells, nv)
    if points.ndim != 2 or points.shape[1] != dim:
        raise MeshError(f"Points of shape {points.shape} were given; a {cell} mesh takes an array [point, {dim}].")
    if cells.size and (cells.min() < 0 or cells.max() >= len(points)):
        raise MeshError(
            f"The cells name points {cells.min()} to {cells.max()}; the array has {plural(len(points), 'point')}, "
            "counted from 0."
        )
    if not len(cells):
        raise MeshError("The mesh has no cells.")
    _refuse(~np.isfinite(points).all(axis=1), "Point {} has coordinates that are not finite numbers.")
    _refuse((np.diff(np.sort(cells, axis=1), axis=1) == 0).any(axis=1), "Cell {} names the same point twice.")
    return cells


def _refuse(wrong: np.ndarray, message: str) -> None:
    """Raise MeshError with the number of the first row that is wrong."""
    if wrong.any():
        raise MeshError(message.format(int(np.flatnonzero(wrong)[0])))


def points_of(listed: CellList | None, cell: str) -> tuple[PlexPoints, np.ndarray]:
    """The points of a checked list, none without one, and the vertices of each facet [facet, vertex], in any order."""
    s = shape(cell)
    if listed is None:
        cells, points = np.empty((0, s.num_vertices), PETSc.IntType), np.empty((0, s.dim))
    else:
        cells, points = listed.cells.take(PLEX_ORDER[cell], axis=1), listed.points
    found, facets = cell_points(s, cells, points)
    found.periods = listed.periods if listed else None
    return found, facets


def name_parts(points: PlexPoints, facets: np.ndarray, listed: CellList) -> None:
    """Name the boundaries and regions of a list, given the vertices of each facet. Raises MeshError for a facet that
    no cell has."""
    for name, wanted in listed.boundaries.items():
        named = np.zeros(len(listed.points), bool)
        named[wanted] = True
        near = np.flatnonzero(np.logical_and.reduce([named[column] for column in facets.T]))
        found = near[facet_numbers(np.sort(facets[near], axis=1), np.sort(wanted, axis=1), name)]
        points.mark(listed.labels_of(name), points.start[points.shape.dim - 1] + found)
    for name, cells in listed.regions.items():
        points.mark(listed.labels_of(name), cells)


def second_order_nodes(points: PlexPoints, facets: np.ndarray, listed: CellList) -> dict[int, np.ndarray]:
    """Node inside each point of the points of a list, as `second_order.set_nodes` takes them, given the vertices of
    each facet."""
    dim, blocks = points.shape.dim, {0: points.vertices}
    vertices = {dim: listed.cells, dim - 1: facets, 1: points.cones[1] - points.start[0]}
    for around, x in listed.inside:
        d = around.shape[1].bit_length() - 1  # 2, 4 and 8 vertices
        of = facet_numbers(np.sort(vertices[d], axis=1), np.sort(around, axis=1), "inside")
        blocks.setdefault(d, np.empty((len(vertices[d]), dim)))[of] = x
    return blocks


def plex_of(listed: CellList | None, comm) -> PETSc.DMPlex:
    """DMPlex of a checked list that rank 0 has. Collective. Raises MeshError."""
    named = {name: listed.labels_of(name) for name in (*listed.boundaries, *listed.regions)} if listed else {}
    names = comm.bcast((list(listed.blocks), named) if listed else None)
    shapes = [shape(name) for name in names[0]]
    dm = PETSc.DMPlex().create(comm)
    dm.setDimension(shapes[0].dim)
    dm.setCoordinateDim(shapes[0].dim)
    cells = [listed.blocks[s.name] if listed else np.empty((0, s.num_vertices), np.int64) for s in shapes]
    points = listed.points if listed else np.empty((0, shapes[0].dim))
    counts = [len(points), sum(map(len, cells))]
    sizes = [np.full(len(of), s.num_vertices) for s, of in zip(shapes, cells, strict=True)]
    cones = [counts[1] + of[:, PLEX_ORDER[s.name]].ravel() for s, of in zip(shapes, cells, strict=True)]
    cones = np.concatenate(cones)
    c_library.set_points(dm, counts, np.concatenate([*sizes, np.zeros(len(points))]), cones, 0 * cones, points)
    c_library.set_shapes(dm, [*zip(names[0], map(len, cells), strict=True), ("point", len(points))])
    dm.interpolate()
    found: dict[str, np.ndarray] = {}
    with collectively(comm):
        if listed is not None:
            owned = np.ones(dm.getChart()[1], bool)
            topology = Topology(dm, [s for s in shapes if len(listed.blocks[s.name])], owned, np.arange(len(points)))
            first, table = topology.stratum[dm.getDimension() - 1][0], topology.entity_vertices[dm.getDimension() - 1]
            found = {n: first + facet_numbers(*map(_sorted, (table, of)), n) for n, of in listed.boundaries.items()}
            found |= listed.regions
    for name, labels in names[1].items():
        for label, value in labels:
            mark(dm, label, found.get(name, np.empty(0, np.int64)), value)
    return dm


def _sorted(facets: np.ndarray) -> np.ndarray:
    """Facets [facet, vertex] in one order, triangles among quadrilaterals with -1 for the last vertex."""
    if facets.shape[1] == 4:
        facets = np.where((facets[:, 2] == facets[:, 3])[:, None] & (np.arange(4) == 3), -1, facets)
    return np.sort(facets, axis=1)


def facet_numbers(table: np.ndarray, rows: np.ndarray, name: str) -> np.ndarray:
    """Row numbers in `table` of each of `rows`. Raises MeshError."""
    both = np.concatenate([table, rows])
    order = np.lexsort(both.T[::-1])
    same = (both[order][1:] == both[order][:-1]).all(axis=1)
    group = np.empty(len(both), np.int64)
    group[order] = np.concatenate([[0], np.cumsum(~same)]) if len(both) else []
    place = np.full(len(both), -1, np.int64)
    place[group[: len(table)]] = np.arange(len(table))
    found = place[group[len(table) :]]
    if (found < 0).any():
        raise MeshError(
            f"Boundary '{name}' names a facet with points {rows[found < 0][0].tolist()}, which no cell has."
        )
    return found


def cell_points(shape: Shape, cells: np.ndarray, points: np.ndarray) -> tuple[PlexPoints, np.ndarray]:
    """The points of cells [cell, vertex] in PETSc's order with points [point, dim], and the vertices of each facet
    [facet, vertex], in any order.

    They are cells, vertices, faces, then edges, each as the first that has them comes.
    """
    above, sides = cells, []
    if shape.dim == 3:
        sides.append(_sides([cells.take(corner, axis=1) for corner in np.transpose(_FACES[cells.shape[1]])]))
        above = sides[0][2]
    sides.append(_sides([above, np.roll(above, -1, axis=1)]))
    first, cones = len(cells) + len(points), []
    for numbers, _, vertices in sides:
        cones.append(first + numbers)
        first += len(vertices)
    edges = sides[-1][2]
    cones.append(len(cells) + edges)
    orientations = [*(orientation for _, orientation, _ in sides), np.zeros(edges.shape, np.int8)]
    return PlexPoints.in_order(shape, cones, orientations, points), sides[0][2]


def _sides(vertices: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number and orientation [item, side] of sides, given each of their vertices [item, side], and vertices
    [number, vertex] of each as the first item goes along or around it."""
    columns, count, shape = [each.ravel() for each in vertices], len(vertices), vertices[0].shape
    number, first = _distinct(columns)
    kept = [taken(column, first) for column in columns]
    start = sum(np.int8(k) * (taken(kept[k], number) == columns[0]) for k in range(1, count))  # where this item begins
    if count == 2:
        orientation = -start
    else:
        after = taken(np.stack(kept, axis=1).ravel(), number.astype(np.int64) * count + (start + 1) % count)
        orientation = np.where(after == columns[1], start, -1 - (start + 1) % count)
    return number.reshape(shape), orientation.reshape(shape), np.stack(kept, axis=1)


def _distinct(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Number [row] of vertices [vertex, row], in any order, as they first come; the first row [number]."""
    keys = _keys(sorted_columns(columns))
    order = stable_order_of(keys)
    is_new = np.zeros(len(order), bool)
    is_new[:1] = True
    for key in keys:
        key = taken(key, order)
        is_new[1:] |= key[1:] != key[:-1]
    first = order[is_new]  # of the rows of each group, since equal ones keep their order
    leads = np.zeros(len(order), bool)
    leads[first] = True
    of_lead = np.cumsum(leads, dtype=np.int32)
    group = np.cumsum(is_new, dtype=np.int32)
    group -= 1
    number = np.empty(len(order), np.int32)
    number[order] = taken(taken(of_lead, first) - 1, group)
    return number, np.flatnonzero(leads)


def _keys(columns: list[np.ndarray]) -> list[np.ndarray]:
    """Columns [row] of numbers from zero on in as few as hold them side by side in 63 bits, all int64."""
    bits, keys = max(int(column.max(initial=1)) for column in columns).bit_length(), []
    for begin in range(0, len(columns), 63 // bits):
        first, *others = columns[begin : begin + 63 // bits]
        keys.append(first.astype(np.int64))
        for column in others:
            keys[-1] = keys[-1] << bits | column
    return keys


def box_cell(dim: int, simplex: bool) -> str:
    """Cell shape of a box. Raises MeshError unless dim is 2 or 3."""
    if (dim, bool(simplex)) not in _CELL:
        raise MeshError(f"A mesh of dimension {dim} was asked for; 2 and 3 are accepted.")
    return _CELL[dim, bool(simplex)]


def box_cells(faces, simplex: bool, lower, upper) -> CellList:
    """A box of faces[0] × faces[1] (× faces[2]) squares or cubes; simplices split each along its diagonal (Kuhn)."""
    faces = tuple(int(n) for n in faces)
    cell = box_cell(len(faces), simplex)
    lower, upper = (np.broadcast_to(np.asarray(end, float), len(faces)) for end in (lower, upper))
    if min(faces) < 1:
        raise MeshError(f"A box of {faces} cells was asked for; each direction takes 1 or more.")
    if not ((lower < upper) & np.isfinite(lower) & np.isfinite(upper)).all():
        raise MeshError(
            f"A box from {lower.tolist()} to {upper.tolist()} was asked for; give an upper corner above the lower one."
        )
    count = math.prod(faces) * (math.factorial(len(faces)) if simplex else 1)
    if count > MOST_CELLS:
        raise MeshError(
            f"A box of {count:.3g} cells was asked for; one rank makes at most {MOST_CELLS:.3g}: give fewer and refine "
            "them on all ranks by -dm_refine."
        )
    axes = [np.linspace(a, b, n + 1) for a, b, n in zip(lower, upper, faces, strict=True)]
    points = np.stack([x.ravel() for x in np.meshgrid(*axes, indexing="ij")], axis=1)
    strides = np.array([int(np.prod([n + 1 for n in faces[k + 1 :]])) for k in range(len(faces))])
    corner = sum(
        np.arange(n).reshape([-1 if k == m else 1 for m in range(len(faces))]) * strides[k] for k, n in enumerate(faces)
    )
    offsets = (_kuhn(strides) if simplex else _tensor(strides)).astype(np.int32)
    cells = (corner.reshape(-1, 1, 1).astype(np.int32) + offsets).reshape(-1, offsets.shape[1])
    return CellList({cell: cells.astype(PETSc.IntType, copy=False)}, points)


def _tensor(strides) -> np.ndarray:
    """Vertex offsets of a square or cube in basix' order [1, vertex]: the first axis runs fastest."""
    return np.array([list(product((0, 1), repeat=len(strides)))]) @ strides[::-1]


def _kuhn(strides) -> np.ndarray:
    """Vertex offsets of the simplices of a square or cube [simplex, vertex], all of positive volume."""
    simplices = []
    for axes in permutations(range(len(strides))):
        path = np.concatenate([[0], np.cumsum(strides[list(axes)])])
        odd = sum(a > b for i, a in enumerate(axes) for b in axes[i + 1 :]) % 2
        if odd:
            path[[1, 2]] = path[[2, 1]]
        simplices.append(path)
    return np.array(simplices)


def side_facets(facets: np.ndarray, points: np.ndarray, lower, upper, periods=None) -> dict[str, np.ndarray]:
    """Facets on each side of a box: name → facet numbers, and all of them as "boundary".

    facets [facet, vertex]: numbers of points [point, dim].   periods [dim]: not 0 where there are no sides.
    """
    sides, dim = {}, points.shape[1]
    lower, upper = np.broadcast_to(np.asarray(lower, float), dim), np.broadcast_to(np.asarray(upper, float), dim)
    near = np.concatenate([np.abs(points - end) <= 1e-12 * (upper - lower) for end in (lower, upper)], axis=1)
    near &= np.tile(periods == 0, 2) if periods is not None else True
    sides_of = np.packbits(near, axis=1, bitorder="little")[:, 0]  # a bit for each side that a point lies on
    on = np.bitwise_and.reduce([sides_of[column] for column in facets.T])
    for axis, (low, high) in enumerate(SIDES[:dim]):
        if periods is not None and periods[axis]:
            continue
        sides[low], sides[high] = (np.flatnonzero(on >> bit & 1) for bit in (axis, dim + axis))
    sides["boundary"] = np.flatnonzero(on)
    return sides
