"""Plain numpy evaluation of a condensed scheme (HDG, or CG without its interior functions) on a few cells.

The oracle that every kernel is compared with: it uses the reference elements and the interpreter of the physics, not
the generated tables or text.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...codegen.preamble import REAL_TYPE
from ...options import is_number
from ..oracle import Frame, RuleOracle
from ..trace.element import TraceElement
from .tables import LagrangeFunctions, LiftedFunctions, MixedFunctions


class CondensedOracle(RuleOracle):
    """Element vectors and matrices of the cells of a condensed discretization, dof = function * component.

    interior [dof] u of one cell; trace [dof] û of its facets (CG: values of the functions that are not interior);
    aux [row]; constants [constant]; tau [facet, cell, component] where the stabilization follows states.
    """

    def __init__(self, discretization, mixed: bool = False, tau: np.ndarray | None = None):
        super().__init__(discretization)
        self.given_tau = tau
        self.components = discretization.physics.num_components
        self.functions = _functions(discretization, mixed)
        self.num_eliminated = self.functions.num_interior * self.components

    @cached_property
    def tables(self):
        """Functions at the points of the rules."""
        return self.functions.tables(self.discretization.quadrature_degree)

    # Element vectors and matrices ------------------------------------------------------------------------

    def residual(self, cell: int, interior, trace, aux, constants, t=0.0) -> np.ndarray:
        """Element vector [interior dof, then trace dof]."""
        return self.vector(cell, np.concatenate([interior, trace]), aux, constants, t)

    def vector(self, cell: int, state, aux, constants, t=0.0) -> np.ndarray:
        """Element vector [dof] for a state [dof] of all functions."""
        z, disc = np.asarray(state).reshape(-1, self.components), self.discretization
        points, pointwise = self._cell_points(cell, aux), self.interpreter.pw_residual
        fluxes = [pointwise(*p, t, x, constants) for p, x in zip(points.states(z), points.x, strict=True)]
        out = self._tested(points, fluxes)
        for facet, conditions in self._facets(cell):
            points = self._facet_points(cell, facet, aux)
            if disc.has_sides:
                out += self._side(points, conditions, z, t, constants, (cell, facet), derivative=False)
            elif points.jump is not None:
                jumps = self.tau(points, t, constants, (cell, facet)) * (points.jump @ z)
                out += points.jump.T @ (points.weight[:, None] * jumps)
            for condition in (k for k in conditions if disc.physics.natural[k].term.kind != "b"):
                pointwise = self.interpreter.pw_boundary
                fluxes = [
                    pointwise(condition, *p, t, x, n, constants)
                    for p, x, n in zip(points.states(z), points.x, points.normal, strict=True)
                ]
                out += self._tested(points, fluxes)
        return out.ravel()

    def _tested(self, points, fluxes) -> np.ndarray:
        """Sum [function, component] over points of f0 and f1 there, times functions and their gradients."""
        f0, f1 = (np.array([flux[k] for flux in fluxes]) * self._column(points, 2 + k) for k in range(2))
        return points.value.T @ f0 + np.einsum("qdj,qcd->jc", points.test_gradient, f1)

    @staticmethod
    def _column(points, ndim: int) -> np.ndarray:
        """Weights shaped for an array [point, …] of `ndim` axes."""
        return points.weight.reshape(-1, *(1,) * (ndim - 1))

    def matrix(self, cell: int, interior, trace, aux, constants, t=0.0) -> np.ndarray:
        """Derivative [dof, dof] of `residual`."""
        return self.derivative(cell, np.concatenate([interior, trace]), aux, constants, t)

    def derivative(self, cell: int, state, aux, constants, t=0.0) -> np.ndarray:
        """Derivative [dof, dof] of `vector`."""
        z, disc = np.asarray(state).reshape(-1, self.components), self.discretization
        points, pointwise = self._cell_points(cell, aux), self.interpreter.g_blocks
        blocks = [
            _joined(*pointwise(*p, t, self._shift(constants), x, constants))
            for p, x in zip(points.states(z), points.x, strict=True)
        ]
        blocks = np.array(blocks) * self._column(points, 5)
        out = np.einsum("qai,qceab,qbj->icje", points.test_basis, blocks, points.basis, optimize=True)
        for facet, conditions in self._facets(cell):
            points = self._facet_points(cell, facet, aux)
            if disc.has_sides:
                out += self._side(points, conditions, z, t, constants, (cell, facet), derivative=True)
            elif points.jump is not None:
                tau = points.weight[:, None] * self.tau(points, t, constants, (cell, facet))
                eye = np.eye(self.components)
                out += np.einsum("qi,qc,ce,qj->icje", points.jump, tau, eye, points.jump, optimize=True)
            for condition in (k for k in conditions if disc.physics.natural[k].term.kind != "b"):
                slopes = self._column(points, 5) * self._boundary_slopes(condition, points, z, t, constants)
                out += np.einsum("qbi,qcbae,qaj->icje", points.basis, slopes, points.basis, optimize=True)
        return out.reshape(z.size, z.size)

    def _side(self, points, conditions, z, t, constants, place: tuple[int, int], derivative: bool) -> np.ndarray:
        """Return a facet's part of the element vector [function, component], or its derivative.

        Functions of the cell test -f̂·n, those of the trace f̂·n or a boundary flux; f̂·n = f1(û, q)·n - S (u - û)."""
        fluxes = [k for k in conditions if self.discretization.physics.natural[k].term.kind == "b"]
        found = [
            self._side_point(points, p, state, fluxes, z, t, constants, place, derivative)
            for p, state in enumerate(points.states(z))
        ]
        given = [np.array(each) * self._column(points, each[0].ndim + 1) for each in zip(*found, strict=True)]
        if not derivative:
            return points.value.T @ given[0] - points.inside.T @ given[1]
        trials = np.concatenate([points.basis, points.inside[:, None]], axis=1)
        of_trace, of_cell = (np.einsum("qcre,qrj->qcje", slopes, trials, optimize=True) for slopes in given)
        return np.tensordot(points.value, of_trace, (0, 0)) - np.tensordot(points.inside, of_cell, (0, 0))

    def _side_point(
        self, points, p: int, state, fluxes: list[int], z, t, constants, place, derivative: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what the trace's functions and the cell's test at a point [component], or the derivatives [component,
        number, component] by û, q and u there."""
        disc, count, interpreter = self.discretization, self.components, self.interpreter
        u, u_t, u_x, a, a_x = state
        x, n, u_in = points.x[p], points.normal[p], points.inside[p] @ z
        S, dS = self._matrix(points, p, u, a, a_x, t, x, n, constants, place)
        flux = -S @ (u_in - u)
        if disc.point_flux:
            flux += interpreter.pw_residual(u, u_t, u_x, a, a_x, t, x, constants)[1] @ n
        given = [((k, u, u_x, u_in, flux), (a, a_x, t, x, n, constants)) for k in fluxes]
        if not derivative:
            outer = [interpreter.pw_boundary_flux(*b, *at) for b, at in given]
            return np.sum(outer, axis=0) if outer else flux, flux
        slope = np.zeros((count, 2 + disc.dim, count))
        slope[:, 0], slope[:, -1] = S - np.einsum("cek,e->ck", dS, u_in - u), -S
        if disc.point_flux:
            _, _, g2, g3 = interpreter.g_blocks(u, u_t, u_x, a, a_x, t, self._shift(constants), x, constants)
            slope[:, 0] += g2 @ n
            slope[:, 1:-1] += np.einsum("cedr,d->cre", g3, n)
        numbers = slope[0].size  # û, q, u
        unit = np.eye(numbers).reshape(2 + disc.dim, count, numbers)
        rates = {"u": unit[0], "u_x": np.moveaxis(unit[1:-1], 0, 1).reshape(-1, numbers), "u_in": unit[-1]}
        rates["f_hat"] = slope.reshape(count, -1)
        outer = [interpreter.pw_boundary_flux_jacobian(*b, rates, *at).reshape(slope.shape) for b, at in given]
        return np.sum(outer, axis=0) if outer else slope, slope

    def _matrix(self, points, p: int, u, a, a_x, t, x, n, constants, place) -> tuple[np.ndarray, np.ndarray]:
        """Stabilization S [component, component] at a point of a facet, and its derivative [.., direction] by û."""
        count, at = self.components, (a, a_x, t, x, n, constants)
        if self.discretization.stabilization_mode != 4:
            return np.diag(self.tau(points, t, constants, place)[p]), np.zeros((count, count, count))
        given, rate = self.interpreter.pw_stabilization(*at, u), self.interpreter.pw_stabilization_jacobian(u, *at)
        if self.discretization.physics.has_stabilization_matrix:
            return given, rate
        return np.diag(given), np.einsum("ck,ce->cek", rate, np.eye(count))

    def _boundary_slopes(self, condition: int, points, z, t, constants) -> np.ndarray:
        """Derivative [point, component, value or direction, trial's value or direction, trial component] of a natural
        condition."""
        count, dim = self.components, self.discretization.dim
        out = np.zeros((len(points.x), count, 1 + dim, 1 + dim, count))
        for q, (u, u_t, u_x, a, a_x) in enumerate(points.states(z)):
            for e in range(count):
                for k in range(1 + dim):
                    seeds = np.zeros((count, 1 + dim))
                    seeds[e, k] = 1.0
                    shift = self._shift(constants)
                    given = seeds[:, 0], shift * seeds[:, 0], seeds[:, 1:]
                    state = (u, u_t, u_x, *given, a, a_x, t, shift, points.x[q])
                    rates = self.interpreter.pw_boundary_jacobian(condition, *state, points.normal[q], constants)
                    out[q, :, 0, k, e], out[q, :, 1:, k, e] = rates
        return out

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
            states = zip(points.states(z), points.x, points.normal, strict=True)
            values = np.array([self._automatic_tau(*p, x, n, constants, t) for p, x, n in states])
            found.append(np.where(np.isfinite(values), values, 0.0).max(axis=0))
        return np.array(found)

    def _shift(self, constants) -> float:
        """d u_t / du: the last constant, where there are rates."""
        return float(constants[-1]) if self.discretization.in_time else 0.0

    # Points ----------------------------------------------------------------------------------------------

    def _cell_points(self, cell: int, aux) -> _Points:
        tables, frame = self.tables, self._frame(cell, 0)
        points = _Points(frame, tables.value, tables.gradient, self._auxiliary(0, frame.inverse, aux), self._rates)
        if self.discretization.point_flux:
            points.test_gradient = np.einsum("qrd,qrj->qdj", frame.inverse, tables.plain)
        return points

    @property
    def _rates(self) -> int | None:
        """First auxiliary component of the rates, where there are any."""
        disc = self.discretization
        return disc.physics.num_auxiliary if disc.in_time else None

    def _facet_points(self, cell: int, facet: int, aux) -> _Points:
        tables, frame = self.tables, self._frame(cell, 1 + facet)
        given = self._auxiliary(1 + facet, frame.inverse, aux)
        points = _Points(frame, tables.trace[facet], tables.trace_gradient[facet], given, self._rates)
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

    x [point, dim]; value [point, function]; gradient [point, dim, function] in the physical frame; basis
    [point, 1 + dim, function] both; a [point, component]; a_x [point, component, dim]; normal [point, dim]; inside
    [point, function] values of u on a facet; test_gradient [point, dim, function], gradients that test f1.
    """

    jump = inside = None

    def __init__(self, frame: Frame, value, gradient, auxiliary, rates: int | None = None):
        self.rates = rates
        self.x, self.weight, self.normal, self.value = frame.seen, frame.weight, frame.normal, value
        self.a, self.a_x = auxiliary
        self.gradient = self.test_gradient = np.einsum("qrd,qrj->qdj", frame.inverse, gradient)

    @property
    def test_basis(self) -> np.ndarray:
        """[point, 1 + dim, function]"""
        return np.concatenate([self.value[:, None], self.test_gradient], axis=1)

    @property
    def basis(self) -> np.ndarray:
        return np.concatenate([self.value[:, None], self.gradient], axis=1)

    def states(self, z: np.ndarray):
        """u, u_t, u_x, a, a_x at each point for coefficients [function, component]; rates are auxiliary data."""
        u, u_x = self.value @ z, np.einsum("qdj,jc->qcd", self.gradient, z)
        for q in range(len(u)):
            u_t = None if self.rates is None else self.a[q, self.rates :]
            yield u[q], u_t, u_x[q], self.a[q, : self.rates], self.a_x[q, : self.rates]


def _functions(disc, mixed: bool):
    element, k = disc.spaces[0].element, disc.options.degree
    if not isinstance(element, TraceElement):
        return LagrangeFunctions(disc.mesh.cell, k)
    enriched = disc.mesh.cell in ("quadrilateral", "hexahedron") and disc.options.hdg_enrich
    return (MixedFunctions if mixed else LiftedFunctions)(disc.mesh.cell, k, k + 1 if enriched else k)


def _sum(parts: np.ndarray, epsilon: float) -> np.ndarray:
    """Sums over the last axis, 0 where parts cancel but for rounding: n·v along a stream."""
    found = parts.sum(axis=-1)
    return np.where(np.abs(found) > 64 * epsilon * np.abs(parts).sum(axis=-1), found, 0.0)


def _speeds(matrix: np.ndarray, epsilon: float) -> np.ndarray:
    """Row sums [component] of the eighth power of a matrix, to the eighth root: near its largest eigenvalue. Entries
    that are rounding, as of a normal along an axis, would become visible in the root, and count as 0."""
    most = np.abs(matrix).max()
    scaled = np.where(np.abs(matrix) > 64 * epsilon * most, matrix, 0.0) / (most or 1.0)
    power = np.linalg.matrix_power(scaled, 8)
    return most * np.abs(power).sum(axis=1) ** 0.125


def _joined(g0, g1, g2, g3) -> np.ndarray:
    """PETSc's blocks as one [test component, trial component, 1 + dim, 1 + dim]."""
    top = np.concatenate([g0[:, :, None, None], g1[:, :, None, :]], axis=3)
    return np.concatenate([top, np.concatenate([g2[:, :, :, None], g3], axis=3)], axis=2)
