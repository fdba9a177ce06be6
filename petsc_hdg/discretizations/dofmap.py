"""Numbering of continuous Lagrange degrees of freedom: cell → local section → this rank's part of a PETSc vector.

Auxiliary fields are rows of data per cell: one row where constant in the cell, one for each node where nodal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import basix
import numpy as np
from petsc4py import PETSc

from ..errors import PhysicsError
from ..reference import ReferenceElement, cell_dim, entity_shapes
from ..threads import in_threads, taken
from ..value_checks import shown

CHUNK = 1 << 14  # cells numbered at a time: temporaries stay in the cache
ALL = slice(None)


@dataclass(frozen=True)
class FieldSpace:
    """One field: its element, components, and where it stands among all components and cell degrees of freedom."""

    name: str
    element: ReferenceElement
    components: int
    first_component: int
    first_dof: int
    first_basis: int

    @property
    def num_dofs(self) -> int:
        """Degrees of freedom of a cell: basis functions times components, component fastest."""
        return self.element.num_basis * self.components


def field_spaces(cell: str, fields, degree: int) -> tuple[FieldSpace, ...]:
    """Spaces of the physics' fields on a cell shape; a field of degree_offset m has degree `degree + m`."""
    spaces, component, dof, basis = [], 0, 0, 0
    for f in fields:
        element = ReferenceElement(cell, degree + f.degree_offset)
        space = FieldSpace(f.name, element, f.components, component, dof, basis)
        spaces.append(space)
        component, dof, basis = component + f.components, dof + space.num_dofs, basis + element.num_basis
    return tuple(spaces)


@dataclass(frozen=True)
class DofMap:
    """Degrees of freedom of a cell and their places.

    section      PETSc section with constrained degrees of freedom flagged
    cell_dofs    [cell, dof] numbers in the local section (PETSc's L-vector)
    compact      [local dof] index in this rank's part of the PETSc vector (< num_owned); then ghosts; then constrained
    num_owned, num_ghosts, num_constrained
    ghost_rank, ghost_index  [ghost] owner of each ghost and its index there
    constrained  [constrained] local dof numbers
    global_numbers [num_owned + num_ghosts + num_constrained] PETSc's number of a compact one, -1 if constrained
    """

    cell_dofs: np.ndarray
    compact: np.ndarray
    num_owned: int
    num_ghosts: int
    num_constrained: int
    ghost_rank: np.ndarray
    ghost_index: np.ndarray
    constrained: np.ndarray
    global_numbers: np.ndarray

    @cached_property
    def cell_numbers(self) -> np.ndarray:
        """Compact numbers [cell, dof] of each cell's degrees of freedom."""
        return taken(self.compact, self.cell_dofs)

    @property
    def num_tail(self) -> int:
        """Ghost and constrained values, which stand behind the owned ones."""
        return self.num_ghosts + self.num_constrained


def build_dofmap(mesh, spaces, constrained: np.ndarray) -> DofMap:
    """The numbering of `build_dofmaps` on a mesh of one shape. Collective."""
    return build_dofmaps(mesh, (spaces,), constrained)[0]


def build_dofmaps(mesh, spaces_of_parts, constrained: np.ndarray) -> list[DofMap]:
    """Number the degrees of freedom of spaces on `mesh` as the global section of `create_section` does: a DofMap for
    each of its parts, which have all but `cell_dofs` in common. Collective.

    spaces_of_parts: of each part of the mesh its spaces, of the same fields and degrees.
    constrained [point, component] bool: which components are essential at which plex point, the same on all ranks.
    """
    nodes, offsets, field_offsets, points, counts = point_offsets(mesh, spaces_of_parts)
    free = _free(mesh, spaces_of_parts[0], constrained, nodes, offsets, field_offsets, int(counts.sum()))
    if mesh.comm.size == 1:
        owned, ghosts, ghost_rank, ghost_index = free, *(np.zeros(0, np.int64),) * 3
    else:
        owned, ghosts, ghost_rank, ghost_index = _ownership(mesh, free, offsets, points, counts)
    num_owned = int(np.count_nonzero(owned))
    compact = np.cumsum(owned, dtype=np.int32)
    compact -= 1
    compact[~owned] = -1
    compact[ghosts] = num_owned + np.arange(len(ghosts), dtype=np.int32)
    whole = _completed(mesh, compact, ghost_rank, ghost_index, num_owned)
    parts = zip(mesh.parts, spaces_of_parts, strict=True)
    return [replace(whole, cell_dofs=_cell_dofs(mesh, part, own, offsets, field_offsets)) for part, own in parts]


def _nodes_of_kinds(mesh, spaces_of_parts) -> np.ndarray:
    """Nodes [field, kind] of each field on a point of each of the kinds of `mesh.kinds`."""
    nodes = np.zeros((len(spaces_of_parts[0]), len(mesh.kinds)), np.int32)
    for part, spaces in zip(mesh.parts, spaces_of_parts, strict=True):
        for shapes, *of_fields in zip(entity_shapes(part.cell), *(s.element.entity_dofs for s in spaces), strict=True):
            for number, shape in enumerate(shapes):
                nodes[:, mesh.kinds.index(shape)] = [len(entities[number]) for entities in of_fields]
    return nodes


def _order(mesh, nodes: np.ndarray) -> np.ndarray:
    """Plex points [point] in the order in which their degrees of freedom are stored; nodes [field, kind]."""
    dimensions = {cell_dim(kind) for kind, count in zip(mesh.kinds, nodes.sum(axis=0), strict=True) if count}
    return mesh.point_order(tuple(sorted(dimensions)))


def create_section(mesh, spaces, constrained, dm) -> PETSc.Section:
    """The section of the numbering of `build_dofmap`, for a clone of the mesh's DM. Collective."""
    dm.setNumFields(len(spaces))
    nodes = _nodes_of_kinds(mesh, (spaces,))
    counts = (nodes * [[s.components] for s in spaces]).ravel().tolist()
    fields, components, points = [], [], []
    for k, space in enumerate(spaces):
        mask = constrained[:, space.first_component : space.first_component + space.components]
        mask = mask & (nodes[k, mesh.point_kinds] > 0)[:, None]
        touched = np.flatnonzero(mask.any(axis=1))
        patterns, which = np.unique(mask[touched], axis=0, return_inverse=True)
        for row, pattern in enumerate(patterns):
            fields.append(k)
            components.append(PETSc.IS().createGeneral(np.flatnonzero(pattern).astype(np.int32), comm=PETSc.COMM_SELF))
            there = touched[which.ravel() == row].astype(np.int32)
            points.append(PETSc.IS().createGeneral(there, comm=PETSc.COMM_SELF))
    storage = PETSc.IS().createGeneral(_order(mesh, nodes), comm=PETSc.COMM_SELF)
    section = dm.createSection(
        [s.components for s in spaces], counts, fields or None, components or None, points or None, storage
    )
    for k, space in enumerate(spaces):
        section.setFieldName(k, space.name)
    return section


def point_offsets(mesh, spaces_of_parts):
    """Nodes [field, kind]; first local dof of each point of the chart, what each field adds to it [field, kind]; the
    points that have any in their order, and their numbers of dofs. PETSc lays the fields of a point in turn.
    """
    nodes = _nodes_of_kinds(mesh, spaces_of_parts)
    per_field = nodes * np.array([[s.components] for s in spaces_of_parts[0]], np.int32)
    counts = per_field.sum(axis=0, dtype=np.int32)[mesh.point_kinds]
    order = _order(mesh, nodes)
    order = order[counts[order] > 0]
    counts = counts[order]
    offsets = np.zeros(mesh.dm.getChart()[1], dtype=np.int32)
    offsets[order] = np.cumsum(counts, dtype=np.int32) - counts
    return nodes, offsets, np.cumsum(per_field, axis=0, dtype=np.int32) - per_field, order, counts


def _cell_dofs(mesh, part, spaces, offsets, field_offsets) -> np.ndarray:
    """Local dof numbers [cell, dof] int32 of all fields in the cells of a part of a mesh."""
    found = np.empty((part.num_cells, sum(s.num_dofs for s in spaces)), np.int32)

    def fill(begin: int) -> None:
        cells = slice(begin, min(begin + CHUNK, part.num_cells))
        for space, field_offset in zip(spaces, field_offsets, strict=True):
            out = found[cells, space.first_dof : space.first_dof + space.num_dofs]
            _fill_field(part, space, cells, offsets, dict(zip(mesh.kinds, field_offset, strict=True)), out)

    in_threads(fill, range(0, part.num_cells, CHUNK))
    return found


def _fill_field(mesh, space, cells: slice, offsets, field_offset: dict[str, int], out) -> None:
    """Local dof numbers [cell, basis * component] of one field in some cells; field_offset: by shape of a point."""
    shapes = entity_shapes(mesh.cell)
    for dimension, entities in enumerate(space.element.entity_dofs):
        if not any(entities):
            continue
        points = entity_points(mesh, dimension, cells)
        for number, basis in enumerate(entities):
            if not basis:
                continue
            order = _node_order(mesh, dimension, number, len(basis), cells)
            start = offsets[points[:, number]] + field_offset[shapes[dimension][number]]
            nodes = start[:, None] + order * space.components
            for c in range(space.components):
                out[:, np.asarray(basis) * space.components + c] = nodes + c


def entity_points(mesh, dimension, cells=slice(None)) -> np.ndarray:
    """Plex points [cell, sub-entity] of the sub-entities of one dimension, of all owned cells or a range of them."""
    topology, first = mesh.topology, mesh.topology.stratum[dimension][0]
    if dimension == 0:
        return topology.cell_vertices[: mesh.num_cells][cells] + first
    if dimension == mesh.dim:
        return topology.cells[: mesh.num_cells, None][cells]
    return topology.entity[dimension][: mesh.num_cells][cells] + first


def _node_order(mesh, dimension, number, count, cells: slice) -> np.ndarray:
    """Place [cell, node] on the entity of the nodes the reference element lists there; all cells around it agree."""
    identity = np.broadcast_to(np.arange(count, dtype=np.int32), (cells.stop - cells.start, count))
    if dimension in (0, mesh.dim) or count == 1:
        return identity
    corners = basix.topology(basix.CellType[mesh.cell])[dimension][number]
    ids = mesh.topology.vertex_rank[mesh.topology.cell_vertices[cells][:, corners]]
    if dimension == 1:
        return np.where((ids[:, 0] > ids[:, 1])[:, None], identity[:, ::-1], identity)
    if len(corners) == 3:  # of prisms and pyramids it has one node
        return identity  # vertices of simplices ascend in the order of all, so faces agree as they are
    return _quadrilateral_order(ids, round(count**0.5))


def _quadrilateral_order(ids, side) -> np.ndarray:
    """Place [cell, side * side] on a quadrilateral face of the nodes i + side j, in the frame at the corner of smallest
    global number whose first axis points to the smaller neighbour. ids [cell, 4] in basix's tensor order."""
    j, i = np.divmod(np.arange(side * side), side)
    origin = np.argmin(ids, axis=1)
    rows = np.arange(len(ids))
    u = np.where((origin & 1 > 0)[:, None], side - 1 - i, i)
    v = np.where((origin & 2 > 0)[:, None], side - 1 - j, j)
    first = ids[rows, origin ^ 1] < ids[rows, origin ^ 2]
    return np.where(first[:, None], u + side * v, v + side * u)


def _free(mesh, spaces, constrained, nodes, offsets, field_offsets, num_local) -> np.ndarray:
    """Local dofs [dof] bool that are not constrained; nodes [field, kind]."""
    free = np.ones(num_local, bool)
    for space, of_kinds, field_offset in zip(spaces, nodes, field_offsets, strict=True):
        for c in range(space.components):
            points = np.flatnonzero(constrained[:, space.first_component + c])
            kinds = mesh.point_kinds[points]
            of_point = of_kinds[kinds]
            first = offsets[points] + field_offset[kinds] + c
            place = np.arange(of_point.sum()) - np.repeat(np.cumsum(of_point) - of_point, of_point)
            free[np.repeat(first, of_point) + place * space.components] = False
    return free


def _ownership(mesh, free, offsets, points, counts):
    """Local dofs [dof] bool that this rank owns, in their order; ghosts [ghost] by rank, the rank and its place there.

    PETSc's star forest of a section, which tells the same, takes several times as long. free [dof] bool; offsets
    [point of the chart], points [point] and counts [point] as `point_offsets` gives them. Collective.
    """
    owned = free & np.repeat(mesh.exchange.owned()[points], counts)
    ghosts = np.flatnonzero(free & ~owned)
    first = np.zeros((2, len(offsets)), np.int32)  # of each point: place of its first dof, and the rank
    before = np.cumsum(owned, dtype=np.int32) - owned
    first[0, points], first[1] = before[offsets[points]], mesh.comm.rank
    place, rank = (mesh.exchange.from_owners(each) for each in first)
    before = np.cumsum(free, dtype=np.int32) - free
    point = np.repeat(points, counts)[ghosts]
    index = place[point] + before[ghosts] - before[offsets[point]]
    order = np.lexsort((index, rank[point]))
    return owned, ghosts[order], rank[point][order], index[order]


def _completed(mesh, compact, ghost_rank, ghost_index, num_owned) -> DofMap:
    """The numbering from `compact`, where constrained degrees of freedom have -1, without cells. Collective."""
    constrained = np.flatnonzero(compact < 0)
    compact[constrained] = num_owned + len(ghost_rank) + np.arange(len(constrained), dtype=np.int32)
    starts = np.cumsum([0] + mesh.comm.allgather(num_owned), dtype=PETSc.IntType)
    first, last = starts[mesh.comm.rank : mesh.comm.rank + 2]
    numbers = np.concatenate(
        [
            np.arange(first, last, dtype=PETSc.IntType),
            (starts[:-1][ghost_rank] + ghost_index).astype(PETSc.IntType),
            np.full(len(constrained), -1, PETSc.IntType),
        ]
    ).astype(PETSc.IntType, copy=False)
    return DofMap(
        cell_dofs=np.zeros((0, 0), np.int32),
        compact=compact,
        num_owned=num_owned,
        num_ghosts=len(ghost_rank),
        num_constrained=len(constrained),
        ghost_rank=ghost_rank.astype(np.int32),
        ghost_index=ghost_index.astype(np.int32),
        constrained=constrained,
        global_numbers=numbers,
    )


def element_nodes(mesh, points: np.ndarray, cells=slice(None)) -> np.ndarray:
    """Physical coordinates [cell, point, dim] of reference points [point, dim] in each owned cell."""
    geometry = mesh.geometry
    table = ReferenceElement(mesh.cell, geometry.degree).tabulate(points, 0)[0]
    corners = geometry.cell_nodes[: mesh.num_cells][cells]
    found = np.empty((len(corners), len(points), mesh.dim))

    def fill(begin: int) -> None:
        part = slice(begin, begin + CHUNK)
        np.einsum("bn,cnd->cbd", table, geometry.nodes[corners[part]], out=found[part])

    in_threads(fill, range(0, len(corners), CHUNK))
    return found


def dof_nodes(mesh, space: FieldSpace, cells=slice(None)) -> np.ndarray:
    """Physical coordinates [cell, basis, dim] of a field's interpolation nodes."""
    return element_nodes(mesh, space.element.nodes, cells)


@dataclass(frozen=True)
class CellField:
    """Values [cell, node, component] at the nodes of `element` in this rank's cells; they may jump between cells."""

    name: str
    element: ReferenceElement
    values: np.ndarray

    def at(self, points: np.ndarray, cells=ALL) -> np.ndarray:
        """Values [cell, point, component] at reference points [point, dim], or [cell, point, dim], of some cells."""
        return self._tabulated(points, 0)[0] @ self.values[cells]

    def slopes(self, points: np.ndarray, cells=ALL) -> np.ndarray:
        """Derivatives [cell, point, component, direction] by reference coordinates, at points as `at` takes them."""
        return np.stack([table @ self.values[cells] for table in self._tabulated(points, 1)[1:]], axis=-1)

    def _tabulated(self, points: np.ndarray, derivatives: int) -> np.ndarray:
        """Basis functions, and derivatives [1 + dim, …, point, node] if asked for, at points [..., point, dim]."""
        table = self.element.tabulate(points.reshape(-1, points.shape[-1]), derivatives)
        return table.reshape(len(table), *points.shape[:-1], self.element.num_basis)


class AuxiliaryRows:
    """Layout of the rows of auxiliary data: components of auxiliary fields.

    starts [component + 1] first row of each component; nodal fields live in the scalar space of `element`.
    """

    def __init__(self, fields, element: ReferenceElement):
        self.fields = tuple(fields)
        self.element = element
        rows = [self._rows(f) for f in self.fields for _ in range(f.components)]
        self.starts = np.concatenate([[0], np.cumsum(rows)]).astype(np.int32)

    def _rows(self, field) -> int:
        return 1 if field.space == "cell" else self.element.num_basis

    @property
    def num_components(self) -> int:
        return len(self.starts) - 1

    @property
    def num_rows(self) -> int:
        return int(self.starts[-1])

    def field(self, name: str):
        """The auxiliary field `name` and its first component. Raises PhysicsError for an unknown name."""
        first = 0
        for f in self.fields:
            if isinstance(name, str) and f.name == name:
                return f, first
            first += f.components
        known = ", ".join(f.name for f in self.fields) or "none"
        raise PhysicsError(f"there is no auxiliary field {shown(name)}; the physics declares: {known}")

    def points(self, field, mesh, nodes: np.ndarray, centroids: np.ndarray) -> np.ndarray:
        """Coordinates of a field's values [cell, row, dim]: centroids if constant in the cell, else nodes."""
        return centroids[:, None, :] if field.space == "cell" else nodes

    def onto(self, element: ReferenceElement, rows: np.ndarray, num_cells: int):
        """Name and values [cell, row, component] of each field in rows [row, stride].

        Nodal ones are taken at the nodes of another element, as a discretization with that element wants them.
        """
        table, first = self.element.tabulate(element.nodes, 0)[0], 0  # [node there, node]
        for field in self.fields:
            starts = self.starts[first : first + field.components]
            count = 1 if field.space == "cell" else self.element.num_basis
            values = np.stack([rows[start : start + count, :num_cells].T for start in starts], axis=-1)
            if field.space != "cell":
                values = np.einsum("nb,cbk->cnk", table, values, optimize=True)
            yield field.name, values
            first += field.components

    def at(self, points: np.ndarray, rows: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Values [cell, point, component] of all fields at reference points [point, dim] of cells, from rows
        [row, stride]."""
        table, found = self.element.tabulate(points, 0)[0], np.empty((len(cells), len(points), self.num_components))
        for component, (start, end) in enumerate(zip(self.starts, self.starts[1:], strict=False)):
            values = rows[start:end, cells].T
            found[:, :, component] = values if end == start + 1 else values @ table.T
        return found

    def place(self, rows: np.ndarray, name: str, values: np.ndarray) -> None:
        """Write values [cell, row, component] of a field into rows [row, stride]."""
        field, first = self.field(name)
        for c in range(field.components):
            start = self.starts[first + c]
            rows[start : self.starts[first + c + 1], : len(values)] = values[:, :, c].T
