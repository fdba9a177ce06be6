"""Products of orthonormal Legendre polynomials on a box, the basis of polytopic cells; L2 projection on them."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
from numpy.polynomial import legendre

from ...mesh.quality import determinants
from ..dofmap import element_nodes
from .outline import mapped

CHUNK = 1 << 22  # numbers of a table made at once


def num_basis(dim: int, degree, space: str = "total"):
    """Dimension of the polynomials of total degree `degree`, or of that degree in each coordinate (`tensor`)."""
    return (degree + 1) ** dim if space == "tensor" else comb(degree + dim, dim)


def exponents(dim: int, degree: int, space: str = "total") -> np.ndarray:
    """Degree [basis, dim] of each basis function in each coordinate.

    They stand by total degree, in the tensor space by their largest degree, so that the functions of a lower degree
    come first.
    """
    size = sum if space == "total" else max
    found = [e for e in product(range(degree + 1), repeat=dim) if size(e) <= degree]
    return np.array(sorted(found, key=lambda e: (size(e), e[::-1])), dtype=np.int32).reshape(-1, dim)


def tabulate(powers: np.ndarray, xi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values [point…, basis] and gradients [point…, basis, dim] at places xi [point…, dim] of the box (-1, 1)^d.

    φ_α(ξ) = Π_d √(2 α_d + 1) P_{α_d}(ξ_d): the mean of φ_α φ_β over the box is δ_αβ, and φ_0 = 1.
    """
    most, dim = int(powers.max(initial=0)), powers.shape[1]
    factor = np.sqrt(2 * np.arange(most + 1) + 1)
    line = legendre.legvander(xi, most) * factor  # [point…, dim, degree]
    slopes = [legendre.legval(xi, legendre.legder(np.eye(most + 1)[k])) * factor[k] for k in range(most + 1)]
    slope = np.stack(slopes, axis=-1)
    of_axis = [(line[..., d, powers[:, d]], slope[..., d, powers[:, d]]) for d in range(dim)]
    values = np.prod([value for value, _ in of_axis], axis=0)
    gradients = [np.prod([of_axis[e][int(d == e)] for e in range(dim)], axis=0) for d in range(dim)]
    return values, np.stack(gradients, axis=-1)


def project(disc, values: np.ndarray) -> np.ndarray:
    """Unknowns [owned] of the L2 projection of values [base cell, quadrature point, component]."""
    out = np.zeros(disc.dofmap.num_owned)
    for degree in np.unique(disc.degrees):
        polytopes = np.flatnonzero(disc.degrees == degree)
        mass, moments = _sums(disc, polytopes, values)
        found = np.linalg.solve(mass, moments)  # [polytope, function, component]
        first, size = disc.numbering.first[polytopes], mass.shape[1] * values.shape[2]
        out[first[:, None] + np.arange(size)] = np.swapaxes(found, 1, 2).reshape(len(polytopes), size)
    return out


def quadrature_points(disc) -> np.ndarray:
    """Physical coordinates [base cell, point, dim] of the quadrature points."""
    return element_nodes(disc.mesh, disc.quadrature.points)


def _sums(disc, polytopes, values):
    """Mass matrices [polytope, function, function] and moments [polytope, function, component] of one degree."""
    size = int(disc.numbering.sizes[polytopes[0]])
    components = values.shape[2]
    place = np.full(disc.polytopes.count, -1)
    place[polytopes] = np.arange(len(polytopes))
    cells = np.flatnonzero(place[disc.polytopes.of_cell] >= 0)
    mass, moments = np.zeros((len(polytopes), size, size)), np.zeros((len(polytopes), size, components))
    step = max(1, CHUNK // (disc.quadrature.num_points * size))
    for part in np.split(cells, range(step, len(cells), step)):
        polytope = disc.polytopes.of_cell[part]
        x, jacobian = mapped(disc.mesh, part, disc.quadrature.points)
        basis = tabulate(disc.exponents[:size], disc.box_coordinates(polytope, x))[0]
        weighted = basis * (disc.quadrature.weights * np.abs(determinants(jacobian)))[:, :, None]
        np.add.at(mass, place[polytope], np.swapaxes(weighted, 1, 2) @ basis)
        np.add.at(moments, place[polytope], np.swapaxes(weighted, 1, 2) @ values[part])
    return mass, moments
