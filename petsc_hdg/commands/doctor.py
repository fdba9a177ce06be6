"""`doctor`: what works on this machine, what is missing, and how to get it."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr

from petsc_hdg.commands import check_device, check_software
from petsc_hdg.commands.check_software import Finding, Level
from petsc_hdg.errors import PetscHdgError

CHECKS: tuple[Callable[[str], Iterable[Finding]], ...] = (
    check_software.python,
    check_software.packages,
    check_software.mpi,
    check_software.petsc,
    check_device.devices,
    check_device.chosen,
    check_device.ranks,
    check_device.cache,
    check_device.small_solve,
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
