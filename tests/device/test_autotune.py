"""The fastest launch shape is measured once on a GPU, remembered for the same programs, and never on a CPU."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from petsc_hdg.device import Arrays
from petsc_hdg.device import kernel as autotune
from petsc_hdg.errors import DeviceError


class Pretended:
    """A device that says it is a GPU."""

    is_gpu = True

    def __init__(self, device):
        self.device = device

    def __getattr__(self, name):
        return getattr(self.device, name)


@pytest.fixture
def pretended(device, fresh_cache, monkeypatch):
    """A pretended GPU on which a launch of 16 work-items a group takes 1 ms, with others 3 ms."""
    monkeypatch.setattr(autotune, "_span", lambda kernel, *_: 1e-3 if kernel.spec.local_size == 16 else 3e-3)
    return Pretended(device)


def nothing(kernel) -> None:
    """A launch whose time is pretended."""


def shapes(make_spec, sizes=(64, 16, 32)) -> list:
    return [replace(make_spec(), macros={"GROUP": size}, local_size=size) for size in sizes]


def test_the_fastest_is_remembered(pretended, fresh_cache, make_spec, monkeypatch):
    assert autotune.fastest(shapes(make_spec), pretended, nothing).spec.local_size == 16
    (file,) = fresh_cache.glob("tuned-*/shape.json")
    assert json.loads(file.read_text())["fastest"] == 1
    monkeypatch.setattr(autotune, "_span", lambda *_: pytest.fail("measured again"))
    assert autotune.fastest(shapes(make_spec), pretended, None).spec.local_size == 16
    assert autotune.fastest(shapes(make_spec), pretended, nothing).spec.local_size == 16
    file.write_text(json.dumps({"fastest": 7}))
    with pytest.raises(pytest.fail.Exception, match="measured again"):
        autotune.fastest(shapes(make_spec), pretended, nothing)


def test_little_work_is_not_remembered(pretended, fresh_cache, make_spec, monkeypatch):
    monkeypatch.setattr(autotune, "LEAST_SECONDS", 10.0)
    assert autotune.fastest(shapes(make_spec), pretended, nothing).spec.local_size == 16
    assert autotune.fastest(shapes(make_spec), pretended, None).spec.local_size == 64
    assert not list(fresh_cache.glob("tuned-*/shape.json"))


def test_shapes_that_cannot_run_are_left_out(pretended, make_spec):
    large = pretended.max_work_group * 2
    kernel = autotune.fastest(shapes(make_spec, (large, 32)), pretended, nothing)
    assert kernel.spec.local_size == 32
    with pytest.raises(DeviceError, match=f"{large} work-items"):
        autotune.fastest(shapes(make_spec, (large, 2 * large)), pretended, nothing)


def test_a_cpu_takes_the_first(device, make_spec):
    if device.is_gpu:
        pytest.skip("needs a CPU")
    assert autotune.fastest(shapes(make_spec), device, None).spec.local_size == 64


def test_measurement_launches_each(device, fresh_cache, make_spec):
    arrays, count, launched = Arrays(device), 1000, []
    a, b, out = (arrays.to_device(np.full(count, value)) for value in (1.0, 2.0, 0.0))

    def launch(kernel):
        launched.append(kernel.spec.local_size)
        kernel(count, a, b, out, count)

    autotune.fastest(shapes(make_spec), Pretended(device), launch)
    assert set(launched) == {64, 16, 32}
