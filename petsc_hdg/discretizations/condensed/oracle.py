"""Plain numpy evaluation of a condensed scheme (HDG, or CG without its interior functions) on a few cells.

The oracle that every kernel is compared with: it uses the functions that the discretization tabulates and the
interpreter of the physics, not the generated text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...codegen.preamble import REAL_TYPE
from ...database import is_number
from ..oracle import Frame, RuleOracle, Side, State


@dataclass(frozen=True)
class CellTables:
    """Values and gradients in the frame of the reference cell at the points of the rules of cell and facets.

    value     [point, function]               gradient        [point, dim, function]
    trace     [facet, point, function]        trace_gradient  [facet, point, dim, function]
    jump      [facet, point, function] u - û, or None where there is none
    inside    [facet, point, function] u on facets           plain [point, dim, function]  gradients of u alone
    """

    value: np.ndarray
    gradient: np.ndarray
    trace: np.ndarray
    trace_gradient: np.ndarray
    jump: np.ndarray | None
    inside: np.ndarray | None = None
    plain: np.ndarray | None = None


def cell_tables(disc) -> CellTables:
    """Tables of the functions of a condensed discretization: interior ones first, then those of the trace."""
    table, on_facets = disc.operator_table(disc.quadrature.points), disc.facet_operator_table(disc.quadrature_degree)
    found = table[:, 0], table[:, 1:], on_facets[:, :, 0], on_facets[:, :, 1:]
    if not disc.has_jumps:
        return CellTables(*found, None)
    jump = disc.jump_table()
    return CellTables(*found, jump, jump + found[2], disc.test_table()[:, 1:])


class CondensedOracle(RuleOracle):
    """Element vectors and matrices of the cells of a condensed discretization, dof = function * component.

    interior [dof] u of one cell; trace [dof] û of its facets (CG: values of the functions that are not interior);
    aux [row]; constants [constant]; tau [facet, cell, component] where the stabilization follows states.
    tables: of other functions than the discretization's.
    """

    def __init__(self, discretization, tau: np.ndarray | None = None, tables: CellTables | None = None):
        super().__init__(discretization)
        self.given_tau = tau
        self.components = discretization.physics.num_components
        if tables is not None:
            self.tables = tables

    @cached_property
    def tables(self) -> CellTables:
        """Functions at the points of the rules."""
        return cell_tables(self.discretization)

    # Element vectors and matrices ------------------------------------------------------------------------

    def residual(self, cell: int, interior, trace, aux, constants, t=0.0) -> np.ndarray:
        """Element vector [interior dof, then trace dof]."""
        return self.vector(cell, np.concatenate([interior, trace]), aux, constants, t)

    def matrix(self, cell: int, interior, trace, aux, constants, t=0.0) -> np.ndarray:
        """Derivative [dof, dof] of `residual`."""
        return self.derivative(cell, np.concatenate([interior, trace]), aux, constants, t)

    def vector(self, cell: int, state, aux, constants, t=0.0) -> np.ndarray:
        """Element vector [dof] for a state [dof] of all functions."""
        return self._sums(cell, state, aux, constants, t).ravel()

    def derivative(self, cell: int, state, aux, constants, t=0.0) -> np.ndarray:
        """Derivative [dof, dof] of `vector`."""
        return self._sums(cell, state, aux, constants, t, derivative=True).reshape(np.size(state), -1)

    def _sums(self, cell: int, state, aux, constants, t, derivative: bool = False) -> np.ndarray:
        """The element vector [function, component], or its derivative [function, component, function, component]."""
        disc, z = self.discretization, np.asarray(state).reshape(-1, self.components)
        shift = float(constants[-1]) if disc.in_time else 0.0  # d u_t / du: the last constant, where there are rates
        s, along = State(z, aux, constants, t=t, shift=shift), shift if derivative else None
        points = self._cell_points(cell, aux, along)
        out = self._tested(points, [self._fluxes(side, s) for side in points.sides(z)])
        for facet, conditions in self._facets(cell):
            points, place = self._facet_points(cell, facet, aux, along), (cell, facet)
            sides = points.sides(z)
            if disc.has_sides:
                out += self._side(points, sides, conditions, s, place)
            elif points.jump is not None:
                tau, seeds = self.tau(points, t, constants, place), points.seeds(self.components)
                slopes = tau[..., None] * (seeds[-1] - seeds[0])
                out += points.tested(points.jump, slopes if derivative else tau * (points.jump @ z))
            for condition in (k for k in conditions if disc.physics.natural[k].term.kind != "b"):
                each = zip(sides, points.normal, strict=True)
                out += self._tested(points, [self._natural(condition, side, side.x, n, s) for side, n in each])
        return out

    @staticmethod
    def _tested(points: _Points, fluxes) -> np.ndarray:
        """Sum [function, component, …] over points of f0 and f1 there, times functions and their gradients."""
        f0, f1 = (np.array([flux[k] for flux in fluxes]) for k in range(2))
        by_gradients = (points.tested(points.test_gradient[:, d], f1[:, :, d]) for d in range(f1.shape[2]))
        return points.tested(points.value, f0) + sum(by_gradients)

    def _side(self, points: _Points, sides, conditions, s: State, place: tuple[int, int]) -> np.ndarray:
        """Return a facet's part of the element vector [function, component], or its derivative.

        Functions of the cell test -f̂·n, those of the trace f̂·n or a boundary flux; f̂·n = f1(û, q)·n - S (u - û)."""
        fluxes = [k for k in conditions if self.discretization.physics.natural[k].term.kind == "b"]
        found = [self._side_point(points, p, side, fluxes, s, place) for p, side in enumerate(sides)]
        outer, inner = (np.array(each) for each in zip(*found, strict=True))
        return points.tested(points.value, outer) - points.tested(points.inside, inner)

    def _side_point(self, points: _Points, p: int, own: Side, fluxes: list[int], s: State, place):
        """Return what the trace's functions and the cell's test at a point [component], or the derivatives [component,
        direction]."""
        n, interpreter = points.normal[p], self.interpreter
        S, dS = self._matrix(points, p, own, s, place)
        jump = points.inside[p] @ s.u - own.u
        flux = -S @ jump
        if self.discretization.point_flux:
            flux += self._fluxes(replace(own, du=None), s)[1] @ n
        at = own.u, own.u_x, points.inside[p] @ s.u, flux
        data = own.a, own.a_x, s.t, own.x, n, s.constants
        if own.du is None:
            outer = [interpreter.pw_boundary_flux(k, *at, *data) for k in fluxes]
            return np.sum(outer, axis=0) if outer else flux, flux
        du_in = points.seeds(self.components)[-1]
        slope = np.einsum("cek,e,k...->c...", -dS, jump, own.du) - S @ (du_in - own.du)
        if self.discretization.point_flux:
            slope += np.einsum("cd...,d->c...", self._fluxes(own, s)[1], n)
        rates = {"u": own.du, "u_x": own.du_x, "u_in": du_in, "f_hat": slope}
        outer = [interpreter.pw_boundary_flux_jacobian(k, *at, rates, *data) for k in fluxes]
        return np.sum(outer, axis=0) if outer else slope, slope

    def _matrix(self, points: _Points, p: int, own: Side, s: State, place) -> tuple[np.ndarray, np.ndarray]:
        """Stabilization S [component, component] at a point of a facet, and its derivative [.., direction] by û."""
        count, at = self.components, (own.a, own.a_x, s.t, own.x, points.normal[p], s.constants)
        if self.discretization.stabilization_mode != 4:
            return np.diag(self.tau(points, s.t, s.constants, place)[p]), np.zeros((count, count, count))
        given = self.interpreter.pw_stabilization(*at, own.u)
        rate = self.interpreter.pw_stabilization_jacobian(own.u, *at)
        if self.discretization.physics.has_stabilization_matrix:
            return given, rate
        return np.diag(given), np.einsum("ck,ce->cek", rate, np.eye(count))

    def tau(self, points, t, constants, place: tuple[int, int]) -> np.ndarray:
        """Stabilization [point, component] on a facet: the option, what the physics gives, or by diffusivity and speed.

        The last is κ √(Σ (n_d / L_d)²) + √(κ max(0, -∂f0_c/∂u_c)) + the speeds of n·∂f1/∂u + half those of ∂f0/∂∇u·n,
        with κ = |n·∂f1_c/∂∇u_c·n| and L_d the extents of the mesh; of linear physics at u = 0 and q = 0, and 1 where
        that is no positive number, of others `given_tau`.
        place: cell and facet.
        """
        given = self.discretization.options.hdg_tau
        if is_number(given):
            return np.full((len(points.x), self.components), float(given))
        if self.discretization.stabilization_follows:
            cell, facet = place
            return np.broadcast_to(self.given_tau[facet, cell], (len(points.x), self.components))
        places = zip(points.a[:, : points.rates], points.a_x[:, : points.rates], points.x, points.normal, strict=True)
        if self.discretization.physics.has_stabilization:
            pointwise = self.interpreter.pw_stabilization
            return np.array([pointwise(a, a_x, t, x, n, constants) for a, a_x, x, n in places])
        found = np.array([self._automatic_tau(None, None, None, *at, constants, t) for at in places])
        return np.where(np.isfinite(found) & (found > 0), found, 1.0)

    def _automatic_tau(self, u, u_t, u_x, a, a_x, x, n, constants, t) -> np.ndarray:
        g0, g1, g2, g3 = self.interpreter.g_blocks(u, u_t, u_x, a, a_x, t, 0.0, x, constants)
        epsilon = np.finfo(REAL_TYPE[self.discretization.options.precision]).eps
        diffusion = _sum(g3.reshape(*g0.shape, -1) * np.outer(n, n).ravel(), epsilon)
        kappa = np.abs(np.diag(diffusion))
        per_length = np.linalg.norm(n / self.discretization.lengths)
        found = kappa * per_length + np.sqrt(kappa * np.maximum(-np.diag(g0), 0.0))
        return found + _speeds(_sum(g2 * n, epsilon), epsilon) + _speeds(_sum(g1 * n, epsilon), epsilon) / 2

    def following_tau(self, cell: int, state, aux, constants, t=0.0) -> np.ndarray:
        """Automatic stabilization [facet, component] at a state [dof]: the largest of the points of each facet."""
        z, found = np.asarray(state).reshape(-1, self.components), []
        for facet in range(len(self._rules) - 1):
            points = self._facet_points(cell, facet, aux)
            each = zip(points.sides(z), points.normal, strict=True)
            values = np.array(
                [self._automatic_tau(p.u, p.u_t, p.u_x, p.a, p.a_x, p.x, n, constants, t) for p, n in each]
            )
            found.append(np.where(np.isfinite(values), values, 0.0).max(axis=0))
        return np.array(found)

    # Points ----------------------------------------------------------------------------------------------

    def _cell_points(self, cell: int, aux, shift: float | None = None) -> _Points:
        tables, frame = self.tables, self._frame(cell, 0)
        given = self._auxiliary(0, frame.inverse, aux)
        points = _Points(frame, tables.value, tables.gradient, given, self._rates, shift)
        if self.discretization.point_flux:
            points.test_gradient = np.einsum("qrd,qrj->qdj", frame.inverse, tables.plain)
        return points

    @property
    def _rates(self) -> int | None:
        """First auxiliary component of the rates, where there are any."""
        disc = self.discretization
        return disc.physics.num_auxiliary if disc.in_time else None

    def _facet_points(self, cell: int, facet: int, aux, shift: float | None = None) -> _Points:
        tables, frame = self.tables, self._frame(cell, 1 + facet)
        given = self._auxiliary(1 + facet, frame.inverse, aux)
        points = _Points(frame, tables.trace[facet], tables.trace_gradient[facet], given, self._rates, shift)
        if tables.jump is not None:
            points.jump, points.inside = tables.jump[facet], tables.inside[facet]
        return points

    def _facets(self, cell: int):
        """(facet, natural conditions on it) of a cell; only facets that have one, where the scheme has no jumps."""
        owner, facet, condition = self.discretization.natural_facets
        for number in range(len(self._rules) - 1):
            found = condition[(owner == cell) & (facet == number)]
            if len(found) or self.tables.jump is not None:
                yield number, found


class _Points:
    """Points of a cell or facet: weights with their measure, functions, auxiliary values.

    x [point, dim]; value [point, function]; gradient [point, dim, function] in the physical frame; a [point,
    component]; a_x [point, component, dim]; normal [point, dim]; inside [point, function] values of u on a facet, and
    jump, those of u - û; test_gradient [point, dim, function], gradients that test f1.
    rates: first auxiliary component that is one of u_t.   shift: d u_t / du for a derivative, None for values.
    """

    jump = inside = None

    def __init__(self, frame: Frame, value, gradient, auxiliary, rates: int | None, shift: float | None):
        self.rates, self.shift = rates, shift
        self.x, self.weight, self.normal, self.value = frame.seen, frame.weight, frame.normal, value
        self.a, self.a_x = auxiliary
        self.gradient = self.test_gradient = np.einsum("qrd,qrj->qdj", frame.inverse, gradient)

    @property
    def _trials(self) -> np.ndarray:
        """Functions [point, number, function] of the state at a point: of u, its gradient and u inside."""
        inside = () if self.inside is None else (self.inside[:, None],)
        return np.concatenate([self.value[:, None], self.gradient, *inside], axis=1)

    def seeds(self, components: int) -> np.ndarray:
        """Directions [number, component, direction] of the state at a point, one by one."""
        count = self._trials.shape[1]
        return np.eye(count * components).reshape(count, components, -1)

    def sides(self, z: np.ndarray) -> list[Side]:
        """The state at each point for coefficients [function, component]; rates are auxiliary data."""
        u, u_x = self.value @ z, np.einsum("qdj,jc->qcd", self.gradient, z)
        a, a_x, count = self.a[:, : self.rates], self.a_x[:, : self.rates], len(u)
        u_t = [None] * count if self.rates is None else self.a[:, self.rates :]
        along = [None] * 3
        if self.shift is not None:
            du, *du_x = self.seeds(z.shape[1])[: 1 + u_x.shape[2]]
            along = [du, self.shift * du, np.stack(du_x, axis=1)]
        return [Side(*at, *along) for at in zip(self.x, u, u_t, u_x, a, a_x, strict=True)]

    def tested(self, functions: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Sum [function, component] over points of functions [point, function] times values [point, component].

        For a derivative, values [point, component, direction] give [function, component, function, component].
        """
        if self.shift is not None:
            trials = self._trials
            slopes = values.reshape(*values.shape[:2], trials.shape[1], -1)
            values = np.einsum("qcre,qrj->qcje", slopes, trials, optimize=True)
        return np.tensordot(self.weight[:, None] * functions, values, (0, 0))


def _sum(parts: np.ndarray, epsilon: float) -> np.ndarray:
    """Sums over the last axis, 0 where parts cancel but for rounding: n·v along a stream."""
    found = parts.sum(axis=-1)
    return np.where(np.abs(found) > 64 * epsilon * np.abs(parts).sum(axis=-1), found, 0.0)


def _speeds(matrix: np.ndarray, epsilon: float) -> np.ndarray:
    """Row sums [component] of the eighth power of a matrix, to the eighth root: near its largest eigenvalue. Entries
    that are rounding, as of a normal along an axis, would become visible in the root, and count as 0."""
    most = np.abs(matrix).max()
    scaled = np.where(np.abs(matrix) > 64 * epsilon * most, matrix, 0.0) / (most or 1.0)
    return most * np.abs(np.linalg.matrix_power(scaled, 8)).sum(axis=1) ** 0.125
