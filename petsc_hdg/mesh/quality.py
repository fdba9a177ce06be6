"""Checks of a mesh when it is made: no degenerate cell, no inverted one, no facet of three cells, no hanging node."""

from __future__ import annotations

from itertools import combinations

import basix
import numpy as np

from ..errors import MeshError, collectively
from ..reference import ReferenceElement, inside
from ..threads import in_threads

CHUNK = 1 << 15
MIXED = np.array([1, 0x9E3779B1, 0x7FEB352D1B5])  # one number of a place; numpy sorts records many times slower
CLOSE = 1e-8  # of the mesh's extent: places nearer than that are the same


def check(mesh) -> None:
    """Raise MeshError, on all ranks, for cells that no scheme can use. Collective."""
    first = mesh.comm.exscan(mesh.num_cells) or 0
    with collectively(mesh.comm):
        _check_vertices(mesh.topology)
        with_sides = sum(_facet_sides(part.topology, _signs(mesh, part, first)) for part in mesh.parts)
    with_sides = mesh.exchange_facets(with_sides)
    counts = mesh.facet_counts
    with collectively(mesh.comm):
        _check_facets(mesh, with_sides, counts, first)


def _name(mesh, first: int, cell: int) -> str:
    """An owned cell by its number among those of all ranks, PETSc's, of which `first` are on ranks before this one."""
    centre = mesh.geometry.nodes[mesh.geometry.cell_nodes[cell]].mean(axis=0)
    owned = mesh.topology.cells[: mesh.num_cells]
    number = first + np.count_nonzero(owned < owned[cell])
    return f"Cell {number} (centroid {', '.join(f'{x:.6g}' for x in centre)})"


def _check_vertices(topology) -> None:
    used = np.bincount(topology.cell_vertices.ravel(), minlength=topology.num_entities(0))
    if (used == 0).any():
        raise MeshError(f"{np.count_nonzero(used == 0)} vertices of the mesh belong to no cell; remove them.")


def _points(shape, degree: int) -> np.ndarray:
    """Reference points that tell whether the determinant of the Jacobian keeps its sign [point, dim].

    It is constant in straight simplices, bilinear in straight quadrilaterals. Of the others, a lattice.
    """
    if degree == 1 and shape.dim == 2:
        return shape.points[:1] if shape.is_simplex else shape.points
    if degree == 1:
        return shape.points[:1] if shape.is_simplex else _lattice(shape, 2)
    return _lattice(shape, 4)


def _lattice(shape, n: int) -> np.ndarray:
    kind = getattr(basix.CellType, shape.name)
    return basix.create_lattice(kind, n, basix.LatticeType.equispaced, True)


def jacobians(shape, geometry, cells, points: np.ndarray) -> np.ndarray:
    """Jacobians dx_i/dX_j of some cells (a slice or numbers) at reference points [cell, point, i, j]."""
    gradient = ReferenceElement(shape.name, geometry.degree).tabulate(points)[1:]  # [j, point, n]
    nodes = geometry.nodes[geometry.cell_nodes[cells]]
    return np.einsum("cni,jpn->cpij", nodes, gradient, optimize=True)


def determinants(jacobian: np.ndarray) -> np.ndarray:
    """Determinants of 2 × 2 or 3 × 3 matrices in the last two axes."""
    j = jacobian
    if j.shape[-1] == 2:
        return j[..., 0, 0] * j[..., 1, 1] - j[..., 0, 1] * j[..., 1, 0]
    minor = [j[..., 1, a] * j[..., 2, b] - j[..., 1, b] * j[..., 2, a] for a, b in ((1, 2), (2, 0), (0, 1))]
    return j[..., 0, 0] * minor[0] + j[..., 0, 1] * minor[1] + j[..., 0, 2] * minor[2]


def _signs(mesh, part, first: int) -> np.ndarray:
    """Orientation of each owned cell of a part [cell] int8: 1 or -1. Raises MeshError for a cell without one."""
    shape, geometry, count = part.shape, part.geometry, part.num_cells
    signs = np.empty(count, np.int8)
    points = _points(shape, geometry.degree)
    few = np.concatenate([shape.points, shape.points.mean(axis=0, keepdims=True)])
    if shape.name == "pyramid":  # whose map has no Jacobian at the apex
        points, few = (inside(shape.name, x, CLOSE) for x in (points, few))

    def fill(begin: int) -> None:
        cells = np.arange(begin, min(begin + CHUNK, count))
        if geometry.degree == 1 and len(points) > len(few):
            low, high, tolerance = _extremes(shape, geometry, cells, few)
            # The determinant of a hexahedron that is not far from a parallelepiped needs no closer look.
            look = np.flatnonzero(~((low > 0.5 * high) & (low > tolerance) | (high < 0.5 * low) & (high < -tolerance)))
            low[look], high[look], tolerance[look] = _extremes(shape, geometry, cells[look], points)
        else:
            low, high, tolerance = _extremes(shape, geometry, cells, points)
        bad = np.flatnonzero(~((low > tolerance) | (high < -tolerance)))
        if len(bad):
            k = bad[0]
            runs = f"its Jacobian determinant runs from {low[k]:.3g} to {high[k]:.3g}"
            what = runs if high[k] > low[k] else "it has no volume"
            raise MeshError(
                f"{_name(mesh, first, part.first + cells[k])} is degenerate or inverted: {what}; repair the mesh."
            )
        signs[cells] = np.where(low > 0, 1, -1)

    in_threads(fill, range(0, count, CHUNK))
    return signs


def _extremes(shape, geometry, cells: np.ndarray, points: np.ndarray):
    """Least and greatest determinant at the points, and what counts as zero, each [cell]."""
    jacobian = jacobians(shape, geometry, cells, points)
    size = np.abs(jacobian).reshape(len(cells), jacobian[0].size if len(cells) else 1).max(axis=1)
    determinant = determinants(jacobian)
    tolerance = 32 * np.finfo(float).eps * size**shape.dim
    return determinant.min(axis=1), determinant.max(axis=1), tolerance


def _facet_sides(topology, sign: np.ndarray) -> np.ndarray:
    """Sum over owned cells of the side (1 or -1, alike on all ranks) of each facet that they lie on [facet] int32."""
    shape = topology.shape
    total = np.zeros(topology.num_entities(shape.dim - 1), np.int32)
    ranks = topology.vertex_rank[topology.cell_vertices[: len(sign)]]
    for facet, vertices in enumerate(shape.entities[shape.dim - 1]):
        side = sign * _outward(shape, vertices) * _flip(ranks, vertices)
        np.add.at(total, topology.entity[shape.dim - 1][: len(sign), facet], side.astype(np.int32))
    return total


def _outward(shape, vertices) -> int:
    """1 or -1: orientation of (outward normal, tangents of the facet) in the reference cell."""
    points = shape.points[vertices]
    normal = points.mean(axis=0) - shape.points.mean(axis=0)
    return int(np.sign(np.linalg.det(np.stack([normal, *(points[1 : shape.dim] - points[0])]))))


def _flip(ranks: np.ndarray, vertices) -> np.ndarray:
    """1 or -1 [cell]: whether a facet's own direction is that of its vertices in the cell, whose vertices have `ranks`
    [cell, vertex]."""
    if len(vertices) == 3:  # simplices: ascending numbers in the cell and in the facet
        return np.ones(len(ranks), np.int8)
    if vertices[-1] == vertices[-2]:  # a triangle among quadrilaterals: an odd number of descents
        turns = [ranks[:, vertices[a]] > ranks[:, vertices[b]] for a, b in ((0, 1), (1, 2), (0, 2))]
        return np.where(np.logical_xor.reduce(turns), -1, 1)
    if len(vertices) == 2:
        return np.where(ranks[:, vertices[0]] <= ranks[:, vertices[1]], 1, -1)
    numbers = ranks[:, vertices[[0, 1, 3, 2]]]
    first = numbers.argmin(axis=1)
    row = np.arange(len(ranks))
    return np.where(numbers[row, (first + 1) % 4] < numbers[row, (first + 3) % 4], 1, -1)


def _check_facets(mesh, sides, counts, first: int) -> None:
    crowded, folded = counts > 2, (counts == 2) & (sides != 0)
    for wrong, what in (
        (crowded, "shares a facet with two or more other cells"),
        (folded, "lies on the same side of a facet as its neighbour, so one of the two is inverted"),
    ):
        cells = np.flatnonzero(mesh.on_sides(wrong).any(axis=1)) if wrong.any() else ()
        if len(cells):
            raise MeshError(f"{_name(mesh, first, int(cells[0]))} {what}; repair the mesh.")


def check_conforming(mesh) -> None:
    """Raise MeshError if a vertex of the exterior is the middle of an exterior facet, or of its edge. Collective."""
    corners = _exterior_corners(mesh)
    pairs = list(combinations(range(corners.shape[1]), 2))
    edges = np.concatenate([corners[:, pair] for pair in pairs])
    middles = edges[(edges[:, 0] != edges[:, 1]).any(axis=1)].mean(axis=1)
    vertices = np.concatenate(mesh.comm.allgather(corners.reshape(-1, mesh.dim)))
    if not len(vertices):
        return
    extent = np.ptp(vertices, axis=0).max()
    middles = middles[np.isin(*(_keys(x, extent) @ MIXED[: mesh.dim] for x in (middles, vertices)))]  # few, if any
    records = (_keys(x, extent).view([("", np.int64)] * mesh.dim).ravel() for x in (middles, vertices))
    places = np.concatenate(mesh.comm.allgather(middles[np.isin(*records)]))
    if len(places):
        count, near = len(np.unique(places, axis=0)), ", ".join(f"{x:.4g}" for x in places[0])
        raise MeshError(
            f"The mesh has hanging nodes, {count} of them, the first near ({near}); cells must share whole facets: "
            "refine the larger cells there, or split them."
        )


def _exterior_corners(mesh) -> np.ndarray:
    """Corners [facet, corner, dim] of this rank's exterior facets."""
    found, is_exterior = [], mesh.on_sides(mesh.exterior)
    for part in mesh.parts:
        cells, faces = np.nonzero(is_exterior[part.cells, : part.shape.num_facets])
        numbers = part.geometry.cell_nodes[cells[:, None], part.shape.entities[mesh.dim - 1][faces]]
        found.append(mesh.geometry.nodes[numbers])
    most = max(numbers.shape[1] for numbers in found)
    return np.concatenate([np.pad(x, ((0, 0), (0, most - x.shape[1]), (0, 0)), mode="edge") for x in found])


def _keys(points: np.ndarray, extent: float) -> np.ndarray:
    """Numbers [point, dim] that are equal where points [point, dim] are close."""
    return np.floor(points / (CLOSE * extent) + 0.377).astype(np.int64, order="C")
