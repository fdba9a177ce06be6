"""Factors of the penalties of polytopes: the sharp constants of trace inequalities on cells of any shape, whatever the
number and the size of their facets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.polynomial.legendre import legvander

from ...threads import in_threads
from .legendre import exponents
from .outline import cell_points, facet_points, find_outline, joined, portions

MOST_VALUES = 1 << 18  # values of basis functions held at a time by a thread
FEW = 64  # items of a polytope up to which the k-th of all polytopes are added at once
LOST = 1e-13  # eigenvalue of a scaled mass matrix that is nothing but round-off


def penalty_numbers(disc) -> np.ndarray:
    """Number [F, extended base cell] of each side of each facet of a PolytopicDG. Collective.

    The penalty of a facet is a factor times the normal diffusivity κ times the number, the larger of both sides, twice
    that with Dirichlet data. It is coercive for factors above 1/2: with q = κ ∇u·n on both sides a and b,
    2 ∫ {q}[u] ≤ Σ ∫ (δ/2) q²/(κ C) + (κ C/2δ) [u]², where the first terms sum up to δ/2 of the energy at most.
    """
    mesh, polytopes, faces = disc.mesh, disc.polytopes, disc.fine.num_facets_of_cell
    of_polytope = trace_constants(find_outline(mesh, polytopes, disc.measures), polytopes, disc.degrees, disc.space)
    owned = np.repeat(of_polytope[polytopes.of_cell][:, None], faces, axis=1)
    return np.ascontiguousarray(disc.fine.neighbours.extended(owned).T)


def trace_constants(outline, polytopes, degrees: np.ndarray, space: str = "total") -> np.ndarray:
    """Least C_K [polytope] with ∫_∂K v² ≤ C_K ∫_K v² for all derivatives v of functions of degree degrees [polytope].

    Derivatives of total degree p are all of P_{p - 1}; those of `tensor` the products without the one of degree p in
    each coordinate. Up to degree 1 of `total`: |∂K|/|K|.
    """
    found = np.zeros(polytopes.count)
    for degree in np.unique(degrees):
        powers = _derivatives(outline.mesh.dim, int(degree), space)
        those = np.flatnonzero(degrees == degree)
        if len(powers) == 1:
            found[those] = outline.mesh.dim / outline.radii(polytopes)[those]
            continue
        sizes = np.diff(polytopes.cells[0]) * len(powers) * (len(powers) + 4)
        parts = portions(those, sizes[those], MOST_VALUES)
        constants = partial(_constants, outline, polytopes, powers, space)
        for part, values in zip(parts, in_threads(constants, parts), strict=True):
            found[part] = values
    return found


def _constants(outline, polytopes, powers: np.ndarray, space: str, part: np.ndarray) -> np.ndarray:
    return _largest(_Samples.of(outline, polytopes, part, powers), powers, space)


def _derivatives(dim: int, degree: int, space: str) -> np.ndarray:
    """Degrees [function, dim] of products that span the derivatives of the functions of a degree."""
    if space == "total" or degree == 0:
        return exponents(dim, max(degree - 1, 0))
    powers = exponents(dim, degree, "tensor")
    return powers[(powers < degree).any(axis=1)]


@dataclass(frozen=True)
class _Samples:
    """Points of some polytopes: places [item, point, dim] and weights [item, point] of their cells and of their facets,
    and the first item of each polytope."""

    cells: tuple[np.ndarray, np.ndarray]
    facets: tuple[np.ndarray, np.ndarray]
    first_cell: np.ndarray
    first_facet: np.ndarray

    @classmethod
    def of(cls, outline, polytopes, part: np.ndarray, powers: np.ndarray) -> _Samples:
        degree = max(2, 2 * int(powers.sum(axis=1).max()))
        start, cells = polytopes.cells
        inside, first_cell = joined(start, part)
        around, first_facet = joined(outline.start, part)
        facets = facet_points(outline.mesh, outline.cell[around], outline.facet[around], degree)
        return cls(cell_points(outline.mesh, cells[inside], degree), facets[:2], first_cell, first_facet)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Centroid [polytope, dim] and covariance [polytope, dim, dim] of each polytope."""
        x, weight = self.cells
        sums = [weight.sum(axis=1), np.einsum("cq,cqd->cd", weight, x)]
        volume, first = (np.add.reduceat(s, self.first_cell) for s in sums)
        centroid = first / volume[:, None]
        away = x - self._each(centroid, self.first_cell, len(x))[:, None]
        second = np.add.reduceat(np.einsum("cq,cqd,cqe->cde", weight, away, away, optimize=True), self.first_cell)
        return centroid, second / volume[:, None, None]

    def grams(self, powers: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> list[np.ndarray]:
        """∫ φ φ over the polytopes and over their surfaces [polytope, function, function], φ products of Legendre
        polynomials of scale [polytope, dim, dim] (x - centre [polytope, dim])."""
        found = []
        for (x, weight), first in ((self.cells, self.first_cell), (self.facets, self.first_facet)):
            away = x - self._each(centre, first, len(x))[:, None]
            xi = np.einsum("cqd,ced->cqe", away, self._each(scale, first, len(x)))
            line = legvander(xi, int(powers.max()))
            values = np.take(line[:, :, 0], powers[:, 0], axis=2)
            for d in range(1, x.shape[2]):
                values *= np.take(line[:, :, d], powers[:, d], axis=2)
            blocks = np.matmul(np.swapaxes(values * weight[..., None], 1, 2), values)
            found.append(_summed(blocks, first))
        return found

    @staticmethod
    def _each(values: np.ndarray, first: np.ndarray, count: int) -> np.ndarray:
        """Values [polytope, …] at the items of each polytope [item, …]."""
        return np.repeat(values, np.diff(first, append=count), axis=0)


def _summed(blocks: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Sums [polytope, …] of blocks [item, …] from each polytope's first item to the next one's."""
    counts = np.diff(first, append=len(blocks))
    if counts.max(initial=0) > FEW:
        return np.add.reduceat(blocks, first)
    found = blocks[first]  # numpy adds along the first axis value by value: whole blocks are faster
    for k in range(1, counts.max(initial=0)):
        more = np.flatnonzero(counts > k)
        found[more] += blocks[first[more] + k]
    return found


def _largest(samples: _Samples, powers: np.ndarray, space: str) -> np.ndarray:
    """Largest eigenvalue [polytope] of the surface's Gram matrices in those of the polytopes.

    Total degrees are the same space in all affine coordinates: those in which the polytope has the second moments of
    the box (-1, 1)^d keep slivers well conditioned. Tensor products need the axes. What round-off leaves of the mass
    matrix's kernel is no direction.
    """
    centroid, covariance = samples.moments()
    if space == "tensor":
        covariance = covariance * np.eye(covariance.shape[1])
    scale = _inverse_of_lower(np.linalg.cholesky(covariance)) / np.sqrt(3.0)
    mass, surface = samples.grams(powers, centroid, scale)
    size = 1 / np.sqrt(np.einsum("kii->ki", mass))
    mass, surface = (m * size[:, :, None] * size[:, None, :] for m in (mass, surface))
    half = _inverse_root(mass)
    return np.linalg.eigvalsh(np.swapaxes(half, 1, 2) @ surface @ half)[:, -1]


def _inverse_root(mass: np.ndarray) -> np.ndarray:
    """W [matrix, n, n] with Wᵀ M W = 1, where M is not positive definite on what round-off leaves of it."""
    try:
        return np.swapaxes(_inverse_of_lower(np.linalg.cholesky(mass)), 1, 2)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(mass)
        kept = values > LOST * values[:, -1:]
        return vectors * np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)[:, None, :]


def _inverse_of_lower(lower: np.ndarray) -> np.ndarray:
    """Inverses of lower triangular matrices [matrix, n, n], row by row: LAPACK takes them one by one."""
    found = np.zeros_like(lower)
    for k in range(lower.shape[1]):
        found[:, k, k] = 1 / lower[:, k, k]
        found[:, k, :k] = np.einsum("mi,mij->mj", lower[:, k, :k], found[:, :k, :k]) * -found[:, k, k, None]
    return found
