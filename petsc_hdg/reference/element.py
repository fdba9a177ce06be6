"""Lagrange elements on the four reference cells, with the place of every degree of freedom; their tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import basix
import numpy as np

CELLS = ("triangle", "quadrilateral", "tetrahedron", "hexahedron")
ROUND_OFF = 1e-14  # entries this close to a whole number are that number: kernels can leave out exact zeros


def cell_dim(cell: str) -> int:
    """Dimension of a reference cell by name."""
    return len(basix.topology(basix.CellType[cell])) - 1


def facet_cell(cell: str) -> str:
    """Name of the reference cell of a facet: `interval`, `triangle` or `quadrilateral`."""
    return {
        "triangle": "interval",
        "quadrilateral": "interval",
        "tetrahedron": "triangle",
        "hexahedron": "quadrilateral",
    }[cell]


def facet_count(cell: str) -> int:
    """Number of facets of a reference cell."""
    return len(basix.topology(basix.CellType[cell])[cell_dim(cell) - 1])


def on_facets(cell: str, points: np.ndarray) -> np.ndarray:
    """Points [point, dim - 1] of the reference facet on each facet of a reference cell [facet, point, dim]."""
    kind, dim = basix.CellType[cell], cell_dim(cell)
    vertices = basix.geometry(kind)
    corners = vertices[[facet[:dim] for facet in basix.topology(kind)[dim - 1]]]
    return corners[:, :1] + points @ (corners[:, 1:] - corners[:, :1])


@dataclass(frozen=True)
class ReferenceElement:
    """Lagrange element P_k (simplices) or Q_k (tensor cells), nodes at warped Gauss-Lobatto points (k = 0: centroid).

    Numbering of vertices, edges, faces and basis functions is basix's.
    """

    cell: str
    degree: int

    def _basix(self):
        """The element in basix, made anew each time: basix complains of any that live until the interpreter ends."""
        return basix.create_element(
            basix.ElementFamily.P,
            basix.CellType[self.cell],
            self.degree,
            basix.LagrangeVariant.gll_warped,
            discontinuous=self.degree == 0,
        )

    @property
    def dim(self) -> int:
        return cell_dim(self.cell)

    @property
    def num_basis(self) -> int:
        return len(self.nodes)

    @cached_property
    def nodes(self) -> np.ndarray:
        """Interpolation points [basis, dim] in reference coordinates."""
        return np.array(self._basix().points)

    @cached_property
    def entity_dofs(self) -> list[list[list[int]]]:
        """Basis functions that belong to each sub-entity: entity_dofs[dimension][sub-entity] is a list."""
        return [[list(on) for on in entities] for entities in self._basix().entity_dofs]

    @cached_property
    def dofs_per_entity(self) -> tuple[int, ...]:
        """Number of basis functions on one vertex, edge, …, cell."""
        return tuple(len(on[0]) for on in self.entity_dofs)

    def tabulate(self, points: np.ndarray, derivatives: int = 1) -> np.ndarray:
        """Basis and derivatives [1 + dim, point, basis] at reference points [point, dim].

        Without derivatives (`derivatives=0`): [1, point, basis].
        """
        return np.asarray(self._basix().tabulate(derivatives, np.ascontiguousarray(points))[..., 0])


@dataclass(frozen=True)
class Tabulation:
    """Values [point, basis] and reference gradients [point, basis, dim]."""

    values: np.ndarray
    gradients: np.ndarray


def tabulate(element: ReferenceElement, points: np.ndarray) -> Tabulation:
    """Tabulate an element at reference points [point, dim]."""
    table = element.tabulate(points, 1)
    table = np.where(np.abs(table - np.rint(table)) < ROUND_OFF, np.rint(table), table)
    return Tabulation(np.ascontiguousarray(table[0]), np.ascontiguousarray(np.moveaxis(table[1:], 0, -1)))
