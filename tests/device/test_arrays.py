"""Copies between host and device, and the count of their bytes."""

import numpy as np
import pytest

from petsc_hdg.device import Arrays
from petsc_hdg.device import arrays as arrays_module
from petsc_hdg.errors import DeviceError


@pytest.mark.parametrize("precision", ["double", "single"])
def test_there_and_back(device, precision):
    arrays = Arrays(device, precision)
    values = np.random.default_rng(1).random((3, 4))
    back = arrays.to_host(arrays.to_device(values, "x"), (3, 4), name="y")
    np.testing.assert_array_equal(back, values.astype(arrays.real))
    assert arrays.h2d == {"x": 12 * arrays.real.itemsize}
    assert arrays.d2h == {"y": 12 * arrays.real.itemsize}


def test_integers_are_int(device):
    arrays = Arrays(device, "single")
    values = np.array([[0, -5], [2**31 - 1, -(2**31)]])
    np.testing.assert_array_equal(arrays.to_host(arrays.to_device(values), (2, 2), np.int32), values)
    with pytest.raises(DeviceError, match="beyond 32 bits"):
        arrays.to_device(np.array([2**31]))


def test_strided_arrays(device):
    arrays = Arrays(device)
    values = np.arange(24.0).reshape(4, 6)[::2, ::3].T
    np.testing.assert_array_equal(arrays.to_host(arrays.to_device(values), (2, 2)), values)


def test_empty_arrays(device):
    arrays = Arrays(device)
    for buffer in (arrays.empty(0), arrays.zeros(0), arrays.to_device(np.zeros((0, 3)))):
        assert arrays.to_host(buffer, (0, 3)).shape == (0, 3)
    assert arrays.pinned(0).size == 0
    assert arrays.total() == (0, 0)


def test_zeros(device):
    arrays = Arrays(device)
    assert not arrays.to_host(arrays.zeros(1000), 1000).any()


def test_a_buffer_is_set_in_pieces(device, monkeypatch):
    monkeypatch.setattr(arrays_module, "PIECE", 3000)
    arrays, sizes, fill = Arrays(device), [], arrays_module.opencl().enqueue_fill_buffer
    monkeypatch.setattr(
        arrays_module.opencl(), "enqueue_fill_buffer", lambda *given: (sizes.append(given[-1]), fill(*given))
    )
    buffer = arrays.to_device(np.ones(1000))
    arrays.fill(buffer)
    assert not arrays.to_host(buffer, 1000).any() and sizes == [3000, 3000, 2000]


def test_callbacks_are_counted(device):
    arrays = Arrays(device)
    buffer = arrays.to_device(np.zeros(4))
    for _ in range(3):
        with arrays.callback("residual"):
            arrays.upload(buffer, np.ones(4), "x")
    with pytest.raises(ValueError), arrays.callback("jacobian"):
        arrays.to_host(buffer, 2)
        raise ValueError
    arrays.to_host(buffer, 4)
    assert arrays.callbacks["residual"] == {"calls": 3, "h2d": 96, "d2h": 0}
    assert arrays.callbacks["jacobian"] == {"calls": 1, "h2d": 0, "d2h": 16}
    assert arrays.total() == (32 + 96, 16 + 32)


def test_too_large(device):
    with pytest.raises(DeviceError, match="has no room for"):
        Arrays(device).empty(10**15)
