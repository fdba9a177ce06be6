"""Arnoldi's process from a Newton basis, beside modified Gram-Schmidt on dense matrices."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from mpi4py import MPI
from petsc4py import PETSc

from petsc_hdg.device import Arrays, Device
from petsc_hdg.krylov.arnoldi import Arnoldi
from petsc_hdg.krylov.sell_matrix import SellMatrix
from petsc_hdg.krylov.smoothers import Smoother
from petsc_hdg.krylov.vectors import Vectors

ROWS = 60
RNG = np.random.default_rng(4)
ORTHOGONAL = np.linalg.qr(RNG.normal(size=(ROWS, ROWS)))[0]
CONVECTION = np.diag(np.full(ROWS, 2.0)) - np.diag(np.ones(ROWS - 1), 1) * 0.3 - np.diag(np.ones(ROWS - 1), -1) * 1.7


def of_spectrum(values) -> np.ndarray:
    """A symmetric matrix with these eigenvalues."""
    return ORTHOGONAL * np.resize(values, ROWS) @ ORTHOGONAL.T


MATRICES = {
    "laplacian": np.diag(np.full(ROWS, 2.0)) - np.diag(np.ones(ROWS - 1), 1) - np.diag(np.ones(ROWS - 1), -1),
    "convection": CONVECTION,
    "one large eigenvalue": of_spectrum([1.0] * (ROWS - 1) + [40.0]),
    "tiny": 1e-9 * of_spectrum(np.linspace(0.01, 1, ROWS)),
    "huge": 1e9 * of_spectrum(np.linspace(0.1, 3, ROWS)),
    "indefinite": of_spectrum(np.linspace(-1, 2, ROWS)),
}


def process(dense: np.ndarray, steps: int, diagonal: bool = True) -> tuple[Arnoldi, np.ndarray]:
    """Arnoldi's process with Jacobi, or without, and the vector it begins with."""
    row, column = dense.nonzero()
    starts = np.searchsorted(row, np.arange(ROWS + 1)).astype(PETSc.IntType)
    mat = PETSc.Mat().createAIJ(dense.shape, csr=(starts, column.astype(PETSc.IntType), dense[row, column]))
    arrays = Arrays(Device.select("any"))
    vectors, noise = Vectors(arrays, ROWS, MPI.COMM_SELF), arrays.zeros(ROWS)
    vectors.run("noise", np.uint32(0), noise)
    inverse = 1 / dense.diagonal() if diagonal else np.ones(ROWS)
    pc = SimpleNamespace(is_diagonal=True, diagonal=arrays.to_device(inverse)) if diagonal else None
    smoother = Smoother(SellMatrix(mat, arrays), pc, vectors, ())
    return Arnoldi(smoother, steps), inverse * arrays.to_host(noise, ROWS)


def arnoldi(operator: np.ndarray, start: np.ndarray, steps: int) -> np.ndarray:
    """Matrix [step + 1, step] by modified Gram-Schmidt, twice."""
    basis, found = [start / np.linalg.norm(start)], np.zeros((steps + 1, steps))
    for k in range(steps):
        w = operator @ basis[k]
        for _ in range(2):
            for j, v in enumerate(basis):
                found[j, k] += v @ w
                w = w - (v @ w) * v
        found[k + 1, k] = np.linalg.norm(w)
        basis.append(w / found[k + 1, k])
    return found


@pytest.mark.parametrize("name", ["laplacian", "convection", "tiny", "huge", "indefinite"])
def test_matrix_is_that_of_gram_and_schmidt(name):
    dense = MATRICES[name]
    made, start = process(dense, 10, diagonal=name in ("laplacian", "convection"))
    operator = dense / dense.diagonal()[:, None] if name in ("laplacian", "convection") else dense
    expected = arnoldi(operator, start, 10)
    np.testing.assert_allclose(made.matrix(0), expected, rtol=0, atol=1e-6 * abs(expected).max())
    ritz = np.linalg.eigvals(expected[:10]).real
    assert made.extreme(0) == pytest.approx((ritz.min(), ritz.max()), rel=1e-7)
    assert made.extreme(0) == made.extreme(0)


def test_process_ends_with_the_eigenvalues_that_are_there():
    made, _ = process(of_spectrum([1.0, 2.0, 5.0]), 10, diagonal=False)
    assert made.matrix(0).shape == (4, 3)
    assert made.extreme(0) == pytest.approx((1, 5), rel=1e-9)
    assert process(np.eye(ROWS), 10)[0].extreme(0) == pytest.approx((1, 1))


def test_a_lone_large_eigenvalue_is_found():
    """The first guess of the spectrum is far too small."""
    made, _ = process(MATRICES["one large eigenvalue"], 10, diagonal=False)
    assert made.extreme(0)[1] == pytest.approx(40, rel=1e-6)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_nothing_is_found_of_no_operator(value):
    made, _ = process(np.full((ROWS, ROWS), value) if value else np.zeros((ROWS, ROWS)), 10, diagonal=False)
    assert np.isnan(made.extreme(0)).all() and len(made.roots(0)) == 0


def test_roots_make_the_polynomial_least():
    dense = CONVECTION / CONVECTION.diagonal()[:, None]
    made, start = process(CONVECTION, 5)
    roots = made.roots(0)

    first, *others = [np.linalg.matrix_power(dense, j) @ start for j in range(1, 6)]
    others = np.column_stack(others)

    def left(coefficients) -> float:
        """Norm of p(B) B v for p(z) = 1 + sum of coefficients zʲ."""
        return float(np.linalg.norm(first + others @ coefficients))

    coefficients = np.poly(roots)[::-1][1:] / np.prod(-roots)
    best = np.linalg.lstsq(others, -first, rcond=None)[0]
    assert left(coefficients.real) == pytest.approx(left(best), rel=1e-6)
