"""Products with assembled matrices on the device, joined with updates, against dense ones."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from mpi4py import MPI
from petsc4py import PETSc

from petsc_hdg.device import Arrays, Device
from petsc_hdg.krylov import sell_matrix
from petsc_hdg.krylov.dense_matrix import DenseMatrix
from petsc_hdg.krylov.sell_matrix import (
    SLICE,
    WINDOW,
    SellMatrix,
    mirrored,
    rows_of,
    slice_starts,
    sorted_rows,
    transfer,
    transposed_product,
)
from petsc_hdg.krylov.vectors import Vectors

ROWS, COLUMNS = 75, 75


@pytest.fixture(scope="module")
def arrays():
    return Arrays(Device.select("any"))


def random_matrix(rows: int, columns: int) -> np.ndarray:
    """A sparse matrix with empty rows and one that is full."""
    rng = np.random.default_rng(5)
    dense = rng.uniform(-1, 1, (rows, columns)) * (rng.uniform(size=(rows, columns)) < 0.1)
    dense[3], dense[40] = 0, rng.uniform(-1, 1, columns)
    return dense


def petsc_matrix(dense: np.ndarray) -> PETSc.Mat:
    row, column = dense.nonzero()
    starts = np.searchsorted(row, np.arange(len(dense) + 1)).astype(PETSc.IntType)
    csr = starts, column.astype(PETSc.IntType), dense[row, column]
    return PETSc.Mat().createAIJ(dense.shape, csr=csr, comm=PETSc.COMM_SELF)


@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("team", [1, 4])
def test_products_and_updates(team, is_sorted, monkeypatch):
    monkeypatch.setattr(sell_matrix, "is_uneven", lambda *_: is_sorted)
    monkeypatch.setattr(sell_matrix, "WINDOW", 64)
    arrays, dense = Arrays(Device.select("any")), random_matrix(ROWS, COLUMNS)
    arrays.device.is_gpu = team > 1
    matrix = SellMatrix(petsc_matrix(dense), arrays)
    matrix.__dict__["team"] = team
    rng = np.random.default_rng(2)
    x, b, d, y = rng.uniform(-1, 1, (4, ROWS))
    buffers = {name: arrays.to_device(v) for name, v in {"x": x, "b": b, "d": d}.items()}

    def result(work, start=y):
        out = arrays.to_device(start)
        work(out)
        return arrays.to_host(out, ROWS)

    def close(found, expected):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)

    bx, bb, bd = buffers.values()
    close(result(lambda out: matrix.apply(bx, out), np.full(ROWS, np.nan)), dense @ x)
    close(result(lambda out: matrix.add(bx, out)), y + dense @ x)
    close(result(lambda out: matrix.residual(bb, bx, out)), b - dense @ x)
    joined = result(lambda out: matrix.step(bx, out, b=bb, diagonal=bd, keep=0.3, mix=0.7, scale=1.9))
    close(joined, 0.3 * y + 0.7 * x + 1.9 * d * (b - dense @ x))


def test_transposed_products_with_vectors_of_petsc(arrays):
    mat = petsc_matrix(random_matrix(50, 20))
    multiply = transposed_product(Vectors(arrays, 50, MPI.COMM_SELF).access, arrays)
    (y, x), expected = mat.createVecs(), mat.createVecRight()
    for factor in (1.0, 2.0):  # it follows the matrix
        mat.scale(factor)
        x.setArray(np.random.default_rng(3).uniform(-1, 1, 50))
        mat.multTranspose(x, expected)
        multiply(mat, x, y)
        np.testing.assert_allclose(y.array, expected.array, atol=1e-13)


def test_rectangles_and_single_precision(arrays):
    dense = random_matrix(50, 20)
    x = np.random.default_rng(4).uniform(-1, 1, 20)
    for precision, tolerance in (("double", 1e-14), ("single", 1e-5)):
        arrays = Arrays(arrays.device, precision)
        out, given = arrays.zeros(50), arrays.to_device(x)
        matrix = SellMatrix(petsc_matrix(dense), arrays)
        matrix.apply(given, out)
        assert np.abs(arrays.to_host(out, 50) - dense @ x).max() < tolerance
        assert matrix.bytes == np.count_nonzero(dense) * (12 if precision == "double" else 8)


def test_slices_of_no_rows():
    assert slice_starts(np.zeros(0, np.int64)).tolist() == [0]


def test_slices_are_as_wide_as_their_longest_row():
    assert slice_starts(np.array([1] * 31 + [3] + [0] * 10)).tolist() == [0, 96, 96]


def test_sorted_rows_need_less_padding(arrays):
    lengths = np.tile([60, 1, 1, 1], 100)[:-5]
    order, starts = sorted_rows(arrays, lengths)
    order = arrays.to_host(order, 13 * SLICE, np.int32)
    windows = [lengths[first : first + WINDOW] for first in (0, WINDOW)]
    by_length = [first * WINDOW + np.argsort(-each, kind="stable") for first, each in enumerate(windows)]
    assert np.array_equal(order[: len(lengths)], np.concatenate(by_length))
    assert np.sort(order)[: len(lengths)].tolist() == list(range(len(lengths))) and (order[len(lengths) :] == 395).all()
    ends = np.append(lengths, 0)[order].reshape(-1, SLICE).max(axis=1)
    assert np.diff(starts).tolist() == (SLICE * ends).tolist() and starts[-1] < 0.5 * slice_starts(lengths)[-1]


@pytest.mark.parametrize("kind", ["aij", "baij"])
def test_rows_of_a_matrix(kind):
    dense = random_matrix(ROWS, COLUMNS)
    mat = petsc_matrix(dense).convert(kind)
    starts, columns, values = rows_of(mat)
    found = np.zeros_like(dense)
    found[np.repeat(np.arange(ROWS), np.diff(starts)), columns] = values
    assert np.array_equal(found, dense) and len(values) == np.count_nonzero(dense)
    assert mat.getType() == f"seq{kind}"
    again = rows_of(mat)[2]
    assert np.shares_memory(values, again) == (kind == "aij")  # views of what PETSc holds


def test_a_matrix_without_entries(arrays):
    matrix = SellMatrix(petsc_matrix(np.zeros((40, 40))), arrays)
    out = arrays.to_device(np.full(40, np.nan))
    matrix.apply(arrays.to_device(np.ones(40)), out)
    assert not arrays.to_host(out, 40).any()


def test_mirrors_are_shared_while_their_matrix_is_as_it_was(arrays):
    dense = random_matrix(50, 50)
    mat = petsc_matrix(dense)
    first = mirrored(mat, arrays)
    assert mirrored(mat, arrays) is first and mirrored(mat, Arrays(arrays.device, "single")) is not first
    mat.scale(2.0)
    again = mirrored(mat, arrays)
    assert again is not first
    out = arrays.zeros(50)
    again.apply(arrays.to_device(np.ones(50)), out)
    np.testing.assert_allclose(arrays.to_host(out, 50), 2 * dense.sum(axis=1), atol=1e-13)


def test_a_mirror_keeps_its_matrix(arrays):
    """Else PETSc may give its place to another, and the mirror would stand for that one."""
    mat = petsc_matrix(np.eye(4))
    made, known = mirrored(mat, arrays), weakref.ref(mat)
    del mat
    assert known() is not None
    del made
    assert known() is None


def test_an_interpolation_keeps_its_mirror(arrays):
    """Until it has other values, and no longer than it lives."""
    mat = petsc_matrix(np.eye(4))
    first = weakref.ref(transfer(mat, arrays))
    assert transfer(mat, arrays) is first()
    mat.scale(2.0)
    second = weakref.ref(transfer(mat, arrays))
    assert first() is None and second() is not None
    mat.destroy()
    assert second() is None


@pytest.mark.parametrize("group", [1, 8])
def test_dense_products(group, arrays, monkeypatch):
    monkeypatch.setattr("petsc_hdg.krylov.dense_matrix.CPU_GROUP", group)
    values, x = np.random.default_rng(5).uniform(-1, 1, (37, 37)), np.random.default_rng(6).uniform(-1, 1, 37)
    y = arrays.zeros(37)
    DenseMatrix(values, arrays).apply(arrays.to_device(x), y)
    np.testing.assert_allclose(arrays.to_host(y, 37), values @ x, rtol=0, atol=1e-14)
