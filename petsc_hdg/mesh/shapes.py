"""Properties of cell shapes: counts, and basix' numbering of sub-entities as look-up tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import basix
import numpy as np

CELLS = ("triangle", "quadrilateral", "tetrahedron", "hexahedron")  # whose facets have one shape
SHAPES = (*CELLS, "prism", "pyramid")
SURFACE = "surfaces in space are not accepted: give a mesh of the plane, with 2 coordinates, or one of volumes."


@dataclass(frozen=True)
class Shape:
    """A cell shape with basix' numbering.

    entities[d] [entity, vertex]: local vertices of the sub-entities of dimension d (0 … dim), of triangles among
    quadrilaterals the last one twice.
    slots[d] [2**num_vertices] int8: the sub-entity whose vertices are the bits of the index, -1 if there is none.
    points [vertex, dim]: reference vertices.
    """

    name: str
    dim: int
    is_simplex: bool
    entities: tuple[np.ndarray, ...]
    slots: tuple[np.ndarray, ...]
    points: np.ndarray

    @property
    def num_vertices(self) -> int:
        return len(self.points)

    @property
    def num_facets(self) -> int:
        return len(self.entities[self.dim - 1])

    def cone_size(self, d: int) -> int:
        """Largest number of points in the cone of a sub-entity of dimension d."""
        if d == 1:
            return 2
        if d == 2:
            return 3 if self.is_simplex else 4
        return self.num_facets


@cache
def shape(name: str) -> Shape:
    """The shape called `name`, one of SHAPES."""
    kind = getattr(basix.CellType, name)
    entities = tuple(_even(entities) for entities in basix.topology(kind))
    points = basix.geometry(kind)
    slots = []
    for of_dim in entities:
        table = np.full(1 << len(points), -1, np.int8)
        table[np.bitwise_or.reduce(1 << of_dim, axis=1)] = np.arange(len(of_dim))
        slots.append(table)
    return Shape(name, points.shape[1], name in ("triangle", "tetrahedron"), entities, tuple(slots), points)


def _even(entities) -> np.ndarray:
    """Vertices [entity, vertex] of sub-entities, the last one of an entity with fewer repeated."""
    most = max(map(len, entities))
    return np.array([[*vertices, *vertices[-1:] * (most - len(vertices))] for vertices in entities], np.int32)
