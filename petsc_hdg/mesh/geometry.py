"""Coordinates of a mesh: straight cells, or second-order cells as Gmsh writes them.

Places are located in the cells of a rank: a grid of boxes names candidates, Newton's method inverts their maps.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from ..errors import MeshError
from ..reference import ReferenceElement
from .shapes import CELLS
from .topology import Topology

INSIDE = 1e-8  # by how much reference coordinates may lie outside: a place on a facet is in the cells on both sides
STEPS = 30  # of Newton's method
CLOSE = 1e-13  # distance of a place from its image, over the extent of the cell, that ends it
LONGEST = 0.5  # step, in reference coordinates
BULGE = 0.3  # of its nodes' box by which a curved cell may leave it


class Geometry:
    """Geometry of one rank's part of a mesh.

    degree: 1 (vertices only) or 2.
    nodes [node, dim] float64: in the mesh's own length unit, the vertices first.
    cell_nodes [cell, n] int32: nodes of basix' Lagrange element of this degree (vertices, edges, faces, interior).
    is_affine: whether every cell is an affine image of the reference cell.
    periods [dim]: lengths after which the mesh repeats itself, or 0. Cells that reach across such a border have nodes
    of their own, behind those of entities.
    """

    def __init__(self, topology: Topology, blocks: dict[int, np.ndarray], periods: np.ndarray | None = None):
        """`blocks[d]` [entity, dim]: the node inside each entity of dimension d, where that dimension has nodes. Raises
        MeshError."""
        shape = topology.shape
        self.degree = 2 if len(blocks) > 1 else 1
        self.nodes = np.ascontiguousarray(np.concatenate(list(blocks.values())))
        offsets = np.cumsum([0, *map(len, blocks.values())], dtype=np.int32)
        parts = [topology.entity[d] + offset for d, offset in zip(blocks, offsets, strict=False)]
        self.cell_nodes = np.ascontiguousarray(np.concatenate(parts, axis=1), np.int32)
        self.is_affine = shape.is_simplex and self.degree == 1
        self.periods = np.zeros(self.nodes.shape[1]) if periods is None else periods
        if self.periods.any():
            self._unfold()

    def _unfold(self) -> None:
        """Give cells across borders nodes of their own, at the upper end of the period."""
        if self.degree > 1:
            raise MeshError("The mesh is periodic and has second-order cells; give straight cells, of order 1.")
        places, length = self.nodes[self.cell_nodes], np.where(self.periods > 0, self.periods, np.inf)
        shifts = np.rint((places[:, :1] - places) / length)
        shifts -= shifts.min(axis=1, keepdims=True)
        across = np.flatnonzero(shifts.any(axis=(1, 2)))
        moved = places[across] + shifts[across] * self.periods
        if len(across) and (np.ptp(moved, axis=1) >= length / 2).any():
            raise MeshError("A cell is as long as half of the period of the mesh; give three cells or more along it.")
        self.cell_nodes[across] = len(self.nodes) + np.arange(moved[..., 0].size).reshape(moved.shape[:2])
        self.nodes = np.concatenate([self.nodes, moved.reshape(-1, self.nodes.shape[1])])

    @classmethod
    def joined(cls, topology: Topology, parts: list[Geometry]) -> Geometry:
        """Geometry of all cells of a topology with several parts, from the geometries of these, which share nodes.
        Cells with fewer nodes have the last one again."""
        whole = copy(parts[0])
        whole.is_affine, whole.cell_nodes = False, topology.joined([part.cell_nodes for part in parts])
        return whole


def require_straight(shapes, degree: int) -> None:
    """Raise MeshError for second-order cells of several shapes, or of one that is not accepted so."""
    if degree > 1 and not (len(shapes) == 1 and shapes[0].name in CELLS):
        raise MeshError(
            f"The mesh has second-order cells of shape {', '.join(shape.name for shape in shapes)}; they are accepted "
            f"in meshes of one shape, {', '.join(CELLS)}: write the mesh with straight cells (Gmsh: -order 1)."
        )


def cell_metrics(mesh) -> np.ndarray:
    """Matrices G [cell, dim, dim] of this rank's cells with bᵀG b = (2 |b| / h)², where h is the length of the cell
    along b: along the edges of boxes and of regular simplices."""
    vertices = mesh.cell_corners[: mesh.num_cells]
    about = vertices - vertices.mean(axis=1, keepdims=True)
    factor = 2 / (mesh.dim + 1) if mesh.shape.is_simplex else 1.0
    return factor * np.linalg.inv(np.einsum("cvi,cvj->cij", about, about) / vertices.shape[1])


def node_dimensions(shape, degree: int) -> tuple[int, ...]:
    """Dimensions of the entities that hold one node each, in basix' order."""
    if degree == 1:
        return (0,)
    return (0, 1) if shape.is_simplex else tuple(range(shape.dim + 1))


def read_blocks(section, values: np.ndarray, topology: Topology, degree: int) -> dict[int, np.ndarray]:
    """The coordinates of a DMPlex as the node inside each entity: dimension → [entity, dim].

    `section`, `values`: PETSc's coordinate section and its local array. Raises MeshError.
    """
    dim = topology.dim
    dimensions = node_dimensions(topology.shape, degree)
    blocks = {d: stratum_values(section, values, *topology.stratum[d], dim) for d in dimensions}
    if dim in blocks:
        blocks[dim] = blocks[dim][topology.cells - topology.stratum[dim][0]]
    return blocks


def local_degree(topology: Topology, section) -> int:
    """Order 1 or 2 of this rank's cells, from how many coordinates the first edge has. Raises MeshError for others."""
    dim, (start, end) = topology.dim, topology.stratum[1]
    low, high = section.getChart()
    if start == end or not (low <= start < high):
        return 1
    on_edge = section.getDof(start)
    if on_edge == 0:
        return 1
    if on_edge == dim:
        return 2
    raise MeshError(
        f"The mesh has cells of geometric order {on_edge // dim + 1}; order 1 or 2 is accepted (Gmsh: -order 2)."
    )


def stratum_values(section, values: np.ndarray, start: int, end: int, dim: int) -> np.ndarray:
    """Coordinates of a stratum [point, dim]; its values lie one after another in the local vector."""
    if start == end:
        return np.empty((0, dim))
    first, last = section.getOffset(start), section.getOffset(end - 1)
    if section.getDof(start) != dim or last - first != (end - 1 - start) * dim:
        raise MeshError(
            "The coordinates of the mesh are not one node a point; give straight or second-order cells, not periodic."
        )
    return values[first : first + (end - start) * dim].reshape(-1, dim).astype(np.float64)


class Locator:
    """Owned cells of a mesh by place.

    boxes [cell, low or high, dim]: what holds each cell, in the mesh's length unit.
    """

    def __init__(self, mesh):
        geometry, self.dim = mesh.geometry, mesh.dim
        self.element = ReferenceElement(mesh.cell, geometry.degree)
        self.nodes = geometry.nodes[geometry.cell_nodes[: mesh.num_cells]]
        low, high = self.nodes.min(axis=1), self.nodes.max(axis=1)
        self.extent = (high - low).max(axis=1)
        margin = np.full_like(low, INSIDE) * self.extent[:, None]
        margin = margin + (BULGE * (high - low) if geometry.degree > 1 else 0.0)
        self.boxes = np.stack([low - margin, high + margin], axis=1)
        self._fill_grid()

    def _fill_grid(self) -> None:
        """Sort the cells into the boxes of a grid with about one cell each; a cell is in each box that it touches."""
        count = len(self.nodes)
        self.low = self.boxes[:, 0].min(axis=0, initial=np.inf)
        span = self.boxes[:, 1].max(axis=0, initial=-np.inf) - self.low
        self.shape = np.full(self.dim, max(1, round(count ** (1 / self.dim))))
        self.width = np.where(span > 0, span, 1.0) / self.shape
        if not count:
            self.start, self.cells = np.zeros(2, dtype=int), np.zeros(0, dtype=int)
            return
        first, last = (self._places(self.boxes[:, side]) for side in (0, 1))
        reach = last - first + 1
        boxes = reach.prod(axis=1)
        cells = np.repeat(np.arange(count), boxes)
        within = np.arange(len(cells)) - np.repeat(np.cumsum(boxes) - boxes, boxes)
        number = np.zeros(len(cells), dtype=int)
        for axis in range(self.dim):
            number = number * self.shape[axis] + first[cells, axis] + within % reach[cells, axis]
            within = within // reach[cells, axis]
        order = np.argsort(number, kind="stable")
        self.cells = cells[order]
        self.start = np.searchsorted(number[order], np.arange(self.shape.prod() + 1))

    def _places(self, points: np.ndarray) -> np.ndarray:
        """Box of the grid [point, dim] that holds each point, the nearest one for those outside."""
        return np.clip((points - self.low) / self.width, 0, self.shape - 1).astype(int)

    def find(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cell [point], -1 where none holds it, and reference coordinates [point, dim] of points [point, dim].

        Of several cells that hold a point, it is the one in which it lies deepest, then the first.
        """
        cell, at = np.full(len(points), -1), np.zeros((len(points), self.dim))
        point, candidate = self._candidates(points)
        found = self._invert(points[point], candidate)
        depth = self._depth(found)
        held = np.flatnonzero(depth >= -INSIDE)
        order = held[np.lexsort((candidate[held], -np.round(depth[held], 12), point[held]))]
        which, first = np.unique(point[order], return_index=True)
        cell[which], at[which] = candidate[order[first]], found[order[first]]
        return cell, at

    def _candidates(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a point and a cell whose box holds it."""
        if not len(self.nodes) or not len(points):
            return np.zeros(0, dtype=int), np.zeros(0, dtype=int)
        number = np.ravel_multi_index(tuple(self._places(points).T), tuple(self.shape))
        counts = self.start[number + 1] - self.start[number]
        point = np.repeat(np.arange(len(points)), counts)
        within = np.arange(len(point)) - np.repeat(np.cumsum(counts) - counts, counts)
        cell = self.cells[self.start[number[point]] + within]
        x, box = points[point], self.boxes[cell]
        inside = ((x >= box[:, 0]) & (x <= box[:, 1])).all(axis=1)
        return point[inside], cell[inside]

    def _invert(self, x: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Reference coordinates [pair, dim] of places x [pair, dim] in cells [pair]; nan where none is found."""
        nodes, found = self.nodes[cells], np.tile(ReferenceElement(self.element.cell, 0).nodes, (len(cells), 1))
        for _ in range(STEPS if len(cells) else 0):
            table = self.element.tabulate(found, 1)
            miss = x - np.einsum("pn,pnd->pd", table[0], nodes)
            far = np.abs(miss).max(axis=1) > CLOSE * self.extent[cells]
            if not far.any():
                break
            jacobian = np.einsum("rpn,pnd->pdr", table[1:], nodes)
            flat = np.abs(np.linalg.det(jacobian)) < 1e-14 * self.extent[cells] ** self.dim
            jacobian[flat] = np.eye(self.dim) * self.extent[cells[flat], None, None]
            step = np.linalg.solve(jacobian, miss[:, :, None])[:, :, 0]
            longest = np.abs(step).max(axis=1, keepdims=True)
            found = found + np.where(far[:, None], step / np.maximum(1.0, longest / LONGEST), 0.0)
        if len(cells):
            miss = np.abs(x - np.einsum("pn,pnd->pd", self.element.tabulate(found, 0)[0], nodes)).max(axis=1)
            found[miss > 1e3 * CLOSE * self.extent[cells] + 1e-15 * np.abs(x).max(axis=1)] = np.nan
        return found

    def _depth(self, at: np.ndarray) -> np.ndarray:
        """Depth of reference coordinates [pair, dim] inside of the reference cell [pair]; negative outside."""
        if self.element.cell in ("triangle", "tetrahedron"):
            return np.minimum(at.min(axis=1, initial=np.inf), 1 - at.sum(axis=1))
        if self.element.cell == "prism":
            return np.minimum(at.min(axis=1, initial=np.inf), 1 - np.maximum(at[:, 0] + at[:, 1], at[:, 2]))
        if self.element.cell == "pyramid":
            return np.minimum(at.min(axis=1, initial=np.inf), 1 - at[:, 2] - at[:, :2].max(axis=1, initial=-np.inf))
        return np.minimum(at, 1 - at).min(axis=1, initial=np.inf)
