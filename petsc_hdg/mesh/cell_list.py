"""Meshes from arrays: cells by their vertices, points, named facets and regions; rectangles and boxes are such lists.

Faces and edges are found by sorts of all cells' sides. They are those that DMPlexCreateFromCellList makes with its
interpolation, point for point, whose search of a hash table takes several times as long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import permutations, product

import numpy as np
from petsc4py import PETSc

from ..errors import MeshError
from ..threads import stable_order_of, taken
from ..value_checks import array, plural, reals
from .mesh_checks import named, whole_numbers
from .order import sorted_columns
from .plex_points import PlexPoints
from .shapes import Shape, shape

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

    cell: shape name.   cells [cell, vertex]: in basix' order (tensor order for quadrilaterals and hexahedra).
    points [point, dim]: coordinates.
    boundaries: name → facets [facet, vertex], in any vertex order.   regions: name → cells [n].
    periods [dim]: lengths after which the mesh repeats itself, or 0; None for one that does not.
    """

    cell: str
    cells: np.ndarray
    points: np.ndarray
    boundaries: dict[str, np.ndarray] = field(default_factory=dict)
    regions: dict[str, np.ndarray] = field(default_factory=dict)
    periods: np.ndarray | None = None

    def joined(self, axes: str) -> CellList:
        """This list, checked, with one point for each two that lie opposite to each other on the ends of some axes,
        whose boundaries go. Raises MeshError."""
        dim = self.points.shape[1]
        if not isinstance(axes, str) or not set(axes) <= set("xyz"[:dim]):
            raise MeshError(f"periodic={axes!r} is given; give names of axes, such as 'x' or '{'xyz'[:dim]}'.")
        if not axes:
            return self
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
        cells = number[self.cells].astype(PETSc.IntType)
        return CellList(self.cell, cells, self.points[kept], boundaries, self.regions, periods)

    def checked(self) -> CellList:
        """This list with int32 cells and without unused points. Raises MeshError."""
        cells, points = self.checked_cells()
        used = np.zeros(len(points), bool)
        used[cells.ravel()] = True
        number = np.cumsum(used, dtype=np.int64) - 1
        boundaries = {name: number[facets] for name, facets in self._boundaries(used).items()}
        regions = {
            name: whole_numbers(f"Cell region '{name}'", given, below=len(cells))
            for name, given in named("cell regions", self.regions).items()
        }
        return CellList(self.cell, number[cells].astype(PETSc.IntType), points[used], boundaries, regions)

    def checked_cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Its cells and points as arrays of numbers that belong together. Raises MeshError."""
        nv, dim = shape(self.cell).num_vertices, shape(self.cell).dim
        cells, points = array("Cells", self.cells, MeshError), reals("The array of points", self.points, MeshError)
        if cells.ndim != 2 or cells.shape[1] != nv:
            raise MeshError(f"Cells of shape {cells.shape} were given; a {self.cell} mesh takes an array [cell, {nv}].")
        whole_numbers("The array of cells", cells, nv)
        if points.ndim != 2 or points.shape[1] != dim:
            raise MeshError(
                f"Points of shape {points.shape} were given; a {self.cell} mesh takes an array [point, {dim}]."
            )
        if cells.size and (cells.min() < 0 or cells.max() >= len(points)):
            raise MeshError(
                f"The cells name points {cells.min()} to {cells.max()}; the array has {plural(len(points), 'point')}, "
                "counted from 0."
            )
        if not len(cells):
            raise MeshError("The mesh has no cells.")
        _refuse(~np.isfinite(points).all(axis=1), "Point {} has coordinates that are not finite numbers.")
        _refuse((np.diff(np.sort(cells, axis=1), axis=1) == 0).any(axis=1), "Cell {} names the same point twice.")
        return cells, points

    def _boundaries(self, used: np.ndarray) -> dict[str, np.ndarray]:
        """Facets [facet, vertex] of each boundary, all of points that cells have [point]. Raises MeshError."""
        width, found = shape(self.cell).entities[-2].shape[1], {}
        for name, given in named("boundaries", self.boundaries).items():
            facets = found[name] = whole_numbers(f"Boundary '{name}'", given, width, len(used))
            wrong = f"Boundary '{name}' names point {{}}, which no cell has."
            _refuse(np.isin(np.arange(len(used)), facets) & ~used, wrong)
        return found


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
        points.mark(name, points.start[points.shape.dim - 1] + found)
    for name, cells in listed.regions.items():
        points.mark(name, cells)


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
    lower, upper = (
        np.broadcast_to(np.asarray(lower, float), len(faces)),
        np.broadcast_to(np.asarray(upper, float), len(faces)),
    )
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
    return CellList(cell, cells, points)


def _tensor(strides) -> np.ndarray:
    """Vertex offsets of a square or cube in basix' order [1, vertex]: the first axis runs fastest."""
    return np.array(
        [
            [
                sum(s for s, bit in zip(strides, bits[::-1], strict=True) if bit)
                for bits in product((0, 1), repeat=len(strides))
            ]
        ]
    )


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
