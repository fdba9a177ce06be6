"""Plain numpy assembly of the linear polytopic scheme: Dong, Georgoulis and Kappas 2021, eq. (3) to (5), term by term.

It shares nothing with the kernels: own rules (products of Gauss rules, collapsed onto simplices), own facets, Legendre
polynomials of numpy, loops over polytopes. For -∇·(a∇u) + w·∇u + c u = f, with n outward of K and [u] = u⁺ - u⁻:

    B(u, v) = Σ_K ∫_K a∇u·∇v + (w·∇u) v + c u v  -  Σ_K ∫_{w·n < 0} (w·n) (u⁺ - u⁻) v⁺
              - Σ_F ∫_F {a∇u·n}[v] + {a∇v·n}[u] - σ [u][v],
    ℓ(v)    = Σ_K ∫_K f v  -  ∫_{inflow} (w·n) g_D v  -  ∫_{Γ_D} g_D (a∇v·n - σ v)  +  ∫_{Γ_N} g_N v,

u⁻ being absent on the boundary. The scheme of sipg_flux.clh is the same for linear physics: its lifted gradient gives
f0 the part -(w·n) [u] / 2 and the penalty the part s [u] / 2, together the upwind jump where s = |w·n|. The kernels
take for s the largest |w·n| on the base facet, so that with winds that vary along a facet they add (s - |w·n|) / 2 ≥ 0
to σ. Convection in f1 (-w u, with w·n u on outflow boundaries) is the same again, with c + ∇·w for c, where the rules
are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.polynomial import legendre


def _zero(x: np.ndarray) -> np.ndarray:
    return np.zeros(len(x))


def _zero_vector(x: np.ndarray) -> np.ndarray:
    return np.zeros(x.shape)


def _zero_tensor(x: np.ndarray) -> np.ndarray:
    return np.zeros((*x.shape, x.shape[1]))


@dataclass(frozen=True)
class Equation:
    """Functions of places x [point, dim] that return [point], wind [point, dim], tensor [point, dim, dim].

    kind: of places on the boundary and the outward normal: "dirichlet" (inflow included), "neumann" or "none".
    """

    tensor: callable = _zero_tensor
    wind: callable = _zero_vector
    reaction: callable = _zero
    source: callable = _zero
    dirichlet: callable = _zero
    neumann: callable = _zero
    kind: callable = field(default=lambda x, n: "dirichlet")


class PolytopicOracle:
    """The matrix and right-hand side of an equation on polytopes made of simplices, one after the other.

    points [point, dim], cells [cell, dim + 1]: the simplices;  of_cell [cell] polytope of each
    powers [polytope] of [function, dim]: degrees of its Legendre polynomials, orthonormal in the mean on boxes
    """

    def __init__(self, points, cells, of_cell, powers, equation: Equation):
        self.points, self.cells, self.of_cell = np.asarray(points), np.asarray(cells), np.asarray(of_cell)
        self.powers, self.equation, self.dim = powers, equation, self.points.shape[1]
        self.first = np.concatenate([[0], np.cumsum([len(p) for p in powers])])
        self.order = max(int(p.sum(axis=1).max()) for p in powers) + 2  # Gauss points along an axis
        corners = [self.points[self.cells[self.of_cell == k]].reshape(-1, self.dim) for k in range(len(powers))]
        self.boxes = [(c.min(axis=0), c.max(axis=0)) for c in corners]

    @property
    def size(self) -> int:
        return int(self.first[-1])

    def matrix(self, sigma: np.ndarray, speed: np.ndarray | None = None) -> np.ndarray:
        """B [row, column]: of unknowns polytope by polytope.

        sigma [cell, dim + 1]: of the facet across from each corner, without upwinding;  speed: likewise the number s of
        the heading, or None for |w·n|.
        """
        out = np.zeros((self.size, self.size))
        rows, columns, values = self.entries(sigma, speed)
        np.add.at(out, (rows, columns), values)
        return out

    def entries(self, sigma, speed=None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """B as triplets: row, column, value, with duplicates."""
        blocks = [block for k in range(len(self.powers)) for block in self._interior(k)]
        for facet in self._facets():
            blocks += self._facet_blocks(facet, sigma, speed)
        parts = [self._triplets(*block) for block in blocks]
        return tuple(np.concatenate(p) for p in zip(*parts, strict=True))

    def load(self, sigma, speed=None) -> np.ndarray:
        """ℓ [row]."""
        out, eq = np.zeros(self.size), self.equation
        for cell, k in enumerate(self.of_cell):
            x, weight = simplex_rule(self.points[self.cells[cell]], self.order)
            out[self._rows(k)] += self._basis(k, x)[0].T @ (weight * eq.source(x))
        for facet in self._facets():
            if facet.other is not None:
                continue
            value, slope = self._basis(facet.polytope, facet.x)
            kind = eq.kind(facet.x, facet.normal)
            if kind == "neumann":
                part = value.T @ (facet.weight * eq.neumann(facet.x))
            elif kind == "dirichlet":
                inflow, own = self._inflow(facet, speed), sigma[facet.cell, facet.corner]
                flux = np.einsum("qde,qbe,d->qb", eq.tensor(facet.x), slope, facet.normal)
                part = ((inflow + own)[:, None] * value - flux).T @ (facet.weight * eq.dirichlet(facet.x))
            else:
                part = 0.0
            out[self._rows(facet.polytope)] += part
        return out

    # Terms ---------------------------------------------------------------------------------------------------------

    def _interior(self, k: int):
        """(test polytope, trial polytope, block) of each simplex of a polytope."""
        eq = self.equation
        for cell in np.flatnonzero(self.of_cell == k):
            x, weight = simplex_rule(self.points[self.cells[cell]], self.order)
            value, slope = self._basis(k, x)
            block = np.einsum("q,qde,qie,qjd->ji", weight, eq.tensor(x), slope, slope, optimize=True)
            block += np.einsum("q,qd,qid,qj->ji", weight, eq.wind(x), slope, value, optimize=True)
            block += np.einsum("q,qi,qj->ji", weight * eq.reaction(x), value, value, optimize=True)
            yield k, k, block

    def _facet_blocks(self, facet: _Facet, sigma, speed) -> list[tuple]:
        """(test polytope, trial polytope, block): one on the boundary, four between two polytopes."""
        eq, x, n = self.equation, facet.x, facet.normal
        if facet.other is None and eq.kind(x, n) != "dirichlet":
            return []
        sides = [(facet.polytope, 1.0, 1.0)] if facet.other is None else []
        sides = sides or [(facet.polytope, 1.0, 0.5), (facet.other, -1.0, 0.5)]
        own, table, blocks = sigma[facet.cell, facet.corner], {}, []
        for k, *_ in sides:
            value, slope = self._basis(k, x)
            table[k] = value, np.einsum("qde,qbe,d->qb", eq.tensor(x), slope, n, optimize=True)
        for (test, sign_v, share_v), (trial, sign_u, share_u) in product(sides, sides):
            (v, flux_v), (u, flux_u) = table[test], table[trial]
            block = own * sign_u * sign_v * np.einsum("q,qj,qi->ji", facet.weight, v, u, optimize=True)
            block -= share_u * sign_v * np.einsum("q,qj,qi->ji", facet.weight, v, flux_u, optimize=True)
            block -= share_v * sign_u * np.einsum("q,qj,qi->ji", facet.weight, flux_v, u, optimize=True)
            # The test function's own upwind jump: trial minus the other side, with the test side's outward normal.
            inflow = self._inflow(facet, speed, sign_v) * sign_u * sign_v
            blocks.append((test, trial, block + np.einsum("q,qj,qi->ji", facet.weight * inflow, v, u, optimize=True)))
        return blocks

    def _inflow(self, facet: _Facet, speed, sign: float = 1.0) -> np.ndarray:
        """(s - w·n) / 2 [point], |w·n| where the wind blows into the polytope, with the normal times `sign`."""
        along = sign * self.equation.wind(facet.x) @ facet.normal
        return ((np.abs(along) if speed is None else speed[facet.cell, facet.corner]) - along) / 2

    # Parts ---------------------------------------------------------------------------------------------------------

    def _rows(self, k: int) -> slice:
        return slice(self.first[k], self.first[k + 1])

    def _triplets(self, test: int, trial: int, block: np.ndarray) -> tuple[np.ndarray, ...]:
        rows, columns = np.meshgrid(
            np.arange(self.first[test], self.first[test + 1]),
            np.arange(self.first[trial], self.first[trial + 1]),
            indexing="ij",
        )
        return rows.ravel(), columns.ravel(), block.ravel()

    def _basis(self, k: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values [point, function] and gradients [point, function, dim] of a polytope's functions."""
        lower, upper = self.boxes[k]
        xi, scale = (2 * x - lower - upper) / (upper - lower), 2 / (upper - lower)
        lines = [legendre.Legendre.basis(p) * np.sqrt(2 * p + 1) for p in range(int(self.powers[k].max()) + 1)]
        value = np.array([line(xi) for line in lines])  # [degree, point, dim]
        slope = np.array([line.deriv()(xi) * scale for line in lines])
        values = np.ones((len(x), len(self.powers[k])))
        gradients = np.ones((*values.shape, self.dim))
        for b, powers in enumerate(self.powers[k]):
            for d, power in enumerate(powers):
                values[:, b] *= value[power, :, d]
                for e in range(self.dim):
                    gradients[:, b, e] *= (slope if d == e else value)[power, :, d]
        return values, gradients

    def _facets(self):
        """Each facet between two polytopes, once, and each on the boundary."""
        behind: dict[tuple, list] = {}
        for cell, corners in enumerate(self.cells):
            for corner in range(self.dim + 1):
                behind.setdefault(tuple(sorted(np.delete(corners, corner))), []).append((cell, corner))
        for vertices, places in behind.items():
            polytopes = [int(self.of_cell[cell]) for cell, _ in places]
            if len(places) == 1 or polytopes[0] != polytopes[1]:
                cell, corner = places[0]
                x, weight = simplex_rule(self.points[list(vertices)], self.order)
                normal = _outward(self.points[list(vertices)], self.points[self.cells[cell, corner]])
                yield _Facet(cell, corner, polytopes[0], polytopes[1] if len(places) > 1 else None, x, weight, normal)


@dataclass(frozen=True)
class _Facet:
    """A facet of a simplex `cell` across from its `corner`; other: the polytope behind, or None.

    x [point, dim], weight [point], normal [dim] outward of the cell.
    """

    cell: int
    corner: int
    polytope: int
    other: int | None
    x: np.ndarray
    weight: np.ndarray
    normal: np.ndarray


def simplex_rule(corners: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Places [point, space] and weights [point] on a simplex, corners [corner, space]."""
    edges = corners[1:] - corners[0]
    points, weights = _reference_rule(len(edges), order + len(edges))
    return corners[0] + points @ edges, weights * np.sqrt(np.linalg.det(edges @ edges.T))


@lru_cache
def _reference_rule(dim: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Points [point, dim] and weights on the simplex 0 ≤ x, Σ x ≤ 1: Gauss rules on a cube, collapsed."""
    nodes, weights = legendre.leggauss(order)
    points, sizes = np.zeros((order**dim, dim)), np.ones(order**dim)
    for row, place in enumerate(product(range(order), repeat=dim)):
        rest = 1.0
        for k, index in enumerate(place):
            step = (1 + nodes[index]) / 2
            points[row, k] = rest * step
            sizes[row] *= weights[index] / 2 * rest
            rest *= 1 - step
    return points, sizes


def _outward(corners: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """Unit normal [dim] of a facet, away from a point."""
    tangents = corners[1:] - corners[0]
    normal = np.linalg.svd(tangents)[2][-1]
    return -normal if (inner - corners[0]) @ normal > 0 else normal
