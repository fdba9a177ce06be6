"""Plain numpy evaluation of interior penalty on a few cells: the oracle that every kernel is compared with.

It uses the reference element and the interpreter of the physics, not the generated tables or text, and finds the points
of a neighbour's facet by their places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...codegen.preamble import REAL_TYPE
from ...reference import ReferenceElement


@dataclass(frozen=True)
class State:
    """Values of extended cells at which interior penalty is evaluated.

    u, u_t, du [cell, dof]: in basix' order, components fastest, field by field; du: direction of the Jacobian, or None.
    aux [row, cell]; constants [constant]; sigma [component, facet, cell] penalties.
    """

    u: np.ndarray
    aux: np.ndarray
    constants: np.ndarray
    sigma: np.ndarray
    t: float = 0.0
    shift: float = 0.0
    u_t: np.ndarray | None = None
    du: np.ndarray | None = None


@dataclass(frozen=True)
class _Side:
    """The state on one side of a facet at a point: u, u_t [component], u_x [component, dim]; a, a_x auxiliary; the same
    of a direction, or None.
    """

    u: np.ndarray
    u_t: np.ndarray
    u_x: np.ndarray
    a: np.ndarray
    a_x: np.ndarray
    du: np.ndarray | None = None
    du_t: np.ndarray | None = None
    du_x: np.ndarray | None = None


class PenaltyOracle:
    """Rows of the residual, or of the Jacobian's product, of cells of an InteriorPenalty discretization."""

    def __init__(self, discretization):
        self.discretization = discretization
        self.interpreter = discretization.physics.interpreter(discretization.dim)

    def rows(self, cell: int, state: State) -> np.ndarray:
        """Residual [dof] of a cell with all of its facets, or the product with state.du."""
        return self.volume(cell, state) + sum(self.facet(cell, f, state) for f in range(self._num_facets))

    def volume(self, cell: int, state: State) -> np.ndarray:
        """The part [dof] of the cell's interior."""
        points = self._points(cell, 0, state)
        fluxes = [self._fluxes(side, state, x) for side, x in zip(points.sides, points.x, strict=True)]
        return self._tested(points, fluxes)

    def facet(self, cell: int, facet: int, state: State) -> np.ndarray:
        """The part [dof] of one of its facets."""
        behind = self.discretization.neighbours.neighbour[cell, facet]
        if behind == -1:
            return np.zeros(state.u.shape[1])
        points, sigma = self._points(cell, 1 + facet, state), state.sigma[:, facet, cell]
        if behind < 0:
            kind = self.discretization.neighbours.kinds[-2 - behind]
            fluxes = [self._boundary(kind, *at, sigma, state) for at in points.each]
        else:
            near = self.discretization.neighbours
            others, first = self._others(points, behind, near.facet[cell, facet], state), near.wall[cell, facet]
            seen = near.kinds[first - 1 : first + 1, -1] if first else (0, 0)
            each = zip(points.each, others, strict=True)
            fluxes = [self._interior(*at, other, seen, sigma, state) for at, other in each]
        return self._tested(points, fluxes)

    # Fluxes at a point ---------------------------------------------------------------------------------------------

    def _fluxes(self, side: _Side, s: State, x):
        """f0 [component], f1 [component, dim] of the physics, or their derivatives along the direction."""
        if s.du is None:
            return self.interpreter.pw_residual(side.u, side.u_t, side.u_x, side.a, side.a_x, s.t, x, s.constants)
        directions = side.du, side.du_t, side.du_x
        return self.interpreter.pw_jacobian(
            side.u, side.u_t, side.u_x, *directions, side.a, side.a_x, s.t, s.shift, x, s.constants
        )

    def _interior(self, own: _Side, x, n, other: _Side, seen, sigma, s: State):
        """With natural conditions that own and other side see (bits): of means of u, tested by the mean of both sides,
        and of gradients of the side, tested by those of that side."""
        f0, f1 = self._joined(own, other, sigma, n, x, s, adjoint=0.5)
        for side, behind, normal, bits in ((own, other, n, seen[0]), (other, own, -n, seen[1])):
            names = ("u", "u_t", *(("du", "du_t") if s.du is not None else ()))
            mean = replace(side, **{k: (getattr(side, k) + getattr(behind, k)) / 2 for k in names})
            for condition in range(len(self.discretization.physics.natural)):
                if bits >> condition & 1:
                    given, slopes = self._natural(condition, mean, x, normal, s)
                    f0, f1 = f0 + given / 2, f1 + (slopes if side is own else 0.0)
        return f0, f1

    def _boundary(self, kind, own: _Side, x, n, sigma, s: State):
        """Nitsche's method in components with Dirichlet data, natural fluxes in the others; f1 of conditions in all."""
        f0, f1 = self._joined(own, self._data(kind, own, x, s), sigma, n, x, s, adjoint=1.0)
        free = kind[:-1] < 0
        f0[free] = 0
        for condition in range(len(self.discretization.physics.natural)):
            if kind[-1] >> condition & 1:
                given, slopes = self._natural(condition, own, x, n, s)
                f0[free] += given[free]
                f1 += slopes
        return f0, f1

    def _natural(self, condition: int, side: _Side, x, n, s: State) -> tuple[np.ndarray, np.ndarray]:
        state = (condition, side.u, side.u_t, side.u_x)
        if s.du is None:
            return self.interpreter.pw_boundary(*state, side.a, side.a_x, s.t, x, n, s.constants)
        directions = side.du, side.du_t, side.du_x
        return self.interpreter.pw_boundary_jacobian(
            *state, *directions, side.a, side.a_x, s.t, s.shift, x, n, s.constants
        )

    def _data(self, kind, own: _Side, x, s: State) -> _Side:
        """What the boundary gives as the other side: data g, without a derivative, and the own gradient."""
        u, du = own.u.copy(), None if own.du is None else own.du.copy()
        for component in np.flatnonzero(kind[:-1] >= 0):
            u[component] = self.interpreter.pw_dirichlet(kind[component], s.t, x, s.constants)[component]
            if du is not None:
                du[component] = 0
        return replace(own, u=u, du=du)

    def _joined(self, own: _Side, other: _Side, sigma, n, x, s: State, adjoint: float):
        """F0 = -{f1}·n + σ[u] + ½ (f0(lifted) - f0),  F1 = θ adjoint (f1(lifted) - f1), lifted: at ∇u - [u] n."""
        jump = own.u - other.u if s.du is None else own.du - other.du
        f0, f1 = self._fluxes(own, s, x)
        other_f1 = self._fluxes(other, s, x)[1]
        lifted_f0, lifted_f1 = self._fluxes(_lifted(own, other, n), s, x)
        joined = -0.5 * (f1 + other_f1) @ n + sigma * jump + 0.5 * (lifted_f0 - f0)
        return joined, self.discretization.theta * adjoint * (lifted_f1 - f1)

    # Penalties -----------------------------------------------------------------------------------------------------

    def penalty(self, cell: int, facet: int, state: State) -> np.ndarray:
        """σ [component] of a facet at a state: what InteriorPenalty.penalty_formula says."""
        disc = self.discretization
        behind = disc.neighbours.neighbour[cell, facet]
        far = (behind, disc.neighbours.facet[cell, facet])
        sides = [(cell, facet, *far)] if behind != -1 else []
        if behind >= 0:
            sides.append((*far, cell, facet))
        strengths, speeds = np.zeros((2, 0, disc.physics.num_components))
        total = np.zeros(disc.physics.num_components)
        for side in sides:
            strength, speed, signed = self._strength(*side, state)
            strengths, speeds = np.vstack([strengths, strength]), np.vstack([speeds, speed])
            total += signed
        factor = disc.penalty_factor * (2 if behind < -1 and not disc.is_paper else 1)
        drift = (0.5 if disc.physics.is_linear else 0.0) * speeds.max(axis=0, initial=0.0)
        diffusive = factor * strengths.max(axis=0, initial=0.0)
        epsilon = np.finfo(REAL_TYPE[disc.options.precision]).eps
        is_negative = (total < 0) & (diffusive > 16 * epsilon * drift)  # rounding has no sign
        return np.where(is_negative, -1, 1) * (diffusive + drift)

    def _strength(self, cell: int, facet: int, behind: int, place: int, s: State) -> tuple[np.ndarray, ...]:
        """Of one side of a facet, with what lies behind it, [component]: largest normal diffusivity over a length,
        largest speed, and the sum of diffusivities over the points."""
        disc, points = self.discretization, self._points(cell, 1 + facet, s)
        diffusivity, speed, signed = np.zeros((3, disc.physics.num_components))
        beyond = self._beyond(points, self._rules[1 + facet], behind, place, s) if disc.steep else ()
        for number, (p, x, n) in enumerate([*points.each, *beyond]):
            g1, g2, g3 = self.interpreter.g_blocks(p.u, p.u_t, p.u_x, p.a, p.a_x, s.t, 0.0, x, s.constants)[1:]
            normal = np.einsum("cjde,d,e->cj", g3, n, n)
            signed += np.diag(normal) if number < len(points.x) else 0.0
            normal = np.abs(normal)
            for space in disc.spaces:
                own = slice(space.first_component, space.first_component + space.components)
                diffusivity[own] = np.fmax(diffusivity[own], normal[own, own].sum(axis=1).max())
            along = np.abs(np.einsum("ccd,d->c", g1, n)) + np.abs(np.einsum("ccd,d->c", g2, n))
            speed = np.maximum(speed, along)
        return diffusivity / self._length(cell, facet, points), speed, signed

    def _beyond(self, points: _Points, rule, behind: int, place: int, s: State):
        """(side, x, normal) of each point with the values behind it and a share of the jump in the gradient."""
        disc = self.discretization
        if behind >= 0:
            others = self._others(points, behind, place, s)
        else:
            kind = disc.neighbours.kinds[-2 - behind]
            others = [self._data(kind, p, x, s) for p, x, _ in points.each]
        ratios = points.weight / (points.determinant * rule.weights) * rule.weights.sum() / self._rules[0].weights.sum()
        for (p, x, n), other, ratio in zip(points.each, others, ratios, strict=True):
            yield replace(p, u=other.u, u_x=p.u_x - disc.steep * ratio * np.outer(p.u - other.u, n)), x, n

    def _length(self, cell: int, facet: int, points: _Points) -> float:
        """One over the given number, the facet's diameter with -sipg_penalty paper, or the least |K| / |F|."""
        disc = self.discretization
        if disc.side_numbers is not None:
            return 1 / disc.side_numbers[facet, cell]
        if disc.is_paper:
            corners = self._corners(cell)[disc.orientations.corners[facet]]
            return np.linalg.norm(corners[:, None] - corners, axis=2).max()
        rule = self._rules[1 + facet]
        least = (points.determinant * rule.weights / points.weight).min()
        return least * self._rules[0].weights.sum() / rule.weights.sum()

    # Points --------------------------------------------------------------------------------------------------------

    @property
    def _num_facets(self) -> int:
        return self.discretization.num_facets_of_cell

    @cached_property
    def _rules(self) -> list:
        """Rules of the cell, then of each facet."""
        return [self.discretization.quadrature, *self.discretization.facet_rules[0]]

    @cached_property
    def _tables(self) -> list[tuple[np.ndarray, ...]]:
        """Element, geometry and auxiliary functions [1 + dim, point, function] at the points of each rule."""
        disc = self.discretization
        geometry = ReferenceElement(disc.mesh.cell, disc.mesh.geometry.degree)
        elements = disc.element, geometry, disc.auxiliary.element
        return [tuple(e.tabulate(rule.points) for e in elements) for rule in self._rules]

    def _corners(self, cell: int) -> np.ndarray:
        """Geometry nodes [node, dim] of an extended cell."""
        return self.discretization.neighbours.nodes[self.discretization.neighbours.cell_nodes[cell]]

    def _points(self, cell: int, rule: int, s: State) -> _Points:
        """Points of the cell (rule 0) or of its facet `rule` - 1."""
        disc = self.discretization
        element, geometry, auxiliary = self._tables[rule]
        nodes = self._corners(cell)
        jacobian = np.einsum("rqb,bd->qdr", geometry[1:], nodes)
        inverse = np.linalg.inv(jacobian)
        weight = self._rules[rule].weights * np.abs(np.linalg.det(jacobian))
        normal = np.zeros((len(weight), disc.dim))
        if rule:
            normal = disc.facet_rules[1][rule - 1] @ inverse  # Nanson's formula
            length = np.linalg.norm(normal, axis=1)
            weight, normal = weight * length, normal / length[:, None]
        points = _Points(geometry[0] @ nodes, weight, normal, element[0], _physical(element, inverse))
        points.determinant = np.abs(np.linalg.det(jacobian))
        values = (None if v is None else self._coefficients(v[cell]) for v in (s.u, s.u_t, s.du))
        points.set_sides(*values, s.shift, *self._auxiliary(auxiliary, inverse, s.aux[:, cell]))
        return points

    def _others(self, points: _Points, behind: int, facet: int, s: State) -> list[_Side]:
        """The sides of the cell behind a facet at its points."""
        theirs = self._points(behind, 1 + facet, s)
        distance = np.linalg.norm(points.x[:, None] - theirs.x[None], axis=2)
        match = distance.argmin(axis=1)
        assert distance.min(axis=1).max() < 1e-8 * np.ptp(self._corners(behind), axis=0).max(), "facets do not match"
        return [theirs.sides[k] for k in match]

    def _coefficients(self, values: np.ndarray) -> np.ndarray:
        """Values [dof] of a cell as [basis, component]."""
        parts = [
            values[s.first_dof : s.first_dof + s.num_dofs].reshape(-1, s.components) for s in self.discretization.spaces
        ]
        return np.concatenate(parts, axis=1)

    def _auxiliary(self, table, inverse, rows) -> tuple[np.ndarray, np.ndarray]:
        """Auxiliary values [point, component] and gradients [point, component, dim]."""
        auxiliary, (count, dim) = self.discretization.auxiliary, inverse.shape[:2]
        a, a_x = np.zeros((count, auxiliary.num_components)), np.zeros((count, auxiliary.num_components, dim))
        for k in range(auxiliary.num_components):
            values = rows[auxiliary.starts[k] : auxiliary.starts[k + 1]]
            if len(values) == 1:
                a[:, k] = values[0]
            else:
                a[:, k], a_x[:, k] = table[0] @ values, np.einsum("qbd,b->qd", _physical(table, inverse), values)
        return a, a_x

    def _tested(self, points: _Points, fluxes) -> np.ndarray:
        """Σ weight (φ·f0 + ∇φ:f1) over points for each test function [dof]."""
        f0, f1 = (np.array([flux[k] for flux in fluxes]) for k in range(2))
        f1 = f1.reshape(*f0.shape, -1)
        rows = np.einsum("q,qb,qc->bc", points.weight, points.value, f0, optimize=True)
        rows += np.einsum("q,qbd,qcd->bc", points.weight, points.gradient, f1, optimize=True)
        spaces = self.discretization.spaces
        return np.concatenate([rows[:, s.first_component : s.first_component + s.components].ravel() for s in spaces])


class _Points:
    """Points of a cell or facet: x, normal [point, dim]; weight [point] with its measure; value [point, basis]
    and gradient [point, basis, dim] in the physical frame; sides: the state at each.
    """

    def __init__(self, x, weight, normal, value, gradient):
        self.x, self.weight, self.normal, self.value, self.gradient = x, weight, normal, value, gradient
        self.sides: list[_Side] = []

    def set_sides(self, u, u_t, du, shift: float, a, a_x) -> None:
        """Evaluate coefficients [basis, component]."""
        values, slopes = self.value @ u, np.einsum("qbd,bc->qcd", self.gradient, u)
        rates = np.zeros_like(values) if u_t is None else self.value @ u_t
        self.sides = [_Side(*side) for side in zip(values, rates, slopes, a, a_x, strict=True)]
        if du is not None:
            steps, rises = self.value @ du, np.einsum("qbd,bc->qcd", self.gradient, du)
            self.sides = [
                replace(side, du=step, du_t=shift * step, du_x=rise)
                for side, step, rise in zip(self.sides, steps, rises, strict=True)
            ]

    @property
    def each(self):
        """(side, x, normal) of each point."""
        return zip(self.sides, self.x, self.normal, strict=True)


def _physical(table: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Gradients [point, basis, dim] from a table and inverse Jacobians [point, reference, physical]."""
    return np.einsum("rqb,qrd->qbd", table[1:], inverse)


def _lifted(own: _Side, other: _Side, n) -> _Side:
    """The own side with a gradient that sees the jump."""
    du_x = None if own.du is None else own.du_x - np.outer(own.du - other.du, n)
    return replace(own, u_x=own.u_x - np.outer(own.u - other.u, n), du_x=du_x)
