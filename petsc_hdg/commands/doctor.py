"""`doctor`: what works on this machine, what is missing, and how to get it."""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr

from petsc_hdg.commands import check_software
from petsc_hdg.commands.check_software import Finding, Level
from petsc_hdg.errors import PetscHdgError


def devices(_choice: str) -> Iterator[Finding]:
    """All OpenCL platforms and devices."""
    from petsc_hdg.device import platforms

    found = platforms.all_devices()
    if not found:
        yield Finding(Level.MISSING, "OpenCL", "no device", platforms.REMEDY)
    for index, device in enumerate(found):
        precision = "FP64" if "cl_khr_fp64" in device.extensions.split() else "no FP64: -fe_precision single only"
        memory = f"{device.global_mem_size / 2**30:.1f} GiB, local {device.local_mem_size // 1024} KiB"
        text = f"{platforms.describe(device)}: {platforms.kind(device)}, {precision}, {memory}"
        yield Finding(Level.OK, f"device {index}", text)


def chosen(choice: str) -> Iterator[Finding]:
    """The device that -fe_device takes, and a kernel on it against numpy in each precision."""
    from petsc_hdg.device import Device, selftest

    device = Device.select(choice)
    yield Finding(Level.OK, "chosen device", device.name)
    for precision in ("double", "single"):
        if precision == "double" and not device.has_fp64:
            continue
        error = selftest.largest_error(device, precision)
        right = error <= selftest.TOLERANCE[precision]
        remedy = "" if right else "another driver, or another device with -fe_device"
        text = f"kernels agree with numpy to {error:.1e} in {precision} precision"
        yield Finding(Level.OK if right else Level.MISSING, "self-test", text, remedy)


def ranks(choice: str) -> Iterator[Finding]:
    """Yield the device of each rank of this run, or those that ranks of a node would take. Collective."""
    from mpi4py import MPI

    from petsc_hdg.device import Device, platforms
    from petsc_hdg.device import ranks as of_ranks

    comm = MPI.COMM_WORLD
    if comm.size == 1:
        found = platforms.matching(choice, platforms.all_devices())
        numbers = ", ".join(platforms.identity(device) for device in found)
        if found:
            yield Finding(Level.OK, "ranks", f"those of a node take {len(found)} in turn: {numbers}")
        return
    places = of_ranks.places(Device.select(choice, comm), comm)
    for line in of_ranks.table(places):
        yield Finding(Level.OK, "ranks", line.strip())
    shared = of_ranks.sharing(places)
    if shared:
        yield Finding(Level.NOTE, "ranks", shared)


def cache(_choice: str) -> Iterator[Finding]:
    """The folder of compiled kernels."""
    from petsc_hdg.device.cache import cache_folder, distrust
    from petsc_hdg.value_checks import plural

    folder = cache_folder()
    if reason := distrust(folder):
        remedy = f"chmod 700 {folder}, or PETSC_HDG_CACHE with a folder of yours"
        yield Finding(Level.NOTE, "kernel cache", f"{reason}: kernels are compiled in every run", remedy)
        return
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        text = f"{folder} cannot be written: kernels are compiled in every run"
        yield Finding(Level.NOTE, "kernel cache", text, "set PETSC_HDG_CACHE to a folder of yours")
        return
    binaries = list(folder.glob("*/program.bin"))
    size = sum(path.stat().st_size for path in binaries)
    yield Finding(Level.OK, "kernel cache", f"{folder}: {plural(len(binaries), 'program')}, {size / 1e6:.1f} MB")


def small_solve(choice: str) -> Iterator[Finding]:
    """A Laplace problem with a linear solution, which linear elements reproduce."""
    from petsc_hdg.value_checks import plural

    error, iterations = largest_error(choice)
    text = f"Laplace's equation on 128 triangles: {plural(iterations, 'iteration')}, error {error:.1e}"
    yield Finding(Level.OK if error < 1e-8 else Level.MISSING, "small solve", text)


def largest_error(choice: str = "any") -> tuple[float, int]:
    """Error in L2 and iterations for -Δu = 0 on 8 × 8 × 2 triangles, u = x + 2y on the boundary, on device `choice`."""
    import petsc_hdg as fe

    exact = "u[0] = x[0] + 2 * x[1];"
    physics = fe.Physics(
        {"u": 1},
        f0=None,
        f1="for (PetscInt d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[fe.Dirichlet("boundary", "exact")],
        exact={"u": exact},
    )
    problem = fe.Problem(fe.Mesh.box([8, 8]), physics, fe.Options(device=choice, degree=1))
    u = problem.solve()
    return problem.errors(u)["L2"], problem.linear_iterations


CHECKS: tuple[Callable[[str], Iterable[Finding]], ...] = (
    check_software.python,
    check_software.packages,
    check_software.mpi,
    check_software.petsc,
    devices,
    chosen,
    ranks,
    cache,
    small_solve,
)


def main(arguments: list[str]) -> int:
    """Print a line for each thing looked at, on the first rank; 0 if nothing that is needed is missing."""
    parser = argparse.ArgumentParser(prog="petsc_hdg doctor", description=__doc__)
    parser.add_argument("-fe_device", default="any", help="device to try: gpu, cpu, any, an index, a part of a name")
    choice = parser.parse_known_args(arguments)[0].fe_device
    findings = []
    for check in CHECKS:
        for finding in found(check, choice):
            _print(str(finding))
            findings.append(finding)
    missing = [finding.name for finding in findings if finding.level is Level.MISSING]
    _print(f"\nmissing or broken: {', '.join(missing)}" if missing else "\neverything that is needed works")
    return 1 if missing else 0


def _print(text: str) -> None:
    try:
        from mpi4py import MPI
    except Exception:  # which is a finding
        print(text, flush=True)
        return
    if MPI.COMM_WORLD.rank == 0:
        print(text, flush=True)


def found(check: Callable[[str], Iterable[Finding]], choice: str) -> list[Finding]:
    """Findings of one check; a check that fails itself is a finding too, so that the others still run.

    What packages print while they fail is left out: numpy has thirty lines on a module compiled for another version.
    """
    findings = []
    try:
        with redirect_stderr(io.StringIO()):
            findings.extend(check(choice))
    except Exception as error:  # whatever is broken on this machine must not stop the report
        text = str(error) if isinstance(error, PetscHdgError) else f"{type(error).__name__}: {error}"
        findings.append(Finding(Level.MISSING, check.__name__.replace("_", " "), text))
    return findings
