"""Plain numpy evaluation of continuous Galerkin on a few cells: the oracle that every kernel is compared with.

It uses the reference element and the interpreter of the physics, not the generated tables or text.
"""

from __future__ import annotations

import numpy as np

from ...reference import facet_quadrature


class Oracle:
    """Element vectors and matrices of cells and facets of a ContinuousGalerkin discretization.

    coefficients u, u_t, du are [dof] of one cell; aux [row]; constants [constant].
    """

    def __init__(self, discretization):
        self.discretization = discretization
        self.interpreter = discretization.physics.interpreter(discretization.dim)
        self._kept: dict[tuple, np.ndarray] = {}  # tables of elements at the points of rules

    def residual(self, cell: int, u, aux, constants, t=0.0, u_t=None) -> np.ndarray:
        """Element vector [dof]."""
        u_t = np.zeros_like(u) if u_t is None else u_t
        rule = self.discretization.quadrature
        out = np.zeros(len(u))
        for p, weight in self._points(rule, cell, aux):
            f0, f1 = self.interpreter.pw_residual(*p.state(u, u_t), p.a, p.a_x, t, p.x, constants)
            out += weight * p.measure * p.test(f0, f1)
        return out

    def action(self, cell: int, u, du, aux, constants, t=0.0, shift=0.0, u_t=None) -> np.ndarray:
        """Jacobian at u applied to du [dof]."""
        u_t = np.zeros_like(u) if u_t is None else u_t
        rule = self.discretization.quadrature
        out = np.zeros(len(u))
        for p, weight in self._points(rule, cell, aux):
            directions = p.state(du, shift * du)
            f0, f1 = self.interpreter.pw_jacobian(*p.state(u, u_t), *directions, p.a, p.a_x, t, shift, p.x, constants)
            out += weight * p.measure * p.test(f0, f1)
        return out

    def facet_residual(self, cell: int, facet: int, condition: int, u, aux, constants, t=0.0, u_t=None) -> np.ndarray:
        """Element vector [dof] of the boundary integral over a facet of a cell."""
        u_t = np.zeros_like(u) if u_t is None else u_t
        out = np.zeros(len(u))
        for p, weight, n in self._facet_points(cell, facet, aux):
            f0, f1 = self.interpreter.pw_boundary(condition, *p.state(u, u_t), p.a, p.a_x, t, p.x, n, constants)
            out += weight * p.test(f0, f1)
        return out

    def facet_action(
        self, cell: int, facet: int, condition: int, u, du, aux, constants, t=0.0, shift=0.0, u_t=None
    ) -> np.ndarray:
        """Its Jacobian at u applied to du [dof]."""
        u_t = np.zeros_like(u) if u_t is None else u_t
        out = np.zeros(len(u))
        for p, weight, n in self._facet_points(cell, facet, aux):
            directions = p.state(du, shift * du)
            f0, f1 = self.interpreter.pw_boundary_jacobian(
                condition, *p.state(u, u_t), *directions, p.a, p.a_x, t, shift, p.x, n, constants
            )
            out += weight * p.test(f0, f1)
        return out

    def _points(self, rule, cell, aux):
        for k, weight in enumerate(rule.weights):
            yield (
                _Point(self.discretization, cell, lambda element, k=k: self._table(element, rule.points)[:, k], aux),
                weight,
            )

    def _table(self, element, points: np.ndarray) -> np.ndarray:
        """Values and reference gradients [1 + dim, point, basis], once: elements of high degree take long."""
        key = (element, points.tobytes())
        if key not in self._kept:
            self._kept[key] = element.tabulate(points)
        return self._kept[key]

    def _facet_points(self, cell, facet, aux):
        disc = self.discretization
        rules, normals = facet_quadrature(disc.mesh.cell, disc.quadrature_degree)
        for p, weight in self._points(rules[facet], cell, aux):
            normal = np.linalg.solve(p.jacobian.T, normals[facet])
            length = np.linalg.norm(normal)
            yield p, weight * p.measure * length, normal / length


class _Point:
    """A point of a cell: geometry, basis and auxiliary values there.

    table_of: function of an element that gives its values and reference gradients [1 + dim, basis] at the point.
    """

    def __init__(self, discretization, cell: int, table_of, aux):
        geometry = discretization.mesh.geometry
        corners = geometry.nodes[geometry.cell_nodes[cell]]
        table = table_of(discretization.geometry_element)
        self.spaces = discretization.spaces
        self.dim = discretization.dim
        self.x = table[0] @ corners
        self.jacobian = corners.T @ table[1:].T  # [physical, reference]
        self.measure = abs(np.linalg.det(self.jacobian))
        self.tables = [self._physical(table_of(s.element)) for s in self.spaces]
        self._auxiliary(discretization.auxiliary, aux, table_of)

    def _physical(self, table):
        """Values [basis] and physical gradients [basis, dim] of a table."""
        return table[0], np.linalg.solve(self.jacobian.T, table[1:]).T

    def _auxiliary(self, auxiliary, aux, table_of) -> None:
        values, gradients = self._physical(table_of(auxiliary.element))
        self.a, self.a_x = np.zeros(auxiliary.num_components), np.zeros((auxiliary.num_components, self.dim))
        for k in range(auxiliary.num_components):
            rows = aux[auxiliary.starts[k] : auxiliary.starts[k + 1]]
            if len(rows) == 1:
                self.a[k] = rows[0]
            else:
                self.a[k], self.a_x[k] = rows @ values, rows @ gradients

    def state(self, u, u_t) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """u [component], u_t [component], u_x [component, dim] from coefficients [dof]."""
        parts = [self._field(s, t, u) for s, t in zip(self.spaces, self.tables, strict=True)]
        rates = [self._field(s, t, u_t) for s, t in zip(self.spaces, self.tables, strict=True)]
        return (
            np.concatenate([p[0] for p in parts]),
            np.concatenate([r[0] for r in rates]),
            np.concatenate([p[1] for p in parts]),
        )

    def _field(self, space, table, u):
        block = u[space.first_dof : space.first_dof + space.num_dofs].reshape(-1, space.components)
        return table[0] @ block, block.T @ table[1]

    def test(self, f0, f1) -> np.ndarray:
        """φ·f0 + ∇φ:f1 for each test function [dof]."""
        parts = []
        for space, (values, gradients) in zip(self.spaces, self.tables, strict=True):
            components = slice(space.first_component, space.first_component + space.components)
            block = np.outer(values, np.asarray(f0)[components])
            if f1 is not None:
                block = block + gradients @ np.asarray(f1).reshape(-1, self.dim)[components].T
            parts.append(block.ravel())
        return np.concatenate(parts)
