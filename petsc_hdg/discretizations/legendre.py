"""Products of orthonormal Legendre polynomials on a box: the basis of polytopic cells."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
from numpy.polynomial import legendre


def num_basis(dim: int, degree, space: str = "total"):
    """Dimension of the polynomials of total degree `degree`, or of that degree in each coordinate (`tensor`)."""
    if space == "tensor":
        return (degree + 1) ** dim
    return comb(degree + dim, dim)


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
