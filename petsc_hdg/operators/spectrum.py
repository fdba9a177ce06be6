"""Symmetry and extreme eigenvalues of a matrix that is not stored, estimated by few products."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ..threads import random_numbers

TOLERANCE = {"double": 1e-10, "single": 1e-3}  # asymmetry and negative eigenvalues that rounding may leave


def asymmetry(mat: PETSc.Mat) -> float:
    """|v·Aw - w·Av| of two random vectors, over what it would be if the entries of A were random too. Collective."""
    v, w = (random_vec(mat, seed) for seed in (1, 2))
    product = mat.createVecLeft()
    mat.mult(w, product)
    forward, scale = v.dot(product), v.norm() * product.norm() / max(1, v.getSize()) ** 0.5
    mat.mult(v, product)
    return abs(forward - w.dot(product)) / scale if scale > 0 else abs(forward)


def skewness(mat: PETSc.Mat) -> float:
    """|A w - Aᵀ w| / |A w| of a vector w of noise, about that of the norms of A - Aᵀ and A. Collective."""
    w, product, turned = mat.createVecRight(), mat.createVecLeft(), mat.createVecRight()
    w.setArray(np.sin(np.arange(*w.getOwnershipRange(), dtype=float) ** 2))
    mat.mult(w, product)
    mat.multTranspose(w, turned)
    size = product.norm()
    product.axpy(-1.0, turned)
    return product.norm() / size if size > 0 else 0.0


def random_vec(mat: PETSc.Mat, seed: int) -> PETSc.Vec:
    """A vector of values between -1 and 1, the same in each run. Collective."""
    vector = mat.createVecRight()
    vector.setArray(random_numbers(-1.0, 1.0, vector.getLocalSize(), seed, vector.comm.rank))
    return vector


def extreme_eigenvalues(mat: PETSc.Mat, symmetric: bool, steps: int = 30) -> tuple[float, float]:
    """Smallest and largest eigenvalue of the symmetric part of D^-1/2 A D^-1/2, D the diagonal: estimates. Collective.

    The smallest is never below the true one, and an eigenvalue below zero means that A has a direction of negative
    energy. Lanczos' recurrence if A is symmetric, else Arnoldi's, whose Ritz values in the symmetric part need no
    transposed product. An entry of the diagonal that is not positive is itself the answer, as -1.
    """
    scaling = mat.getDiagonal()
    if scaling.min()[1] <= 0:
        return -1.0, 1.0
    scaling.sqrtabs()
    scaling.reciprocal()
    projected = _project(lambda x, y: _scaled(mat, scaling, x, y), random_vec(mat, 0), symmetric, steps)
    values = np.linalg.eigvalsh((projected + projected.T) / 2)
    return float(values[0]), float(values[-1])


def _scaled(mat, scaling: PETSc.Vec, x: PETSc.Vec, y: PETSc.Vec) -> None:
    inner = x.duplicate()
    inner.pointwiseMult(x, scaling)
    mat.mult(inner, y)
    y.pointwiseMult(y, scaling)


def _project(apply, start: PETSc.Vec, symmetric: bool, steps: int) -> np.ndarray:
    """The matrix [step, step] on an orthonormal basis of the Krylov space of `start`."""
    steps = min(steps, start.getSize())
    basis, projected = [start], np.zeros((steps, steps))
    start.normalize()
    for k in range(steps):
        y = start.duplicate()
        apply(basis[-1], y)
        known = basis[-2:] if symmetric else basis
        for place, other in zip(range(k + 1 - len(known), k + 1), known, strict=True):
            projected[place, k] = y.dot(other)
            y.axpy(-projected[place, k], other)
        size = y.normalize()
        if k + 1 == steps or size < 1e-12 * np.abs(projected).max():
            return projected[: k + 1, : k + 1]
        projected[k + 1, k] = size
        basis = [*(basis[-1:] if symmetric else basis), y]
    return projected
