"""A device and small kernels for the tests of this folder."""

import numpy as np
import pytest

from petsc_hdg.codegen import KernelSpec
from petsc_hdg.device import Device


@pytest.fixture(scope="session")
def device() -> Device:
    return Device.select("any")


@pytest.fixture
def fresh_cache(tmp_path, monkeypatch):
    """An empty folder for compiled programs."""
    monkeypatch.setenv("PETSC_HDG_CACHE", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


@pytest.fixture(scope="session")
def make_spec():
    """make_spec(**changes) is the spec of selftest_add: sum = a + b + shift."""

    def make(shift: float = 0.25, **changes) -> KernelSpec:
        given = dict(name="selftest_add", sources=("selftest.cl",), macros={"GROUP": 64}, local_size=64)
        return KernelSpec(**{**given, "tables": {"SHIFT": np.array([shift])}, **changes})

    return make
