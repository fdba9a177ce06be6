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
    vectors = operation.vectors
    given, w = vectors.buffer("given"), vectors.buffer("w")
    vectors.run("noise", np.uint32(first % (1 << 32)), given)
    if operation.preconditioner.null_space is not None:
        operation.preconditioner.null_space.remove(given)
    operation.first_residual(given, None, False, w)
    basis, small, matrix = Basis(vectors, steps), Hessenberg(steps), np.zeros((steps + 1, steps))
    start = sqrt(basis.begin(w))
    small.begin(start)
    for k in range(steps):
        operation.apply(basis.buffers[k], w)
        basis.extend(k + 1, w)
        products, square = basis.wait(k + 1)
        matrix[: k + 1, k], matrix[k + 1, k] = products, sqrt(square)
        norm = small.add(products, sqrt(square), ends=square == 0)
        if norm is None or norm <= TOLERANCE * start:
            break
    if not np.isfinite(matrix).all() or small.size == 0:
        return float("nan"), float("nan")
    values = np.linalg.eigvals(matrix[: small.size, : small.size]).real
    return float(values.min()), float(values.max())
