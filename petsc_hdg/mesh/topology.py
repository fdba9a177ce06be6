"""Bulk topology: which vertices, edges and faces each cell has, in an order that all ranks agree on.

Only incidence is read from PETSc, never its cone orientations. Reference order of a cell's vertices:
simplices by ascending place along a direction in space, so that those that are copies of each other have their vertices
in the same order, however the mesh was made; tensor cells start at the vertex of smallest global number, whose
neighbours follow in ascending order as v1, v2 (, v4), and adjacency fixes the others (basix' tensor order). So cells
that share an entity agree on it up to the permutation that `vertex_rank` tells; a cell's orientation may be negative.
Prisms start with the triangle of the smallest place, in ascending order; pyramids with their base, as quadrilaterals.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property

import numpy as np

from ..errors import MeshError
from ..petsc import c_library
from ..threads import in_threads, stable_order_of, taken
from .order import sorted_columns
from .shapes import CELLS, Shape

DIRECTION = (1.0, 0.6180339887498949, 0.4396660112501051)  # in space, along which vertices are ordered
CHUNK = 1 << 14  # cells worked on at a time: temporaries stay in the cache


class Topology:
    """Topology of one rank's part of a mesh; local numbers are int32 and count from 0 within each dimension.

    parts: the topologies of its cells of each shape, itself where there is one. Of several, the cells are those of one
    part after another, the owned ones of all parts first; `entity` has vertices and facets alone, and cells with fewer
    of them have the last vertex again, and the facet `num_entities(dim - 1)`, which there is not.

    cells [cell]: plex points, owned cells first, then overlap cells.   num_owned: number of owned cells.
    cell_vertices [cell, vertex].   entity[d] [cell, entity]: for d = 0 … dim, basix sub-entity order.
    entity_vertices[d] [entity, vertex]: for d = 0 … dim - 1, in an order made as for cells, the same on every rank.
    facet_cells [facet, 2]: cells by ascending number, -1 if there is none on this rank.
    vertex_global [vertex] int64: the same number on all ranks that hold the vertex.
    vertex_rank [vertex] int32: place among this rank's vertices in an order that all ranks agree on.
    stratum[d]: (start, end) of the plex points of dimension d.
    """

    def __init__(self, dm, shapes: Sequence[Shape], owned: np.ndarray, vertex_global: np.ndarray, place=None):
        """`owned` [point] bool: points of this rank; vertex_global as above; place [vertex]: see `places`, None:
        vertices are ordered by number. Not collective. Raises MeshError.
        """
        self.shape = shapes[0] if len(shapes) == 1 else None
        self.dim = shapes[0].dim
        self.stratum = tuple(_stratum(dm, d) for d in range(self.dim + 1))
        self.vertex_global = vertex_global
        self._cones = {d: _local_cones(dm, shapes, self.stratum, d) for d in range(1, self.dim + 1)}
        place = np.zeros(len(vertex_global)) if place is None else place
        in_order = stable_order_of([place, vertex_global]).astype(np.int32)
        rank = self.vertex_rank = np.empty_like(in_order)
        rank[in_order] = np.arange(len(rank), dtype=np.int32)
        places = {1: np.stack(sorted_columns(rank[self._cones[1].T]), axis=1)}  # entity vertices in the order
        if self.dim == 3:
            places[2] = _face_vertices(places[1], self._cones[2])
        self.entity_vertices = {d: in_order[r] if len(r) else r for d, r in places.items()}
        self.entity_vertices[0] = np.arange(len(rank), dtype=np.int32)[:, None]
        self.parts = tuple(copy(self) for _ in shapes) if len(shapes) > 1 else (self,)
        is_owned = owned[slice(*self.stratum[self.dim])]
        for part, shape in zip(self.parts, shapes, strict=True):
            part.shape, part.parts = shape, (part,)
            chosen = np.ones(len(is_owned), bool) if len(shapes) == 1 else c_library.is_of_shape(dm, shape.name)
            order = np.concatenate([np.flatnonzero(is_owned & chosen), np.flatnonzero(~is_owned & chosen)])
            part.num_owned = int(np.count_nonzero(is_owned & chosen))
            part._build(order, in_order, places)

    @property
    def num_cells(self) -> int:
        """Number of cells on this rank, overlap cells included."""
        return len(self.cells)

    def num_entities(self, d: int) -> int:
        """Number of points of dimension d on this rank."""
        start, end = self.stratum[d]
        return end - start

    def reorder(self, order: np.ndarray) -> None:
        """Renumber this rank's cells: new cell k is the old cell order[k]; owned ones must stay in front."""
        self.cells, self.cell_vertices = taken(self.cells, order), taken(self.cell_vertices, order)
        inner = (taken(self.entity[d], order) for d in range(1, self.dim))
        self.entity = (self.cell_vertices, *inner, self.entity[self.dim])

    def join(self) -> None:
        """Take the cells of the parts, if there are several."""
        if self.parts == (self,):
            return
        self.num_owned = sum(part.num_owned for part in self.parts)
        missing = self.num_entities(self.dim - 1)
        self.cells = self.joined([part.cells for part in self.parts])
        self.cell_vertices = self.joined([part.cell_vertices for part in self.parts])
        facets = self.joined([part.entity[self.dim - 1] for part in self.parts], missing)
        self.entity = {0: self.cell_vertices, self.dim - 1: facets}

    def joined(self, of_parts: list[np.ndarray], missing: int | None = None) -> np.ndarray:
        """Values [cell, …] of the cells of all parts; shorter rows end with `missing`, or the last value again."""
        most = max(values.shape[1:] for values in of_parts)
        how = {"mode": "edge"} if missing is None else {"constant_values": missing}
        wide = [
            np.pad(v, ((0, 0), *((0, m - n) for m, n in zip(most, v.shape[1:], strict=True))), **how) for v in of_parts
        ]
        owned = [values[: part.num_owned] for part, values in zip(self.parts, wide, strict=True)]
        return np.concatenate([*owned, *(values[len(mine) :] for mine, values in zip(owned, wide, strict=True))])

    def _build(self, order: np.ndarray, in_order: np.ndarray, places: dict[int, np.ndarray]) -> None:
        """Take the cells with numbers `order` [cell] of the stratum, which have the topology's shape; in_order
        [vertex], and the vertices of edges and faces [entity, vertex] by their place there."""
        shape, dim, n = self.shape, self.dim, len(order)
        self.cells = (order + self.stratum[dim][0]).astype(np.int32)
        vertices = np.empty((n, shape.num_vertices), np.int32)
        entity = {d: np.empty((n, len(shape.entities[d])), np.int32) for d in range(1, dim)}

        def fill(begin: int) -> None:
            part = slice(begin, begin + CHUNK)
            facets = self._cones[dim][order[part], : shape.num_facets]
            members = {dim - 1: facets}
            if dim == 3:
                members[1] = _distinct(self._cones[2][facets].reshape(len(facets), -1), len(shape.entities[1]))
            vertices[part] = _order_vertices(shape, {d: places[d][m] for d, m in members.items()})
            for d, of_cell in members.items():
                slot = _slots(vertices[part], places[d][of_cell], shape.slots[d])
                np.put_along_axis(entity[d][part], slot, of_cell, axis=1)

        in_threads(fill, range(0, n, CHUNK))
        self.cell_vertices = in_order[vertices] if n else vertices
        self.entity = (self.cell_vertices, *(entity[d] for d in range(1, dim)), np.arange(n, dtype=np.int32)[:, None])

    @cached_property
    def facet_cells(self) -> np.ndarray:
        return cells_of_facets(self.entity[self.dim - 1], self.num_entities(self.dim - 1))

    @cached_property
    def facet_local(self) -> np.ndarray:
        """Number of each facet in the cells `facet_cells` [facet, 2] int8, -1 if there is no such cell."""
        facets = self.entity[self.dim - 1]
        count = facets.shape[1]
        flat = facets.ravel()
        local = np.tile(np.arange(count, dtype=np.int8), len(facets))
        result = np.full((self.num_entities(self.dim - 1), 2), -1, np.int8)
        result[flat[::-1], 0] = local[::-1]
        result[flat, 1] = local
        result[self.facet_cells < 0] = -1
        return result

    def closure(self, d: int, mask: np.ndarray, points: np.ndarray) -> None:
        """Set in `points` [point of the chart] bool the closure of the entities of dimension d in `mask` [entity]."""
        start, end = self.stratum[d]
        points[start:end] |= mask
        if d == 0:
            return
        below = np.zeros(self.num_entities(d - 1), bool)
        below[self._cones[d][mask].ravel()] = True
        self.closure(d - 1, below, points)


def _stratum(dm, d: int) -> tuple[int, int]:
    start, end = dm.getDepthStratum(d)
    return (start, end) if end > start else (0, 0)


def cells_of_facets(facets: np.ndarray, count: int) -> np.ndarray:
    """The first and the last cell of each of `count` facets [facet, 2] int32, -1 where there is none.

    facets [cell, facet]: number of each facet of each cell, `count` for none.
    """
    cells = np.repeat(np.arange(len(facets), dtype=np.int32), facets.shape[1])
    flat = facets.ravel()
    result = np.full((count + 1, 2), -1, np.int32)
    result[flat[::-1], 0] = cells[::-1]  # the last write wins: the smallest cell
    result[flat, 1] = cells
    result[result[:, 0] == result[:, 1], 1] = -1
    return result[:-1]


def places(nodes: np.ndarray) -> np.ndarray:
    """Place [vertex] of points [vertex, dim] along a direction that edges of no usual mesh are normal to; the same
    bits on all ranks.
    """
    found = np.zeros(len(nodes))
    for column, slope in zip(nodes.T, DIRECTION, strict=False):
        found += slope * column
    return found


def global_vertices(dm) -> np.ndarray:
    """Global vertex numbers [vertex] int64; PETSc marks those of other ranks as -(number + 1). Collective."""
    numbers = dm.getVertexNumbering().getIndices().astype(np.int64)
    return np.where(numbers < 0, -numbers - 1, numbers)


def _corners(edges: np.ndarray, faces: np.ndarray) -> list[np.ndarray]:
    """Three columns [face] of the vertices of triangles `faces` [face, edge], in any order, from edges [edge, 2]."""
    (first, second), (begin, end) = (taken(edges, faces[:, k]).T for k in (0, 1))
    return [first, second, np.where((begin == first) | (begin == second), end, begin)]


def _local_cones(dm, shapes: Sequence[Shape], stratum, d: int) -> np.ndarray:
    """Cones of all points of dimension d [point, cone], numbered within their stratum, int32; see `mixed_cones`."""
    most, is_even = max(shape.cone_size(d) for shape in shapes), len(shapes) == 1 and shapes[0].name in CELLS
    cones = (c_library.cones if is_even else c_library.mixed_cones)(dm, *stratum[d], most)
    return (cones - stratum[d - 1][0]).astype(np.int32)


def _unique_rows(rows: np.ndarray, times: int) -> np.ndarray:
    """Distinct numbers of each row, ascending; each occurs `times` times in its row."""
    return np.sort(rows, axis=1)[:, ::times]


def _distinct(rows: np.ndarray, count: int) -> np.ndarray:
    """Distinct numbers [row, count] of each row, ascending. Raises MeshError where they are not as many.

    Of rows of 2 `count` numbers each occurs twice.
    """
    if rows.shape[1] == 2 * count:
        return _unique_rows(rows, 2)
    rows = np.sort(rows, axis=1)
    is_new = np.insert(rows[:, 1:] != rows[:, :-1], 0, True, axis=1)
    return rows[_once(is_new, count)].reshape(-1, count)


def _face_vertices(edges: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Vertices [face, vertex] in reference order of faces [face, edge] from those of the edges [edge, 2], of triangles
    among quadrilaterals the last one twice."""
    if faces.shape[1] == 3:
        return np.stack(sorted_columns(_corners(edges, faces)), axis=1)
    found, is_triangle = np.empty((len(faces), 4), np.int32), faces[:, 2] == faces[:, 3]
    found[~is_triangle] = _order_quadrilateral(edges[faces[~is_triangle]])
    found[is_triangle] = _face_vertices(edges, faces[is_triangle, :3])[:, [0, 1, 2, 2]]
    return found


def _order_vertices(shape: Shape, members: dict[int, np.ndarray]) -> np.ndarray:
    """Vertices of cells in reference order [cell, vertex], from members[d] [cell, entity, vertex] of sub-entities."""
    if shape.is_simplex:
        facets = members[shape.dim - 1][:, :, : shape.dim]
        return _unique_rows(facets.reshape(len(facets), -1), shape.dim)
    if shape.dim == 2:
        return _order_quadrilateral(members[1])
    if shape.name == "hexahedron":
        return _order_hexahedron(members[1], members[2])
    is_triangle = members[2][:, :, 2] == members[2][:, :, 3]
    return (_order_prism if shape.name == "prism" else _order_pyramid)(*members.values(), is_triangle)


def _neighbours(edges: np.ndarray, vertex: np.ndarray, count: int) -> np.ndarray:
    """The `count` vertices joined to `vertex` [cell] by the edges [cell, edge, 2], ascending [cell, count]."""
    ends = edges[_once(_holds(_columns(edges), vertex), count)].reshape(-1, count, 2)
    return np.sort(ends[:, :, 0] + (ends[:, :, 1] - vertex[:, None]), axis=1)


def _once(held: np.ndarray, count: int) -> np.ndarray:
    """`held` [cell, entity], which has `count` entities of each cell. Raises MeshError if it has not."""
    if (np.count_nonzero(held, axis=1) != count).any():
        raise _collapsed()
    return held


def _collapsed() -> MeshError:
    return MeshError(
        "A cell of the mesh has two corners in one vertex, or a facet that is not its own; repair the mesh."
    )


def _order_quadrilateral(edges: np.ndarray) -> np.ndarray:
    flat = edges.reshape(len(edges), 8)
    first = flat.min(axis=1, initial=np.iinfo(np.int32).max)
    near = _neighbours(edges, first, 2)
    total = flat.sum(axis=1, dtype=np.int64) // 2
    last = total - first - near.sum(axis=1, dtype=np.int64)
    return np.stack([first, near[:, 0], near[:, 1], last], axis=1).astype(np.int32)


def _order_hexahedron(edges: np.ndarray, faces: np.ndarray) -> np.ndarray:
    first = edges.reshape(len(edges), 24).min(axis=1, initial=np.iinfo(np.int32).max)
    v1, v2, v4 = _neighbours(edges, first, 3).T
    columns = _columns(faces)
    face_sum = columns.sum(axis=0, dtype=np.int64)
    with_first = _holds(columns, first)

    def opposite(a, b):
        """The fourth vertex of the face that holds the first vertex, a and b."""
        return face_sum[_once(with_first & _holds(columns, a) & _holds(columns, b), 1)] - first - a - b

    v3, v5, v6 = opposite(v1, v2), opposite(v1, v4), opposite(v2, v4)
    total = face_sum.sum(axis=1) // 3
    v7 = total - (first.astype(np.int64) + v1 + v2 + v3 + v4 + v5 + v6)
    return np.stack([first, v1, v2, v3, v4, v5, v6, v7], axis=1).astype(np.int32)


def _order_prism(faces: np.ndarray, edges: np.ndarray, is_triangle: np.ndarray) -> np.ndarray:
    ends = faces[_once(is_triangle, 2), :3].reshape(-1, 2, 3)
    first = ends[np.arange(len(ends)), ends[:, :, 0].argmin(axis=1)]
    others = first.sum(axis=1)[:, None] - first
    above = [_neighbours(edges, first[:, k], 3).sum(axis=1) - others[:, k] for k in range(3)]
    return np.concatenate([first, np.stack(above, axis=1)], axis=1).astype(np.int32)


def _order_pyramid(faces: np.ndarray, edges: np.ndarray, is_triangle: np.ndarray) -> np.ndarray:
    base = faces[_once(~is_triangle, 1)]
    total = np.where(is_triangle, faces[:, :, :3].sum(axis=2), 0).sum(axis=1)
    return np.concatenate([base, (total - 2 * base.sum(axis=1))[:, None] // 4], axis=1).astype(np.int32)


def _slots(vertices: np.ndarray, members: np.ndarray, table: np.ndarray) -> np.ndarray:
    """basix numbers [cell, entity] of sub-entities with vertices `members` [cell, entity, vertex] in `vertices`.

    Raises MeshError for a cell whose sub-entities are not those of its shape.
    """
    code, columns = np.zeros(members.shape[:2], np.uint8), _columns(members)
    for k in range(vertices.shape[1]):
        code |= _holds(columns, vertices[:, k]).view(np.uint8) << np.uint8(k)
    slot = table[code].astype(np.int64)
    if ((1 << (slot & 63)).sum(axis=1) != (1 << members.shape[1]) - 1).any():  # each of them once
        raise _collapsed()
    return slot


def _columns(members: np.ndarray) -> np.ndarray:
    """[cell, entity, vertex] as [vertex, cell, entity]: numpy works along a short last axis many times slower."""
    return np.ascontiguousarray(np.moveaxis(members, 2, 0))


def _holds(columns: np.ndarray, vertex: np.ndarray) -> np.ndarray:
    """True for sub-entities, by `columns` [vertex, cell, entity], that hold `vertex` [cell]: [cell, entity] bool."""
    found = columns[0] == vertex[:, None]
    for column in columns[1:]:
        found |= column == vertex[:, None]
    return found
