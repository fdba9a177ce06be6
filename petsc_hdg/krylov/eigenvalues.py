"""Extreme eigenvalues of a preconditioned operator, estimated as PETSc's KSPCHEBYSHEV does."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ..threads import in_threads
from .basis import Basis
from .hessenberg import Hessenberg
from .operation import Operation

TOLERANCE = 1e-12  # of the residual at which PETSc's estimator stops
CHUNK = 1 << 15  # numbers made at a time: temporaries stay in the cache


def extreme_eigenvalues(operation: Operation, first: int, steps: int) -> tuple[float, float]:
    """Smallest and largest real part of the Ritz values after `steps` steps of GMRES from noise. Collective.

    first: global number of this rank's first unknown, so that the noise does not depend on the ranks.
    """
    vectors, arrays = operation.vectors, operation.vectors.arrays
    given, w = vectors.buffer("given"), vectors.buffer("w")
    arrays.upload(given, noise(first, vectors.count, vectors.comm.size).astype(arrays.real), "Krylov vectors")
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


def noise(first: int, count: int, ranks: int = 1) -> np.ndarray:
    """Numbers between -1.08 and 1.08 [count] by the hash that PETSc takes of numbers; `ranks`: see in_threads."""
    values = np.empty(count)

    def fill(begin: int) -> None:
        part = values[begin : begin + CHUNK]
        x = np.arange(first + begin, first + begin + len(part), dtype=np.int64).astype(np.uint32)
        for _ in range(2):
            x = ((x >> np.uint32(16)) ^ x) * np.uint32(0x45D9F3B)
        x = (x >> np.uint32(16)) ^ x
        np.multiply(x.astype(np.int64) - 2147483648, 5e-10, out=part)

    in_threads(fill, range(0, count, CHUNK), ranks)
    return values
