"""Runs of launches as steps of one persistent kernel, against numpy and against the launches themselves."""

from __future__ import annotations

import numpy as np
import pytest
from mpi4py import MPI
from test_sell_matrix import petsc_matrix, random_matrix

from petsc_hdg.device import Arrays, Device, Recorded
from petsc_hdg.krylov import persistent
from petsc_hdg.krylov.dense_matrix import DenseMatrix
from petsc_hdg.krylov.sell_matrix import SellMatrix
from petsc_hdg.krylov.smoothers import Smoother
from petsc_hdg.krylov.vectors import Vectors

ROWS = 75


@pytest.fixture
def arrays():
    device = Device.select("any")
    if not device.is_gpu:
        device.is_gpu, device.persistent_groups = True, 1  # kernels of a GPU, one work-group that waits for none other
    return Arrays(device)


@pytest.mark.parametrize("precision, tolerance", [("double", 1e-13), ("single", 1e-5)])
@pytest.mark.parametrize("team", [1, 2, 8])
def test_steps_against_numpy(arrays, precision, tolerance, team):
    dense, rng = random_matrix(ROWS, ROWS), np.random.default_rng(2)
    x, b, d, y, z = rng.uniform(-1, 1, (5, ROWS))
    arrays = Arrays(arrays.device, precision)
    sparse, inverse = SellMatrix(petsc_matrix(dense), arrays), DenseMatrix(dense.T, arrays)
    sparse.__dict__["team"] = team
    vectors = Vectors(arrays, ROWS, MPI.COMM_SELF, precision)
    diagonal = type("Diagonal", (), {"is_diagonal": True, "diagonal": arrays.to_device(d)})
    update = Smoother(sparse, diagonal, vectors, ()).update

    def run(x, b, y, z):
        sparse.step(x, y, b=b, diagonal=diagonal.diagonal, keep=0.3, mix=0.7, scale=1.9)
        update(y, x, b, z, 0.2, 0.5, -0.4)
        vectors.run("subtract", b, y)
        inverse.apply(z, x)
        sparse.add(x, y)
        vectors.copy(y, b)

    recorded = Recorded(arrays.device, persistent.merged)
    buffers = [arrays.to_device(each) for each in (x, b, y, z)]
    for _ in range(3):
        y = 0.3 * y + 0.7 * x + 1.9 * d * (b - dense @ x)
        z = 0.2 * z + 0.5 * x - 0.4 * d * (b - y)
        y = b - y
        x = dense.T @ z
        y = y + dense @ x
        b = y
        recorded.run(run, *buffers)
        for buffer, expected in zip(buffers, (x, b, y, z), strict=True):
            off = np.abs(arrays.to_host(buffer, ROWS) - expected).max()
            assert off < tolerance * np.abs(expected).max()
    ((_, (call,)),) = recorded._kept.values()
    assert call.kernel.spec.name == "persistent_steps"
    arrays.upload(call.kernel._arguments[3], np.array([0, 1], np.int32), "a work-group that waited in vain")
    recorded.run(run, *buffers)
    assert np.isnan(arrays.to_host(buffers[1], ROWS)[0])
