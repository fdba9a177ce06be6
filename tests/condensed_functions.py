"""Functions of a cell of a condensed scheme in plain numpy: interior ones first, then those of the trace.

Everything comes from the reference elements and rules of quadrature; the tables of a discretization are not used.
"""

from __future__ import annotations

import numpy as np

from petsc_hdg.discretizations.condensed.oracle import CellTables
from petsc_hdg.discretizations.trace.element import TraceElement
from petsc_hdg.reference import ReferenceElement, cell_quadrature, facet_cell, facet_quadrature


class LiftedFunctions:
    """u in P_k or Q_k, û on each facet, and q̃ of (q̃_r, w) = (∂_r u, w) - <u - û, w n_r> on the reference cell.

    degree: of u and û.   gradient_degree: of each component of q̃ and of w.
    """

    def __init__(self, cell: str, degree: int, gradient_degree: int):
        self.cell = cell
        self.interior, self.trace = ReferenceElement(cell, degree), TraceElement(cell, degree)
        self.element = ReferenceElement(cell, gradient_degree)
        self.num_interior, self.num_functions = (
            self.interior.num_basis,
            self.interior.num_basis + self.trace.num_basis,
        )

    def mass(self) -> np.ndarray:
        """Mass matrix [basis, basis] of a component of q̃ on the reference cell."""
        rule = cell_quadrature(self.cell, 2 * self.element.degree)
        basis = self.values(self.element, rule.points)
        return basis.T @ (rule.weights[:, None] * basis)

    def moments(self) -> np.ndarray:
        """(∂_r u, w) - <u - û, w n_r> [dim, basis, function]."""
        degree = self.interior.degree + self.element.degree
        rule = cell_quadrature(self.cell, degree)
        slopes, test = self.interior.tabulate(rule.points)[1:], self.values(self.element, rule.points)
        out = np.zeros((len(slopes), self.element.num_basis, self.num_functions))
        out[:, :, : self.num_interior] = np.einsum("q,qi,rqj->rij", rule.weights, test, slopes)
        rules, normals = facet_quadrature(self.cell, degree)
        for rule, normal, jump in zip(rules, normals, self.jumps(degree), strict=True):
            test = rule.weights[:, None] * self.values(self.element, rule.points)
            out -= normal[:, None, None] * (test.T @ jump)
        return out

    def lift(self) -> np.ndarray:
        """Coefficients of q̃ [dim, basis, function]."""
        return np.linalg.solve(self.mass(), self.moments())

    @staticmethod
    def values(element, points: np.ndarray) -> np.ndarray:
        return element.tabulate(points, 0)[0]

    def jumps(self, degree: int) -> np.ndarray:
        """u - û [facet, point, function] on the rules of the facets of a degree."""
        out = -self.traces(degree)
        for facet, rule in enumerate(facet_quadrature(self.cell, degree)[0]):
            out[facet, :, : self.num_interior] = self.values(self.interior, rule.points)
        return out

    def traces(self, degree: int) -> np.ndarray:
        """û [facet, point, function] there."""
        on_facet = self.trace.tabulate_facet(cell_quadrature(facet_cell(self.cell), degree).points)
        count, nodes = on_facet.shape
        facets = self.trace.num_basis // nodes
        out = np.zeros((facets, count, self.num_functions))
        for facet in range(facets):
            first = self.num_interior + facet * nodes
            out[facet, :, first : first + nodes] = on_facet
        return out

    def gradients(self, points: np.ndarray) -> np.ndarray:
        """q̃ [point, dim, function] at points of the reference cell."""
        return np.einsum("qk,rkj->qrj", self.values(self.element, points), self.lift())

    def tables(self, degree: int) -> CellTables:
        """All tables on the rules of a degree."""
        points = cell_quadrature(self.cell, degree).points
        value = np.zeros((len(points), self.num_functions))
        value[:, : self.num_interior] = self.values(self.interior, points)
        on_facets = np.stack([self.gradients(rule.points) for rule in facet_quadrature(self.cell, degree)[0]])
        jumps, traces = self.jumps(degree), self.traces(degree)
        plain = np.zeros((len(points), points.shape[1], self.num_functions))
        plain[:, :, : self.num_interior] = np.moveaxis(self.interior.tabulate(points)[1:], 0, 1)
        return CellTables(value, self.gradients(points), traces, on_facets, jumps, jumps + traces, plain)


class LagrangeFunctions:
    """The Lagrange basis of continuous Galerkin, those of the cell's interior first."""

    def __init__(self, cell: str, degree: int):
        self.cell, self.element = cell, ReferenceElement(cell, degree)
        inside = self.element.entity_dofs[-1][0]
        self.order = [*inside, *(i for i in range(self.element.num_basis) if i not in set(inside))]
        self.num_interior, self.num_functions = len(inside), self.element.num_basis

    def gradients(self, points: np.ndarray) -> np.ndarray:
        """Gradients [point, dim, function] at points of the reference cell."""
        return np.moveaxis(self.element.tabulate(points)[1:], 0, 1)[..., self.order]

    def tables(self, degree: int) -> CellTables:
        """All tables on the rules of a degree."""
        points = cell_quadrature(self.cell, degree).points
        rules = facet_quadrature(self.cell, degree)[0]
        value = self.element.tabulate(points, 0)[0][:, self.order]
        traces = np.stack([self.element.tabulate(rule.points, 0)[0][:, self.order] for rule in rules])
        on_facets = np.stack([self.gradients(rule.points) for rule in rules])
        return CellTables(value, self.gradients(points), traces, on_facets, None)


def functions_of(disc) -> LiftedFunctions | LagrangeFunctions:
    """The functions of a condensed discretization."""
    degree, cell = disc.options.degree, disc.mesh.cell
    if not disc.has_jumps:
        return LagrangeFunctions(cell, degree)
    enriched = cell in ("quadrilateral", "hexahedron") and disc.options.hdg_enrich
    return LiftedFunctions(cell, degree, degree + int(enriched))
