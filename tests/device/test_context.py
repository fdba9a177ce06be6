"""Choice of a device, and what it says about itself and its limits."""

import multiprocessing
import os
from types import SimpleNamespace

import numpy as np
import pytest

from petsc_hdg import nvml
from petsc_hdg.device import Arrays, Device, platforms
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.errors import DeviceError

cl = pytest.importorskip("pyopencl")
CPU, GPU = cl.device_type.CPU, cl.device_type.GPU


def fake(name: str, kind: int, platform: str = "A"):
    owner = _PLATFORMS.setdefault(platform, SimpleNamespace(name=platform))
    return SimpleNamespace(name=name, type=kind, platform=owner)


_PLATFORMS: dict = {}
NODE = [fake("cpu", CPU, "PoCL"), fake("Tesla 0", GPU, "NV"), fake("Tesla 1", GPU, "NV"), fake("iGPU", GPU, "Intel")]


@pytest.mark.parametrize(
    ("choice", "found"),
    [("any", [1, 2]), ("gpu", [1, 2]), ("GPU", [1, 2]), ("cpu", [0]), ("0", [0]), ("3", [3]), (2, [2]), ("4", [])]
    + [("-1", []), ("tesla", [1, 2]), ("intel", [3]), ("radeon", []), ("", [])],
)
def test_choice(choice, found):
    assert platforms.matching(choice, NODE) == [NODE[i] for i in found]


def asked_for_device(_) -> None:
    Device.select()


def copied_by(device) -> None:
    Arrays(device).zeros(1)


@pytest.mark.parametrize("use", [asked_for_device, copied_by])
def test_forks_are_told(device, use):
    """Whether they ask for a device or work with their parent's."""

    def run(answer) -> None:
        try:
            use(device)
        except DeviceError as error:
            answer.put(str(error))

    context = multiprocessing.get_context("fork")
    answer = context.SimpleQueue()
    child = context.Process(target=run, args=(answer,))
    child.start()
    child.join(20)
    child.kill()
    assert not answer.empty() and "forked from one that uses OpenCL" in answer.get()


def test_any_falls_back_to_the_cpu():
    assert platforms.matching("any", NODE[:1]) == NODE[:1]
    assert platforms.matching("gpu", NODE[:1]) == []


@pytest.mark.parametrize(("rank", "chosen"), [(0, 1), (1, 2), (2, 1)])
def test_ranks_of_a_node_take_turns(monkeypatch, rank, chosen):
    monkeypatch.setattr(platforms, "all_devices", lambda: NODE)
    assert platforms.choose("gpu", rank) is NODE[chosen]


@pytest.mark.parametrize(
    ("rank", "given", "found"),
    [
        ("1", None, "1,2,0"),
        ("5", None, "2,0,1"),
        ("0", None, None),
        ("1", "3,5", "5,3"),
        ("1", "5,3", "5,3"),
        ("1", "4", "4"),
    ],
)
def test_the_gpu_of_a_rank_comes_first(monkeypatch, rank, given, found):
    """Unless each rank has an order, or a GPU, of its own."""
    monkeypatch.setattr(nvml, "_count", lambda: 3)
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", rank)
    monkeypatch.delenv(nvml.VARIABLE, raising=False)
    if given is not None:
        monkeypatch.setenv(nvml.VARIABLE, given)
    nvml.own_gpu_first()
    assert os.environ.get(nvml.VARIABLE) == found


@pytest.mark.parametrize(
    ("platform", "kind", "target"), [("NVIDIA CUDA", GPU, 90), ("NVIDIA CUDA", CPU, 0), ("Portable OpenCL", GPU, 0)]
)
def test_inline_ptx_is_for_gpus_of_nvidia(platform, kind, target):
    made = SimpleNamespace(
        type=kind, platform=SimpleNamespace(name=platform), compute_capability_major_nv=9, compute_capability_minor_nv=0
    )
    assert platforms.ptx_target(made) == target
    del made.compute_capability_major_nv  # an older driver
    assert platforms.ptx_target(made) == 0


def test_limits_of_a_device(device):
    limits = DeviceLimits.of(device)
    assert limits.macros == {"PTX": device.ptx}
    assert (limits.local_bytes, limits.is_gpu) == (device.local_bytes, device.is_gpu)


def test_unknown_device_lists_the_known(monkeypatch):
    monkeypatch.setattr(platforms, "all_devices", lambda: NODE)
    with pytest.raises(DeviceError, match=r"'radeon'.*gpu, cpu, any.*0: cpu \(PoCL\); 1: Tesla 0 \(NV\)"):
        Device.select("radeon")


def test_no_device_says_how_to_get_one(monkeypatch):
    monkeypatch.setattr(platforms, "all_devices", lambda: [])
    with pytest.raises(DeviceError, match="pocl-opencl-icd"):
        Device.select()


def test_missing_pyopencl_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(platforms, "cl", None)
    monkeypatch.setattr(platforms, "_import_error", ImportError("none"), raising=False)
    with pytest.raises(DeviceError, match="pip install pyopencl"):
        Device.select()


def test_view(device):
    text = device.view()
    assert device.name in text and "local memory" in text and device.driver in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(local_bytes=10**9), "1000000000 bytes of local memory"),
        (dict(local_size=10**6), "1000000 work-items"),
        (dict(tables={"SHIFT": np.broadcast_to(0.0, 10**9)}), "8000000000 bytes of constant memory"),
    ],
)
def test_limits_are_checked_before_anything_is_compiled(device, make_spec, change, message):
    with pytest.raises(DeviceError, match=message):
        device.require(make_spec(**change))


def test_missing_fp64_is_said_in_words(make_spec):
    device = Device.select()
    device.has_fp64 = False
    device.require(make_spec(precision="single"))
    with pytest.raises(DeviceError, match="double precision.*-fe_precision single"):
        device.require(make_spec())


def test_a_host_vector_has_no_context():
    from petsc4py import PETSc

    with pytest.raises(DeviceError, match="-dm_vec_type viennacl"):
        Device.from_vec(PETSc.Vec().createSeq(3))
