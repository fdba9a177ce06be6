"""The lifted gradient of HDG: the gradient of a cell's functions together with their jumps at the trace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...reference import ReferenceElement, cell_quadrature, facet_quadrature
from ..trace.element import TraceElement


@dataclass(frozen=True)
class Lift:
    """q̃ of (q̃, w) = (∇u, w) - <u - û, w·n> for all w, all in the frame of the reference cell.

    This is q of LDG-H (King et al. 2014, eq. 5c) with the mass matrix inverted once for all cells (eq. 10 and 11);
    the physical gradient is J^-T q̃, on curved cells as well.

    interior  element of u
    trace     element of û
    element   element of each component of q̃
    """

    interior: ReferenceElement
    trace: TraceElement
    element: ReferenceElement

    @property
    def num_functions(self) -> int:
        """Functions of u and of û."""
        return self.interior.num_basis + self.trace.num_basis

    @cached_property
    def gradient(self) -> np.ndarray:
        """Coefficients of q̃ [dim, basis, function], interior functions first."""
        degree = self.interior.degree + self.element.degree
        rule = cell_quadrature(self.interior.cell, degree)
        test = self.element.tabulate(rule.points, 0)[0]
        trial = self.interior.tabulate(rule.points)[1:]
        right = -self._boundary(degree)
        right[:, :, : self.interior.num_basis] += np.einsum("q,qi,rqj->rij", rule.weights, test, trial)
        return np.linalg.solve(self._mass(), right)

    def _mass(self) -> np.ndarray:
        rule = cell_quadrature(self.interior.cell, 2 * self.element.degree)
        test = self.element.tabulate(rule.points, 0)[0]
        return np.einsum("q,qi,qj->ij", rule.weights, test, test)

    def _boundary(self, degree: int) -> np.ndarray:
        """∮ w_i (u_j - û_j) n_r on the reference cell [dim, basis, function]."""
        rules, normals = facet_quadrature(self.interior.cell, degree)
        jumps = self.jumps(degree)
        total = np.zeros((normals.shape[1], self.element.num_basis, self.num_functions))
        for rule, normal, jump in zip(rules, normals, jumps, strict=True):
            test = self.element.tabulate(rule.points, 0)[0]
            total += normal[:, None, None] * np.einsum("q,qi,qj->ij", rule.weights, test, jump)
        return total

    def jumps(self, degree: int) -> np.ndarray:
        """u - û [facet, point, function] at the points of the facets' rules of a degree."""
        values = self.trace_values(degree)
        rules = facet_quadrature(self.interior.cell, degree)[0]
        inside = np.stack([self.interior.tabulate(rule.points, 0)[0] for rule in rules])
        values[:, :, : self.interior.num_basis] = inside
        values[:, :, self.interior.num_basis :] *= -1
        return values

    def trace_values(self, degree: int) -> np.ndarray:
        """û [facet, point, function] at the points of the facets' rules of a degree; interior functions have none."""
        on_facet = self.trace.facet_table(degree)
        count, nodes = on_facet.shape
        facets = self.trace.num_basis // nodes
        values = np.zeros((facets, count, self.num_functions))
        for facet in range(facets):
            first = self.interior.num_basis + facet * nodes
            values[facet, :, first : first + nodes] = on_facet
        return values

    def table(self, points: np.ndarray) -> np.ndarray:
        """q̃ [dim, point, function] at points [point, dim] of the reference cell."""
        return np.einsum("qk,rkj->rqj", self.element.tabulate(points, 0)[0], self.gradient, optimize=True)
