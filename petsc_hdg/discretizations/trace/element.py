"""Elements of the skeleton: functions on each facet of a cell, discontinuous from facet to facet (the trace of HDG)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import basix
import numpy as np

from ...reference import cell_dim, facet_cell, facet_count, on_facets
from ..lines import tensor_order


@dataclass(frozen=True)
class TraceElement:
    """P_k (simplices) or Q_k (tensor cells) on every facet of a reference cell, nodal on each closed facet.

    Basis functions are ordered facet by facet; on a facet along the reference facet's nodes, which are the warped
    Gauss-Lobatto points (degree 0: the centroid), in tensor order on quadrilaterals. The nodes are symmetric, so that
    another orientation of the facet permutes them.
    """

    cell: str
    degree: int

    @property
    def dim(self) -> int:
        return cell_dim(self.cell)

    @cached_property
    def facet_nodes(self) -> np.ndarray:
        """Nodes of the reference facet [node, dim - 1]."""
        return _nodes(facet_cell(self.cell), self.degree)

    @property
    def num_facet_basis(self) -> int:
        """Basis functions of one facet."""
        return len(self.facet_nodes)

    @property
    def num_basis(self) -> int:
        """Basis functions of all facets of a cell."""
        return facet_count(self.cell) * self.num_facet_basis

    @cached_property
    def nodes(self) -> np.ndarray:
        """Nodes [basis, dim] in reference coordinates of the cell."""
        return on_facets(self.cell, self.facet_nodes).reshape(-1, self.dim)

    @property
    def entity_dofs(self) -> list[list[list[int]]]:
        """Basis functions that belong to each sub-entity: those of a facet to the facet, none elsewhere."""
        n = self.num_facet_basis
        counts = [len(entities) for entities in basix.topology(basix.CellType[self.cell])]
        return [
            [list(range(k * n, k * n + n)) if d == self.dim - 1 else [] for k in range(count)]
            for d, count in enumerate(counts)
        ]

    def facet_table(self, degree: int) -> np.ndarray:
        """Basis of one facet [point, node] at the points of the facet rule of a degree (see facet_quadrature)."""
        points, _ = basix.make_quadrature(basix.CellType[facet_cell(self.cell)], degree)
        return self.tabulate_facet(points)

    def tabulate_facet(self, points: np.ndarray) -> np.ndarray:
        """Basis of one facet [point, node] at points [point, dim - 1] of the reference facet."""
        at_points, at_nodes = (_vandermonde(facet_cell(self.cell), self.degree, x) for x in (points, self.facet_nodes))
        return at_points @ np.linalg.inv(at_nodes)


def _nodes(kind: str, degree: int) -> np.ndarray:
    if degree == 0:
        return basix.geometry(basix.CellType[kind]).mean(axis=0, keepdims=True)
    lattice = basix.LatticeType.gll
    simplex = basix.LatticeSimplexMethod.warp if kind != "triangle" else basix.LatticeSimplexMethod.isaac
    points = basix.create_lattice(basix.CellType[kind], degree, lattice, True, simplex)
    return np.ascontiguousarray(points[tensor_order(points)])


def _vandermonde(kind: str, degree: int, points: np.ndarray) -> np.ndarray:
    """Orthonormal polynomials [point, function]."""
    points, polynomials = np.ascontiguousarray(points), basix.PolynomialType.legendre
    return np.asarray(basix.tabulate_polynomials(polynomials, basix.CellType[kind], degree, points)).T
