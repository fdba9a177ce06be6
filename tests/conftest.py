"""Shared by all tests: runs under mpiexec, and reasons to skip."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiers

from petsc_hdg.commands.alone import ONE_THREAD, for_mpiexec

ROOT = Path(__file__).resolve().parents[1]
_MPI = {
    **ONE_THREAD,
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",  # ranks that wait leave the core to those that work: OpenMPI 4
    "PYTHONDONTWRITEBYTECODE": "",  # compiling the package's text is a third of a rank's start
}


def pytest_addoption(parser):
    """Options that choose a tier."""
    tiers.add_options(parser)


def pytest_configure(config):
    """Time the files; kernels of tests and of the ranks they start are compiled in a third of the time, and linked in
    half of it."""
    tiers.configure(config)
    os.environ.setdefault("COMPILER_PATH", str(ROOT / "tests" / "linker"))
    if not config.getoption("--optimized"):
        os.environ.setdefault("PETSC_HDG_BUILD_OPTIONS", "-cl-opt-disable -DCALLS")


def pytest_collection_modifyitems(config, items):
    """Leave out other tiers, skip what this machine or PETSc cannot run."""
    tiers.choose(config, items)
    for item in items:
        for marker, reason in (("requires_viennacl", _no_viennacl), ("requires_gpu", _no_gpu)):
            if item.get_closest_marker(marker) and reason():
                item.add_marker(pytest.mark.skip(reason=reason()))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    """Figures that tests record pass between processes (pytest -n) as text, costs as they are."""
    report = (yield).get_result()
    report.costs = tiers.SPENT.since()
    report.user_properties = [(name, str(value)) for name, value in report.user_properties]


def _no_viennacl() -> str:
    from petsc4py import PETSc

    return "" if PETSc.Sys.hasExternalPackage("viennacl") else "this PETSc is configured without ViennaCL"


def _no_gpu() -> str:
    from petsc_hdg.device.platforms import all_devices, is_gpu

    return "" if any(is_gpu(device) for device in all_devices()) else "there is no OpenCL GPU"


@pytest.fixture(scope="module", autouse=True)
def collector():
    """Python's collector, which problems call, looks at what the tests of one file make, not at all that was loaded."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def uninitialised_buffers():
    """Fill new buffers with signalling NaN or large integers, so that a read before a write fails each time."""
    from petsc_hdg.device.arrays import Arrays, opencl

    empty = Arrays.empty
    signalling = {4: np.uint32(0x7FA00000), 8: np.uint64(0x7FF4000000000000)}

    def filled(arrays, count, dtype=None):
        buffer, kind = empty(arrays, count, dtype), arrays.real if dtype is None else np.dtype(dtype)
        value = signalling[kind.itemsize] if kind.kind == "f" else np.uint8(0x7F)
        opencl().enqueue_fill_buffer(arrays.device.queue, buffer, value, 0, buffer.size)
        return buffer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Arrays, "empty", filled)
        yield


@pytest.fixture(scope="session", autouse=True)
def timed_compilation():
    """Count the seconds of compiling each kernel."""
    from petsc_hdg.device import build, kernel

    compiled, first = build._compiled, kernel.first_launch
    with pytest.MonkeyPatch.context() as patch:
        timed = tiers.SPENT.timed
        patch.setattr(build, "_compiled", lambda *given: timed(lambda device, spec, entry: spec.name, compiled, *given))
        patch.setattr(kernel, "first_launch", lambda *given: timed(lambda entry, name, launch: name, first, *given))
        yield


@pytest.fixture(scope="session", autouse=True)
def stated_local_memory():
    """A kernel that states its local memory takes no more: shapes of work-groups are chosen by what is stated."""
    from petsc_hdg.device import Device
    from petsc_hdg.discretizations.poly import matrix_specs

    check = Device.require_room

    def compared(device, spec, taken, most_items):
        check(device, spec, taken, most_items)
        stated, by_driver = spec.local_bytes, 8 if device.is_gpu else 0  # Nvidia's takes 8 bytes itself
        assert not stated or taken <= stated + by_driver or matrix_specs.EMULATED, (spec.name, taken, stated)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Device, "require_room", compared)
        yield


@pytest.fixture
def fresh_cache(tmp_path, monkeypatch):
    """An empty folder for compiled programs, and devices that were never used."""
    from petsc_hdg.device import context  # starts MPI

    monkeypatch.setattr(context, "_OPENED", {})
    monkeypatch.setenv("PETSC_HDG_CACHE", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


@pytest.fixture(scope="session")
def mpirun():
    """mpirun(ranks, *arguments, check=True, timeout=300, env={}, cwd=ROOT) runs `python arguments` on `ranks` ranks.

    Scripts import what all tests share. With 0 ranks it starts Python itself, without mpiexec. It returns the finished
    process with stdout and stderr as text; a run that fails is an AssertionError that shows both, unless check is
    False. A run past `timeout` seconds is an error too: ranks that wait for ever are a failure.
    """

    def run(ranks: int, *arguments, check: bool = True, timeout: float = 300, env: dict | None = None, cwd=ROOT):
        command = [*(("mpiexec", "-n", str(ranks)) if ranks else ()), sys.executable, *map(str, arguments)]
        shared = os.pathsep.join(filter(None, (str(ROOT / "tests"), os.environ.get("PYTHONPATH"))))
        on_all = {} if _no_gpu() else {"PETSC_OPTIONS": "-fe_mesh_ranks 1000000"}  # one GPU would have a small mesh
        environment = for_mpiexec(**{**_MPI, "PYTHONPATH": shared, **on_all, **(env or {})})
        tiers.SPENT.starts += 1
        done = _finished(command, timeout, environment, cwd)
        if check:
            assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done

    return run


def _finished(command: list[str], timeout: float, env: dict, cwd) -> subprocess.CompletedProcess:
    # An explicit environment leaves out what MPI put into this process's own when PETSc was imported.
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=env, cwd=cwd
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.terminate()  # mpiexec ends its ranks
        out, err = process.communicate(timeout=30)
        raise AssertionError(f"{' '.join(command)} did not end in {timeout} s\n{out}\n{err}") from None
    return subprocess.CompletedProcess(command, process.returncode, out, err)
