"""Plain numpy evaluation of interior penalty on a few cells: the oracle that every kernel is compared with.

It finds the points of a neighbour's facet by their places.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from ...codegen.preamble import REAL_TYPE
from ...reference import Quadrature
from ..oracle import CellOracle, Points, Side, State


class PenaltyOracle(CellOracle):
    """Rows of the residual, or of the Jacobian's product, of cells of an InteriorPenalty discretization; of several
    shapes the terms of facets alone."""

    @cached_property
    def _facet_rules(self):
        rules, normals = self.discretization.facet_rules
        return [Quadrature(r.points[r.weights > 0], r.weights[r.weights > 0]) for r in rules], normals

    def volume(self, cell: int, state: State) -> np.ndarray:
        if not self.discretization.quadrature.num_points:
            return np.zeros(state.u.shape[1])
        return super().volume(cell, state)

    def rows(self, cell: int, state: State) -> np.ndarray:
        """Residual [dof] of a cell with all of its facets, or the product with state.du."""
        return self.volume(cell, state) + sum(
            self.facet(cell, f, state) for f in range(self.discretization.num_facets_of_cell)
        )

    def facet(self, cell: int, facet: int, state: State) -> np.ndarray:
        """The part [dof] of one of its facets."""
        behind = self.discretization.neighbours.neighbour[cell, facet]
        if behind == -1:
            return np.zeros(state.u.shape[1])
        points, sigma = self._points(cell, 1 + facet, state), state.sigma[:, facet, cell]
        if behind < 0:
            kind = self.discretization.neighbours.kinds[-2 - behind]
            fluxes = [self._boundary(kind, *at, sigma, state) for at in points.seen]
        else:
            near = self.discretization.neighbours
            others, first = self._others(points, behind, near.facet[cell, facet], state), near.wall[cell, facet]
            seen = near.kinds[first - 1 : first + 1, -1] if first else (0, 0)
            each = zip(points.seen, others, strict=True)
            fluxes = [self._interior(*at, other, seen, sigma, state) for at, other in each]
        return self._tested(points, fluxes)

    # Fluxes at a point ---------------------------------------------------------------------------------------------

    def _interior(self, own: Side, n, other: Side, seen, sigma, s: State):
        """With natural conditions that own and other side see (bits): of means of u, tested by the mean of both sides,
        and of gradients of the side, tested by those of that side."""
        f0, f1 = self._joined(own, other, sigma, n, s)
        for side, behind, normal, bits in ((own, other, n, seen[0]), (other, own, -n, seen[1])):
            names = ("u", "u_t", *(("du", "du_t") if s.du is not None else ()))
            mean = replace(side, **{k: (getattr(side, k) + getattr(behind, k)) / 2 for k in names})
            for condition in range(len(self.discretization.physics.natural)):
                if bits >> condition & 1:
                    given, slopes = self._natural(condition, mean, side.x, normal, s)
                    f0, f1 = f0 + given / 2, f1 + (slopes if side is own else 0.0)
        return f0, f1

    def _boundary(self, kind, own: Side, n, sigma, s: State):
        """Nitsche's method in components with Dirichlet data; in the others natural fluxes, and f0 sees the jumps of
        those with data; f1 of conditions in all."""
        free = kind[:-1] < 0
        f0, f1 = self._joined(own, self._data(kind, own, s), sigma, n, s, free)
        for condition in range(len(self.discretization.physics.natural)):
            if kind[-1] >> condition & 1:
                given, slopes = self._natural(condition, own, own.x, n, s)
                f0[free] += given[free]
                f1 += slopes
        return f0, f1

    def _data(self, kind, own: Side, s: State) -> Side:
        """The other side on the boundary: data g, without a derivative, and the own gradient."""
        u, du = own.u.copy(), None if own.du is None else own.du.copy()
        for component in np.flatnonzero(kind[:-1] >= 0):
            u[component] = self.interpreter.pw_dirichlet(kind[component], own.a, s.t, own.x, s.constants)[component]
            if du is not None:
                du[component] = 0
        return replace(own, u=u, du=du)

    def _joined(self, own: Side, other: Side, sigma, n, s: State, free: np.ndarray | None = None):
        """F0 = -{f1}·n + σ[u] + ½ (f0(lifted) - f0),  F1 = ½ θ (f1(lifted) - f1), lifted: at ∇u - [u] n.

        free [component]: of a boundary facet, the components without data. F1 is twice as large there, and F0 of these
        is f0(lifted) - f0 alone.
        """
        jump = own.u - other.u if s.du is None else own.du - other.du
        f0, f1 = self._fluxes(own, s)
        other_f1 = self._fluxes(other, s)[1]
        lifted_f0, lifted_f1 = self._fluxes(_lifted(own, other, n), s)
        joined = -0.5 * (f1 + other_f1) @ n + sigma * jump + 0.5 * (lifted_f0 - f0)
        if free is not None:
            joined = np.where(free, lifted_f0 - f0, joined)
        return joined, self.discretization.theta * (0.5 if free is None else 1.0) * (lifted_f1 - f1)

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
        factor = 2 if behind < -1 and not disc.is_paper else 1
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
        rule, ratio = self._rules[1 + facet], disc.facet_ratios[facet]
        beyond = self._beyond(points, rule, ratio, behind, place, s) if disc.steep else ()
        for number, (p, n) in enumerate([*points.seen, *beyond]):
            g1, g2, g3 = self.interpreter.g_blocks(p.u, p.u_t, p.u_x, p.a, p.a_x, s.t, 0.0, p.x, s.constants)[1:]
            normal = np.einsum("cjde,d,e->cj", g3, n, n)
            signed += np.diag(normal) if number < len(points.x) else 0.0
            normal = np.abs(normal)
            for space in disc.spaces:
                own = slice(space.first_component, space.first_component + space.components)
                diffusivity[own] = np.fmax(diffusivity[own], normal[own, own].sum(axis=1).max())
            along = np.abs(np.einsum("ccd,d->c", g1, n)) + np.abs(np.einsum("ccd,d->c", g2, n))
            speed = np.maximum(speed, along)
        if s.least is not None:
            most = np.max([self._trace(p, s) for p in points.sides], axis=0)
            diffusivity = diffusivity * np.maximum(1, most / np.maximum(s.least[:, cell], 1e-6 * most + 1e-300))
        return disc.penalty_factors[:, facet] * diffusivity / self._length(cell, facet, points), speed, signed

    def least(self, cell: int, state: State) -> np.ndarray:
        """Least trace [component] of the diffusivity in a cell."""
        return np.min([self._trace(p, state) for p in self._points(cell, 0, state).sides], axis=0)

    def _trace(self, p: Side, s: State) -> np.ndarray:
        """Trace [component] of the diffusivity at a point, magnitudes of a row of the field summed."""
        g3 = self.interpreter.g_blocks(p.u, p.u_t, p.u_x, p.a, p.a_x, s.t, 0.0, p.x, s.constants)[3]
        sizes, found = np.abs(np.einsum("cjdd->cjd", g3)).sum(axis=2), np.zeros(len(g3))
        for space in self.discretization.spaces:
            own = slice(space.first_component, space.first_component + space.components)
            found[own] = sizes[own, own].sum(axis=1)
        return found

    def _beyond(self, points: Points, rule, ratio: float, behind: int, place: int, s: State):
        """(side, normal) of each point with the values behind it and a share of the jump in the gradient."""
        disc = self.discretization
        if behind >= 0:
            others = self._others(points, behind, place, s)
        else:
            kind = disc.neighbours.kinds[-2 - behind]
            others = [self._data(kind, p, s) for p in points.sides]
        ratios = points.weight / (points.determinant * rule.weights) * ratio
        for (p, n), other, ratio in zip(points.seen, others, ratios, strict=True):
            yield replace(p, u=other.u, u_x=p.u_x - disc.steep * ratio * np.outer(p.u - other.u, n)), n

    def _length(self, cell: int, facet: int, points: Points) -> float:
        """One over the given number, the facet's diameter with -sipg_penalty paper, or the least |K| / |F|."""
        disc = self.discretization
        if disc.side_numbers is not None:
            return 1 / disc.side_numbers[facet, cell]
        if disc.is_paper:
            corners = self._corners(cell)[disc.orientations.corners[facet]]
            return np.linalg.norm(corners[:, None] - corners, axis=2).max()
        rule = self._rules[1 + facet]
        least = (points.determinant * rule.weights / points.weight).min()
        return least / disc.facet_ratios[facet]

    # Points --------------------------------------------------------------------------------------------------------

    def _corners(self, cell: int) -> np.ndarray:
        """Geometry nodes [node, dim] of an extended cell."""
        return self.discretization.neighbours.nodes[self.discretization.neighbours.cell_nodes[cell]]

    def _others(self, points: Points, behind: int, facet: int, s: State) -> list[Side]:
        """The sides of the cell behind a facet at its points."""
        theirs = self._points(behind, 1 + facet, s)
        apart, periods = points.x[:, None] - theirs.x[None], self.discretization.mesh.geometry.periods
        apart -= periods * np.rint(apart / np.where(periods > 0, periods, np.inf))
        distance = np.linalg.norm(apart, axis=2)
        match = distance.argmin(axis=1)
        assert distance.min(axis=1).max() < 1e-8 * np.ptp(self._corners(behind), axis=0).max(), "facets do not match"
        return [theirs.sides[k] for k in match]


def _lifted(own: Side, other: Side, n) -> Side:
    """The own side with a gradient that sees the jump."""
    du_x = None if own.du is None else own.du_x - np.outer(own.du - other.du, n)
    return replace(own, u_x=own.u_x - np.outer(own.u - other.u, n), du_x=du_x)
