"""The command table and the doctor: what it says, and its exit code."""

import os
import subprocess
import sys

import pytest

from petsc_hdg import __main__ as command_line
from petsc_hdg.commands import check_device, check_software, doctor
from petsc_hdg.commands.finding import Finding, Level
from petsc_hdg.device import platforms
from petsc_hdg.errors import DeviceError


def run(*arguments, **env):
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **env}
    command = [sys.executable, "-m", "petsc_hdg", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def test_usage_lists_the_commands(capsys):
    assert command_line.main([]) == 2
    assert command_line.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in command_line.COMMANDS)


def test_unknown_command(capsys):
    assert command_line.main(["docter"]) == 2
    assert "'docter' is no command" in capsys.readouterr().err


def test_doctor_on_this_machine():
    done = run("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in (
        "Python",
        "numpy",
        "PETSc",
        "mpi4py",
        "mpiexec",
        "device 0",
        "self-test",
        "kernel cache",
        "small solve",
    ):
        assert f" {name} " in done.stdout
    assert "everything that is needed works" in done.stdout


def test_doctor_without_a_device(tmp_path):
    done = run("doctor", OCL_ICD_VENDORS=str(tmp_path), OCL_ICD_FILENAMES="")
    assert done.returncode == 1
    assert "pocl-opencl-icd" in done.stdout and "missing or broken: OpenCL" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_broken_check_is_a_finding():
    def broken(_choice):
        yield Finding(Level.OK, "first", "works")
        raise DeviceError("no such device")

    first, second = doctor.found(broken, "any")
    assert first.level is Level.OK
    assert second == Finding(Level.MISSING, "broken", "no such device")


def test_no_device_says_how_to_get_one(monkeypatch):
    monkeypatch.setattr(platforms, "all_devices", lambda: [])
    (finding,) = check_device.devices("any")
    assert finding.level is Level.MISSING and "pocl" in finding.remedy


@pytest.mark.parametrize(("needed", "level"), [(True, Level.MISSING), (False, Level.NOTE)])
def test_missing_package(monkeypatch, needed, level):
    monkeypatch.setattr(check_software, "PACKAGES", (("nothing", "no_such_module", needed, "tests"),))
    (finding,) = check_software.packages("any")
    assert finding.level is level and finding.remedy == "pip install nothing"


def test_missing_mpiexec(monkeypatch):
    monkeypatch.setattr(check_software.shutil, "which", lambda name: None)
    assert check_software._mpiexec().level is Level.MISSING


def test_mpiexec_of_another_mpi(monkeypatch):
    done = subprocess.CompletedProcess([], 0, stdout="ranks 1\nranks 1\n", stderr="")
    monkeypatch.setattr(check_software.shutil, "which", lambda name: name)
    monkeypatch.setattr(check_software.subprocess, "run", lambda *a, **k: done)
    assert "another MPI" in check_software._mpiexec().text


def test_unwritable_cache(monkeypatch):
    monkeypatch.setattr(check_device.os, "access", lambda *a: False)
    (finding,) = check_device.cache("any")
    assert finding.level is Level.NOTE and "PETSC_HDG_CACHE" in finding.remedy
