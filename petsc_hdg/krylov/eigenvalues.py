"""Extreme eigenvalues of a preconditioned operator, estimated as PETSc's KSPCHEBYSHEV does."""

from __future__ import annotations

from math import sqrt

import numpy as np

from .basis import Basis
from .hessenberg import Hessenberg
from .preconditioned_operator import Operation

TOLERANCE = 1e-12  # of the residual at which PETSc's estimator stops


def extreme_eigenvalues(operation: Operation, first: int, steps: int) -> tuple[float, float]:
    """Smallest and largest real part of the Ritz values after `steps` steps of GMRES from noise. Collective.

    first: global number of this rank's first unknown, so that the noise does not depend on the ranks.
    """
    matrix = _hessenberg(operation, first, steps)
    size = matrix.shape[1]
    if not np.isfinite(matrix).all() or size == 0:
        return float("nan"), float("nan")
    values = np.linalg.eigvals(matrix[:size]).real
    return float(values.min()), float(values.max())


def least_roots(operation: Operation, first: int, degree: int) -> np.ndarray:
    """Roots [degree] of the polynomial p, p(0) = 1, that makes p(B) B v least, of an operator B and noise v, where
    Arnoldi's process has `degree` + 1 steps; else fewer or none. Collective.

    They are harmonic Ritz values; complex ones come in pairs. Large components of v are those with large eigenvalues,
    as errors to be smoothed are (Loe and Morgan 2022, GMRES polynomials).
    """
    matrix = _hessenberg(operation, first, degree + 1)
    size = matrix.shape[1]
    if not np.isfinite(matrix).all() or size < 2:
        return np.zeros(0)
    powers = np.zeros((size + 1, size + 1))  # B^j v in the basis
    powers[0, 0] = 1.0
    for j in range(size):
        powers[:, j + 1] = matrix @ powers[:size, j]
    found = np.linalg.lstsq(powers[:, 2:], -powers[:, 1], rcond=None)[0]
    roots = np.roots([*found[::-1], 1.0])
    return roots[np.isfinite(roots)]


def _hessenberg(operation: Operation, first: int, steps: int) -> np.ndarray:
    """Arnoldi's matrix [step + 1, step] of at most `steps` steps of GMRES from noise. Collective."""
    vectors = operation.vectors
    given, w = vectors.buffer("given"), vectors.buffer("w")
    vectors.run("noise", np.uint32(first % (1 << 32)), given)
    if operation.preconditioner.null_space is not None:
        operation.preconditioner.null_space.remove(given)
    operation.first_residual(given, None, False, w)
    basis, small, matrix = Basis(vectors, steps), Hessenberg(steps), np.zeros((steps + 1, steps))
    start = sqrt(basis.begin(w))
    small.begin(start)
    for k in range(steps):  # all are launched before the host looks at one
        operation.apply(basis.buffers[k], w)
        basis.extend(k + 1, w)
    for k in range(steps):
        products, square = basis.wait(k + 1)
        matrix[: k + 1, k], matrix[k + 1, k] = products, sqrt(square)
        norm = small.add(products, sqrt(square), ends=square == 0)
        if norm is None or norm <= TOLERANCE * start:
            break
    return matrix[: small.size + 1, : small.size]
