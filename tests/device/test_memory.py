"""Memory of a device is counted before the driver is asked, and a lack of it says what would fit."""

from __future__ import annotations

import re
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.device import Arrays, Device, context
from petsc_hdg.device.memory import Memory, size
from petsc_hdg.errors import DeviceError, PetscHdgError, our_error
from petsc_hdg.options import Options
from petsc_hdg.petsc import lifetimes
from petsc_hdg.physics import library


def test_what_is_held_counts(fresh_cache):
    device = Device.select()
    arrays, device.memory.room = Arrays(device), 10_000
    first = arrays.zeros(1000)
    with pytest.raises(DeviceError, match=r"no room for 4 kB more \(8 kB of 10 kB for this rank are taken\)"):
        arrays.empty(500)
    assert device.memory.held == 8000 == device.memory.most
    arrays.empty(250)
    del first
    arrays.empty(1200)
    assert device.memory.held == 0 and device.memory.most == 10_000


def test_problems_of_a_process_share_the_room(fresh_cache):
    first, second = Device.select(), Device.select()
    second.memory.room = 10_000
    held = Arrays(first).zeros(1000)
    with pytest.raises(DeviceError, match=r"\(8 kB of 10 kB for this rank are taken\): 8 kB of them belong to other"):
        Arrays(second).empty(500)
    assert second.memory.held == 0 and first.memory.held == 8000
    del held
    assert Arrays(second).empty(500) and first.memory.held == 0


def test_advice_in_unknowns_and_ranks():
    memory = Memory("abacus", room=1000)
    memory.add(900)
    memory.unknowns, memory.ranks = 100, 2
    said = str(memory.shortage(1100))
    assert "abacus has no room for 1.1 kB more (900 B of 1 kB for this rank are taken)" in said
    assert "20 B an unknown" in said and "at most 50 of this rank's 100 unknowns fit" in said
    assert "at least 4 ranks with as much memory each (-fe_mesh_ranks 4)" in said


def test_ranks_that_share_a_device_share_its_memory(monkeypatch):
    monkeypatch.setattr(context, "collectively", lambda comm: nullcontext())
    five = SimpleNamespace(size=5)
    five.Split_type = lambda kind: SimpleNamespace(rank=0, allgather=lambda mine: [mine] * 3 + ["b"] * 2, Free=int)
    alone, shared = Device.select(), Device.select("any", five)
    assert shared.note == "shared by 3 ranks of this node" and shared.memory.room == alone.memory.room // 3


@pytest.mark.full("0.5", "0.95")
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_a_problem_that_does_not_fit_says_so(monkeypatch, share):
    physics = library.poisson(boundary=[fe.Dirichlet("boundary", 0.0)])
    mesh = fe.Mesh.box((8, 8), comm=PETSc.COMM_SELF)

    def most() -> int:
        problem = fe.Problem(mesh, physics, Options(check_kernels=False))
        problem.solve()
        return problem.device.memory.most

    needed, made = most(), Memory.__init__
    lifetimes.destroy()  # what is given up later would make room

    def small(self, name="", room=None, taken=None):
        made(self, name, taken.bytes + int(share * needed), taken)

    monkeypatch.setattr(Memory, "__init__", small)
    with pytest.raises(DeviceError, match="has no room for"):
        most()


def test_what_drivers_and_numpy_say_becomes_a_sentence():
    drivers = type("RuntimeError", (Exception,), {"__module__": "pyopencl._cl"})  # which no Python code can make
    lack = drivers("clEnqueueNDRangeKernel failed: MEM_OBJECT_ALLOCATION_FAILURE")
    assert re.search("driver has no memory left .*use more ranks", str(our_error(lack)))
    assert our_error(drivers("clSetKernelArg failed: INVALID_ARG_SIZE")) is None
    with pytest.raises(MemoryError) as caught:
        np.empty(2**57)
    assert re.search("host has no memory left .*1.00 EiB.*coarser mesh", str(our_error(caught.value)))
    assert isinstance(our_error(caught.value), PetscHdgError)


@pytest.mark.parametrize(("nbytes", "text"), [(0, "0 B"), (999, "999 B"), (1.5e9, "1.5 GB"), (2e18, "2e+03 PB")])
def test_sizes(nbytes, text):
    assert size(nbytes) == text
