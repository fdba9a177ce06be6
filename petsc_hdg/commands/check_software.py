"""The doctor's look at Python, its packages, MPI and PETSc."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from importlib import import_module, metadata

from petsc_hdg.commands.alone import CROWDED, alone


class Level(Enum):
    """ok: works; note: works with less; MISSING: needed and not there."""

    OK = "ok"
    NOTE = "note"
    MISSING = "MISSING"


@dataclass(frozen=True)
class Finding:
    """Result of a check: its subject, the finding, and how to get what is missing."""

    level: Level
    name: str
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        line = f"{self.level.value:<8}{self.name:<14}{self.text}"
        return line + (f"\n{'':<22}→ {self.remedy}" if self.remedy else "")


# distribution, module, whether it is needed, what it is for
PACKAGES = (
    ("numpy", "numpy", True, "arrays"),
    ("pyopencl", "pyopencl", True, "OpenCL"),
    ("fenics-basix", "basix", True, "reference elements"),
    ("pycparser", "pycparser", True, "pointwise functions in C"),
    ("sympy", "sympy", True, "pointwise functions as formulas"),
    ("pymetis", "pymetis", False, "agglomerates, and cells dealt out to ranks"),
    ("h5py", "h5py", False, "checkpoints"),
    ("threadpoolctl", "threadpoolctl", False, "inverses on processors that ranks share"),
    ("meshio", "meshio", False, "meshes other than Gmsh's"),
    ("matplotlib", "matplotlib", False, "pictures"),
)
_SYSTEM = "'make setup', or 'apt-get install python3-petsc4py python3-mpi4py openmpi-bin', or conda-env.yml"
# As pyproject.toml has them: distributions with these Pythons have a petsc4py for numpy 1, which newer ones replace.
_BOUNDED = {"fenics-basix": "'fenics-basix<0.11'", "matplotlib": "'matplotlib<3.11' 'contourpy<1.3.3'"}
_OLD_NUMPY = f"pip install 'numpy<2' {_BOUNDED['fenics-basix']}"


def python(_choice: str) -> Iterator[Finding]:
    """The interpreter."""
    yield Finding(Level.OK, "Python", f"{platform.python_version()} ({sys.executable})")


def packages(_choice: str) -> Iterator[Finding]:
    """The Python packages the code imports."""
    for distribution, module, needed, purpose in PACKAGES:
        try:
            import_module(module)
            version = metadata.version(distribution)
        except Exception as error:  # a package may be there and broken: its import can raise anything
            level = Level.MISSING if needed else Level.NOTE
            text = f"cannot be imported, for {purpose} ({type(error).__name__}: {error})"
            yield Finding(level, distribution, text, _to_install(distribution, error))
        else:
            yield Finding(Level.OK, distribution, version)


def _to_install(distribution: str, error: Exception) -> str:
    """Return the command that repairs a package that fails to import. An installed version is reinstalled."""
    if not isinstance(error, ModuleNotFoundError):
        try:
            return f"pip install --force-reinstall --no-deps {distribution}=={metadata.version(distribution)}"
        except metadata.PackageNotFoundError:
            pass
    return f"pip install {_BOUNDED.get(distribution, distribution) if sys.version_info < (3, 13) else distribution}"


def mpi(_choice: str) -> Iterator[Finding]:
    """mpi4py, its MPI, and whether mpiexec starts ranks of the same MPI."""
    try:
        import mpi4py
        from mpi4py import MPI
    except Exception as error:
        yield Finding(Level.MISSING, "mpi4py", f"cannot be imported ({error})", _SYSTEM)
        return
    library = MPI.Get_library_version().split(",")[0].strip().splitlines()[0]
    yield Finding(Level.OK, "mpi4py", f"{mpi4py.__version__} on {library}")
    if MPI.COMM_WORLD.size == 1:
        yield _mpiexec()


def _mpiexec() -> Finding:
    launcher = shutil.which("mpiexec")
    if launcher is None:
        return Finding(Level.MISSING, "mpiexec", "is not on the path", _SYSTEM)
    # One write a rank: what two ranks print in parts can be mixed.
    script = "from mpi4py import MPI; import sys; sys.stdout.write(f'ranks {MPI.COMM_WORLD.allreduce(1)}\\n')"
    env = {**CROWDED, **alone(os.environ)}  # whether root may start ranks by itself is one of the questions
    try:
        done = subprocess.run(
            [launcher, "-n", "2", sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=env
        )
    except subprocess.TimeoutExpired:
        return Finding(Level.MISSING, "mpiexec", f"{launcher} does not start 2 ranks in 60 s", _SYSTEM)
    if done.returncode == 0 and done.stdout.split() == ["ranks", "2"] * 2:
        return Finding(Level.OK, "mpiexec", f"{launcher} starts 2 ranks")
    if "ranks 1" in done.stdout:
        return Finding(Level.MISSING, "mpiexec", f"{launcher} belongs to another MPI than mpi4py", _SYSTEM)
    if "OMPI_ALLOW_RUN_AS_ROOT" in done.stderr:
        remedy = "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 (make does), or run as a user"
        return Finding(Level.NOTE, "mpiexec", f"{launcher} does not run as root by itself", remedy)
    text = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
    return Finding(Level.MISSING, "mpiexec", f"{launcher} does not start 2 ranks: {text}", _SYSTEM)


def petsc(_choice: str) -> Iterator[Finding]:
    """petsc4py, the PETSc under it, and whether its vectors can live on an OpenCL device."""
    try:
        import petsc4py
        from petsc4py import PETSc
    except Exception as error:
        remedy = _OLD_NUMPY if "numpy" in str(error) else _SYSTEM
        yield Finding(Level.MISSING, "petsc4py", f"cannot be imported ({error})", remedy)
        return
    version = ".".join(map(str, PETSc.Sys.getVersion()))
    kinds = f"{PETSc.ScalarType.__name__}, {PETSc.IntType.__name__}"
    yield Finding(Level.OK, "PETSc", f"{version} with petsc4py {petsc4py.__version__} ({kinds})")
    if PETSc.ScalarType is not PETSc.RealType or PETSc.RealType().itemsize != 8:
        yield Finding(Level.MISSING, "PETSc scalars", kinds, "a PETSc configured with real scalars in double precision")
    if PETSc.Sys.hasExternalPackage("viennacl"):
        yield Finding(Level.OK, "ViennaCL", "vectors can stay on the device: -dm_vec_type viennacl")
    else:
        remedy = "for vectors on the device, 'scripts/build_petsc.sh PREFIX' builds a PETSc with ViennaCL"
        yield Finding(Level.NOTE, "ViennaCL", "not in this PETSc: vectors are staged through the host", remedy)
