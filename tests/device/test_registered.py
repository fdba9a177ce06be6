"""Memory of others that a device is told of: it stays as it is, and a driver that refuses does no harm."""

import numpy as np
import pyopencl as cl
import pytest

from petsc_hdg.device import node


def test_memory_is_only_read(device):
    memory = np.random.default_rng(1).integers(0, 255, node.SAMPLE + 4096).astype(np.uint8)
    before = memory.copy()
    found = node.register(device, memory)
    assert found.buffer is not None and found.speed > 0 and found.how in ("made", "read", "mapped")
    del found
    np.testing.assert_array_equal(memory, before)


@pytest.mark.parametrize("fast", [False, True])
def test_all_ways_are_tried_until_one_is_fast(device, monkeypatch, fast):
    monkeypatch.setattr(node, "SLOWER", 1e9 if fast else 0.0)
    found = node.register(device, np.zeros(8192, np.uint8))
    assert (found.is_fast, found.how) == ((True, "made") if fast else (False, "mapped"))


def test_a_driver_that_refuses(device, monkeypatch):
    def refuse(*_arguments, **given):
        if "hostbuf" in given:
            raise cl.LogicError("clCreateBuffer failed: INVALID_HOST_PTR")
        return buffer(*_arguments, **given)

    buffer = cl.Buffer
    monkeypatch.setattr(cl, "Buffer", refuse)
    found = node.register(device, np.zeros(8192, np.uint8))
    assert (found.buffer, found.is_fast, found.how) == (None, False, "refused")


def test_a_driver_that_fails_later(device, monkeypatch):
    """What was reached before is kept."""

    def refuse(*_arguments, **_given):
        raise cl.LogicError("clEnqueueMapBuffer failed: MAP_FAILURE")

    memory, own = np.zeros(8192, np.uint8), np.zeros(8192, np.uint8)
    monkeypatch.setattr(node, "SLOWER", 0.0)
    monkeypatch.setattr(node, "_own_memory", lambda device, size: own)
    monkeypatch.setattr(cl, "enqueue_map_buffer", refuse)
    found = node.register(device, memory)
    assert found.buffer is not None and (found.is_fast, found.how) == (False, "read")
