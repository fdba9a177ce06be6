"""The surface of polytopes, facet by facet of their base cells, and quadrature points on cells and facets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...mesh.quality import determinants
from ...reference import ReferenceElement, cell_quadrature, facet_quadrature, is_tensor
from ...threads import in_threads, stable_order

CELLS = 1 << 13  # whose facets' points fit in the cache
MOST_PAIRS = 1 << 20  # pairs of vertices held at a time


class Measures:
    """Volumes of the owned base cells of a mesh and areas of their facets, found when they are asked for."""

    def __init__(self, mesh):
        self.mesh = mesh

    @cached_property
    def volumes(self) -> np.ndarray:
        """[cell]"""
        return self._in_parts(lambda cells: cell_points(self.mesh, cells, 1)[1].sum(axis=1))

    @cached_property
    def areas(self) -> np.ndarray:
        """[cell, facet]"""
        return self._in_parts(self._areas)

    def _areas(self, cells: np.ndarray) -> np.ndarray:
        faces = len(self.mesh.shape.entities[self.mesh.dim - 1])
        every = np.repeat(cells, faces), np.tile(np.arange(faces), len(cells))
        return facet_points(self.mesh, *every, 2)[1].sum(axis=1).reshape(-1, faces)

    def _in_parts(self, of_cells) -> np.ndarray:
        parts = [np.arange(a, min(a + CELLS, self.mesh.num_cells)) for a in range(0, self.mesh.num_cells, CELLS)]
        return np.concatenate(in_threads(of_cells, parts or [np.arange(0)]))


@dataclass(frozen=True)
class Outline:
    """Facets of base cells on the surface of each polytope of a rank, polytope by polytope.

    cell, facet  [item] owned base cell, and which of its facets;  start [polytope + 1] items of each polytope
    polytope     [item]
    measures     of the mesh
    """

    mesh: object
    cell: np.ndarray
    facet: np.ndarray
    start: np.ndarray
    polytope: np.ndarray
    measures: Measures

    @property
    def area(self) -> np.ndarray:
        """Surface [item]."""
        return self.measures.areas[self.cell, self.facet]

    @cached_property
    def vertices(self) -> np.ndarray:
        """Vertices [item, vertex], numbers of geometry nodes."""
        places = np.array(self.mesh.shape.entities[self.mesh.dim - 1])
        return self.mesh.geometry.cell_nodes[self.cell[:, None], places[self.facet]]

    def radii(self, polytopes) -> np.ndarray:
        """d |K| / |∂K| [polytope], of simplices the radius of the inscribed ball, from the Polytopes themselves."""
        volume = np.bincount(polytopes.of_cell, self.measures.volumes, polytopes.count)
        return self.mesh.dim * volume / np.bincount(self.polytope, self.area, polytopes.count)

    def diameters(self) -> np.ndarray:
        """Largest distance [polytope] of two vertices on the surface."""
        owner = np.repeat(self.polytope, self.vertices.shape[1])
        pairs = np.unique(np.stack([owner, self.vertices.ravel()], axis=1), axis=0)
        start = np.searchsorted(pairs[:, 0], np.arange(len(self.start)))
        x = self.mesh.geometry.nodes[pairs[:, 1]]
        found = np.zeros(len(x))
        for part in portions(np.arange(len(x)), np.diff(start)[pairs[:, 0]], MOST_PAIRS):
            others, first = joined(start, pairs[part, 0])
            away = x[others] - np.repeat(x[part], np.diff(first, append=len(others)), axis=0)
            found[part] = np.maximum.reduceat((away**2).sum(axis=1), first)
        return np.sqrt(np.maximum.reduceat(found, start[:-1])) if len(x) else np.zeros(0)


def find_outline(mesh, polytopes, measures: Measures | None = None) -> Outline:
    """The outline of `Polytopes` of a mesh: facets of two base cells of one polytope are left out. Not collective."""
    facets = mesh.topology.entity[mesh.dim - 1][: mesh.num_cells]
    flat = facets.ravel()
    owner = np.repeat(np.asarray(polytopes.of_cell), facets.shape[1])
    order = stable_order(flat)
    twice = np.flatnonzero((flat[order][1:] == flat[order][:-1]) & (owner[order][1:] == owner[order][:-1]))
    outside = np.ones(len(flat), bool)
    outside[order[twice]] = outside[order[twice + 1]] = False
    items = np.flatnonzero(outside)
    items = items[stable_order(owner[items])]
    start = np.concatenate([[0], np.cumsum(np.bincount(owner[items], minlength=polytopes.count))])
    faces = facets.shape[1]
    return Outline(mesh, items // faces, items % faces, start, owner[items], measures or Measures(mesh))


def cell_points(mesh, cells, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Places x [cell, point, dim] and weights [cell, point] that integrate polynomials of x of a degree exactly."""
    rule = cell_quadrature(mesh.cell, degree + (mesh.dim - 1 if is_tensor(mesh.cell) else 0))
    x, jacobian = mapped(mesh, cells, rule.points)
    return x, rule.weights * np.abs(determinants(jacobian))


def facet_points(mesh, cells, facets, degree: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places x [item, point, dim], weights [item, point] and outward unit normals [item, point, dim] on facets
    [item] of cells [item]."""
    rules, outward = facet_quadrature(mesh.cell, degree + (mesh.dim - 1 if is_tensor(mesh.cell) else 0))
    count, dim = rules[0].num_points, mesh.dim
    x, normal = np.empty((2, len(cells), count, dim))
    weight = np.empty((len(cells), count))
    for number, rule in enumerate(rules):
        here = np.flatnonzero(facets == number)
        x[here], jacobian = mapped(mesh, cells[here], rule.points)
        scaled = np.einsum("r,rdcq->cqd", outward[number], _cofactors(jacobian))  # Nanson's formula
        length = np.linalg.norm(scaled, axis=2)
        weight[here] = rule.weights * length
        normal[here] = scaled * (np.sign(determinants(jacobian)) / length)[..., None]
    return x, weight, normal


def mapped(mesh, cells, points) -> tuple[np.ndarray, np.ndarray]:
    """Places [cell, point, dim] and Jacobians [cell, point, dim, reference] at reference points, of straight simplices
    at one for all."""
    table = ReferenceElement(mesh.cell, mesh.geometry.degree).tabulate(points)
    nodes = mesh.geometry.nodes[mesh.geometry.cell_nodes[cells]]
    rates = table[1:, :1] if mesh.shape.is_simplex else table[1:]
    return table[0] @ nodes, np.einsum("rqb,cbd->cqdr", rates, nodes, optimize=True)


def _cofactors(jacobian: np.ndarray) -> np.ndarray:
    """Inverses times determinants [reference, dim, cell, point] of jacobian [cell, point, dim, reference]."""
    rows = np.moveaxis(jacobian, (-1, -2), (0, 1))  # [reference, dim, cell, point]
    if len(rows) == 2:
        return np.stack([np.stack([rows[1, 1], -rows[1, 0]]), np.stack([-rows[0, 1], rows[0, 0]])])
    return np.stack([np.cross(rows[(k + 1) % 3], rows[(k + 2) % 3], axis=0) for k in range(3)])


def joined(start: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Entries of some rows `part` of a compressed list, one row after the other, and where each row begins."""
    sizes = np.diff(start)[part]
    first = np.cumsum(sizes) - sizes
    return np.repeat(start[part] - first, sizes) + np.arange(sizes.sum()), first


def portions(items: np.ndarray, sizes: np.ndarray, most: int) -> list[np.ndarray]:
    """Items in parts whose sizes [item] sum up to about `most`, none empty."""
    if not len(items):
        return []
    number = (np.cumsum(sizes) - 1) // most
    return np.split(items, np.flatnonzero(np.diff(number)) + 1)
