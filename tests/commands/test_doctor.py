"""The command table and the doctor: what it says, and its exit code."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from petsc_hdg import __main__ as command_line
from petsc_hdg.commands import check_software, doctor
from petsc_hdg.commands.check_software import Finding, Level
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


MODULES = [*(module for _, module, _, _ in check_software.PACKAGES), "mpi4py", "petsc4py"]
NUMPY = "numpy.dtype size changed, may indicate binary incompatibility"  # of a petsc4py compiled for numpy 1


@pytest.fixture
def broken(tmp_path):
    """A folder, and what makes in it a package whose import fails: first on the path, it hides the right one."""

    def broken(module: str, error: str):
        (tmp_path / module).mkdir()
        (tmp_path / module / "__init__.py").write_text(f"raise {error}\n")
        return str(tmp_path)

    return broken


def run_with(path: str, *arguments):
    return run(*arguments, PYTHONPATH=f"{path}:{os.environ.get('PYTHONPATH', '')}")


def test_doctor_with_every_import_broken(broken):
    for module in MODULES:
        path = broken(module, f"ValueError('{NUMPY}')")
    done = run_with(path, "doctor")
    assert done.returncode == 1 and "missing or broken: numpy, pyopencl, " in done.stdout, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr and "small solve" in done.stdout
    for distribution, *_ in check_software.PACKAGES:
        assert f"pip install --force-reinstall --no-deps {distribution}==" in done.stdout
    assert "pip install 'numpy<2' 'fenics-basix<0.11'" in done.stdout


def test_a_petsc4py_for_another_numpy_is_one_sentence(broken):
    path = broken("petsc4py", f"ValueError('{NUMPY}')")
    done = run_with(path, "check", "-only", "cg_gpu, triangles")
    assert done.returncode == 1 and done.stderr.startswith("error: A package that petsc_hdg needs cannot be imported")
    assert NUMPY in done.stderr and "Traceback" not in done.stderr
    script = "import petsc_hdg as fe\ntry: fe.Mesh\nexcept fe.InstallError as error: print(error)"
    env = {**os.environ, "PYTHONPATH": f"{path}:{os.environ.get('PYTHONPATH', '')}"}
    said = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True).stdout
    assert NUMPY in said and "petsc_hdg doctor" in said


def test_what_to_type_keeps_the_bounds_of_pyproject():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    old = set(re.findall(r'"([\w-]+)[^";]*(<[\d.]+); python_version < ', text))
    typed = re.findall(r"'([\w-]+)(<[\d.]+)'", " ".join(check_software._BOUNDED.values()))
    assert old == set(typed) and ("fenics-basix", "<0.11") in old  # 0.11 takes numpy 2


def test_a_broken_check_is_a_finding():
    def broken(_choice):
        yield Finding(Level.OK, "first", "works")
        raise DeviceError("no such device")

    first, second = doctor.found(broken, "any")
    assert first.level is Level.OK
    assert second == Finding(Level.MISSING, "broken", "no such device")


def test_no_device_says_how_to_get_one(monkeypatch):
    monkeypatch.setattr(platforms, "all_devices", lambda: [])
    (finding,) = doctor.devices("any")
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
    monkeypatch.setattr(doctor.os, "access", lambda *a: False)
    (finding,) = doctor.cache("any")
    assert finding.level is Level.NOTE and "PETSC_HDG_CACHE" in finding.remedy
