"""The smallest kernels compared with numpy: does the device compute at all?"""

from __future__ import annotations

import numpy as np

from petsc_hdg.codegen import KernelSpec
from petsc_hdg.device.arrays import Arrays
from petsc_hdg.device.context import Device
from petsc_hdg.device.kernel import Kernel

TOLERANCE = {"double": 4 * 2.0**-52, "single": 4 * 2.0**-23}
_GROUP = 64


def largest_error(device: Device, precision: str, count: int = 1000) -> float:
    """Largest difference from numpy of a sum, and of a reversal through local memory, of values below 1."""
    arrays = Arrays(device, precision)
    macros, tables = {"GROUP": _GROUP}, {"SHIFT": np.array([0.1])}
    add, reverse = (
        Kernel(KernelSpec(name, ("selftest.cl",), macros, tables, precision=precision, local_size=_GROUP), device)
        for name in ("selftest_add", "selftest_reverse")
    )
    a, b = np.random.default_rng(0).random((2, _GROUP * (count // _GROUP))).astype(arrays.real)
    buffers = arrays.to_device(a), arrays.to_device(b)
    result = arrays.empty(a.size)
    add(a.size, *buffers, result, a.size)
    difference = np.abs(arrays.to_host(result, a.shape) - (a + b + arrays.real.type(0.1))).max()
    reverse(a.size, buffers[0], result, a.size)
    expected = a.reshape(-1, _GROUP)[:, ::-1].ravel()
    return float(max(difference, np.abs(arrays.to_host(result, a.shape) - expected).max()))
