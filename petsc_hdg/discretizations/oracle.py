"""Plain numpy evaluation of a physics on cells and facets: what the oracles of schemes have in common.

It uses the reference elements and the interpreter of the physics, not the generated tables or text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..reference import table_of


@dataclass(frozen=True)
class State:
    """Values at which a scheme is evaluated.

    u, u_t, du [cell, dof], or a dict of cells: in basix' order, components fastest, field by field; du: direction of
    the Jacobian, or None.
    aux [row, cell]; constants [constant]; sigma [component, facet, cell] penalties of interior penalty; least
    [component, cell] least traces of the diffusivity, where penalties see them.
    """

    u: np.ndarray | dict
    aux: np.ndarray
    constants: np.ndarray
    sigma: np.ndarray | None = None
    t: float = 0.0
    shift: float = 0.0
    u_t: np.ndarray | dict | None = None
    du: np.ndarray | dict | None = None
    least: np.ndarray | None = None


@dataclass(frozen=True)
class Side:
    """The state in a cell at a point: where the cell sees it, x [dim]; u, u_t [component], u_x [component, dim];
    a, a_x auxiliary; the same of a direction, or None.
    """

    x: np.ndarray
    u: np.ndarray
    u_t: np.ndarray
    u_x: np.ndarray
    a: np.ndarray
    a_x: np.ndarray
    du: np.ndarray | None = None
    du_t: np.ndarray | None = None
    du_x: np.ndarray | None = None


@dataclass
class Points:
    """Points of a cell or facet: x, normal [point, dim]; weight [point] with its measure, determinant [point] of the
    Jacobian; tables: value [point, basis] and gradient [point, basis, dim] in the physical frame per field; sides: the
    state at each.
    """

    x: np.ndarray
    weight: np.ndarray
    normal: np.ndarray
    determinant: np.ndarray
    tables: list[tuple[np.ndarray, np.ndarray]]
    sides: list[Side]

    @property
    def each(self):
        """(side, x, normal) of each point."""
        return zip(self.sides, self.x, self.normal, strict=True)

    @property
    def seen(self):
        """(side, normal) of each point."""
        return zip(self.sides, self.normal, strict=True)


@dataclass(frozen=True)
class Frame:
    """Points of a cell or facet: x, where the cell sees them, normal [point, dim]; weight [point] with its measure;
    inverse Jacobians [point, reference, physical], determinant [point].
    """

    x: np.ndarray
    seen: np.ndarray
    normal: np.ndarray
    weight: np.ndarray
    inverse: np.ndarray
    determinant: np.ndarray


class RuleOracle:
    """A physics at points of a discretization's cells and facets, in physical space; rule 0 is that of the cell, 1 + f
    that of its facet f."""

    def __init__(self, discretization):
        self.discretization = discretization
        self.interpreter = discretization.physics.interpreter(discretization.dim)
        self._tables: dict[tuple, np.ndarray] = {}

    @property
    def _facet_rules(self):
        return self.discretization.facet_rules

    @cached_property
    def _rules(self) -> list:
        return [self.discretization.quadrature, *self._facet_rules[0]]

    def _table(self, element, rule: int, seen: bool = False) -> np.ndarray:
        """Functions [1 + dim, point, function] of an element at the points of a rule, or where cells see them."""
        if (element, rule, seen) not in self._tables:
            disc, points = self.discretization, self._rules[rule].points
            cell = [disc.mesh.parts[0].cell, *disc.facet_cells][rule]
            self._tables[element, rule, seen] = table_of(element, disc.seen(points, cell) if seen else points, cell)
        return self._tables[element, rule, seen]

    def _corners(self, cell: int) -> np.ndarray:
        """Geometry nodes [node, dim] of a cell."""
        geometry = self.discretization.mesh.geometry
        return geometry.nodes[geometry.cell_nodes[cell]]

    def _frame(self, cell: int, rule: int) -> Frame:
        """The points of a rule in a cell."""
        element, nodes = self.discretization.geometry_element, self._corners(cell)
        table = self._table(element, rule)
        jacobian = np.einsum("rqb,bd->qdr", table[1:], nodes)
        inverse, determinant = np.linalg.inv(jacobian), np.abs(np.linalg.det(jacobian))
        weight = self._rules[rule].weights * determinant
        normal = np.zeros((len(weight), self.discretization.dim))
        if rule:
            normal = self._facet_rules[1][rule - 1] @ inverse  # Nanson's formula
            length = np.linalg.norm(normal, axis=1)
            weight, normal = weight * length, normal / length[:, None]
        return Frame(
            table[0] @ nodes, self._table(element, rule, True)[0] @ nodes, normal, weight, inverse, determinant
        )

    def _auxiliary(self, rule: int, inverse: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Auxiliary values [point, component] and gradients [point, component, dim] at the points of a rule."""
        auxiliary = self.discretization.auxiliary
        (value, gradient), count = _physical(self._table(auxiliary.element, rule), inverse), auxiliary.num_components
        a, a_x = np.zeros((len(value), count)), np.zeros((len(value), count, gradient.shape[2]))
        for k in range(count):
            given = rows[auxiliary.starts[k] : auxiliary.starts[k + 1]]
            if len(given) == 1:
                a[:, k] = given[0]
            else:
                a[:, k], a_x[:, k] = value @ given, np.einsum("qbd,b->qd", gradient, given)
        return a, a_x

    def _fluxes(self, side: Side, s: State):
        """f0 [component], f1 [component, dim] of the physics, or their derivatives along the side's direction."""
        state = side.u, side.u_t, side.u_x
        if side.du is None:
            return self.interpreter.pw_residual(*state, side.a, side.a_x, s.t, side.x, s.constants)
        direction = side.du, side.du_t, side.du_x
        return self.interpreter.pw_jacobian(*state, *direction, side.a, side.a_x, s.t, s.shift, side.x, s.constants)

    def _natural(self, condition: int, side: Side, x, n, s: State) -> tuple[np.ndarray, np.ndarray]:
        """The same of a natural condition."""
        state = condition, side.u, side.u_t, side.u_x
        if side.du is None:
            return self.interpreter.pw_boundary(*state, side.a, side.a_x, s.t, x, n, s.constants)
        given = side.du, side.du_t, side.du_x, side.a, side.a_x, s.t, s.shift
        return self.interpreter.pw_boundary_jacobian(*state, *given, x, n, s.constants)


class CellOracle(RuleOracle):
    """Integrals over cells and facets of a discretization with element functions in each cell."""

    def volume(self, cell: int, state: State) -> np.ndarray:
        """Residual [dof] of a cell's interior, or the product of its Jacobian with state.du."""
        points = self._points(cell, 0, state)
        return self._tested(points, [self._fluxes(side, state) for side in points.sides])

    # Points --------------------------------------------------------------------------------------------------------

    def _points(self, cell: int, rule: int, s: State) -> Points:
        """Points of the cell (rule 0) or of its facet `rule` - 1."""
        disc, frame = self.discretization, self._frame(cell, rule)
        functions = [_physical(self._table(space.element, rule), frame.inverse) for space in disc.spaces]
        u, u_x = self._evaluated(functions, s.u[cell])
        u_t = np.zeros_like(u) if s.u_t is None else self._evaluated(functions, s.u_t[cell])[0]
        parts = [frame.seen, u, u_t, u_x, *self._auxiliary(rule, frame.inverse, s.aux[:, cell])]
        if s.du is not None:
            du, du_x = self._evaluated(functions, s.du[cell])
            parts += [du, s.shift * du, du_x]
        sides = [Side(*at) for at in zip(*parts, strict=True)]
        return Points(frame.x, frame.weight, frame.normal, frame.determinant, functions, sides)

    def _evaluated(self, functions, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values [point, component] and gradients [point, component, dim] from coefficients [dof]."""
        found = []
        for s, (value, gradient) in zip(self.discretization.spaces, functions, strict=True):
            block = values[s.first_dof : s.first_dof + s.num_dofs].reshape(-1, s.components)
            found.append((value @ block, np.einsum("qbd,bc->qcd", gradient, block)))
        return tuple(np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))

    def _tested(self, points: Points, fluxes) -> np.ndarray:
        """Σ weight (φ·f0 + ∇φ:f1) over points for each test function [dof]."""
        f0, f1 = (np.array([flux[k] for flux in fluxes]) for k in range(2))
        f1, rows = f1.reshape(*f0.shape, -1), []
        for s, (value, gradient) in zip(self.discretization.spaces, points.tables, strict=True):
            own = slice(s.first_component, s.first_component + s.components)
            row = np.einsum("q,qb,qc->bc", points.weight, value, f0[:, own], optimize=True)
            row += np.einsum("q,qbd,qcd->bc", points.weight, gradient, f1[:, own], optimize=True)
            rows.append(row.ravel())
        return np.concatenate(rows)


def _physical(table: np.ndarray, inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values [point, basis] and gradients [point, basis, dim] from a table and inverse Jacobians [point, reference,
    physical]."""
    return table[0], np.einsum("rqb,qrd->qbd", table[1:], inverse)


class Oracle(CellOracle):
    """Element vectors of cells and facets of a ContinuousGalerkin discretization."""

    def facet(self, cell: int, facet: int, condition: int, state: State) -> np.ndarray:
        """Residual [dof] of a natural condition on a facet of a cell, or the product with state.du."""
        points = self._points(cell, 1 + facet, state)
        return self._tested(points, [self._natural(condition, *at, state) for at in points.each])
