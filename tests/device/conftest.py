"""A device and small kernels for the tests of this folder."""

import numpy as np
import pytest

from petsc_hdg.codegen import KernelSpec
from petsc_hdg.device import Device, build, context


@pytest.fixture(scope="session")
def device() -> Device:
    return Device.select("any")


@pytest.fixture
def next_process(fresh_cache):
    """next_process() forgets what this process has in memory of devices, so that programs come from the disk."""
    return context._OPENED.clear


@pytest.fixture(scope="session")
def make_spec():
    """make_spec(**changes) is the spec of selftest_add: sum = a + b + shift."""

    def make(shift: float = 0.25, **changes) -> KernelSpec:
        given = dict(name="selftest_add", sources=("selftest.cl",), macros={"GROUP": 64}, local_size=64)
        return KernelSpec(**{**given, "tables": {"SHIFT": np.array([shift])}, **changes})

    return make


@pytest.fixture
def compilations(monkeypatch):
    """A list that grows by one with each compilation."""
    done, original = [], build._compiled

    def counted(*arguments):
        done.append(1)
        return original(*arguments)

    monkeypatch.setattr(build, "_compiled", counted)
    return done
