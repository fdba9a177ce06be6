"""`python -m petsc_hdg check [options] script.py [its options]`: a script's solutions on several numbers of ranks.

The script runs once for each number of ranks, each time by an mpiexec of its own. What it solves (by a Problem, or by a
SNES, TS or KSP of its own) is improved to rounding, so that the tolerance of its solvers plays no part. The norms of
all solutions are compared with those of the first run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from petsc4py import PETSc

from ..errors import OptionError
from ..options import Options
from ..output.atomic import atomic_file, check_target
from .alone import for_mpiexec

TOLERANCE = {"double": 1e-11, "single": 1e-5}  # of norms, relative
RANKS = (1, 2, 3, 4)
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")  # variables with the number of ranks that mpiexec started
LAST_LINES = 12  # of what a run that fails has said


def main(arguments: list[str]) -> int:
    """Print a line a run; the exit code is 1 if any fails or differs. Raises OptionError."""
    given = _parsed(arguments)
    tolerance = given.tolerance or TOLERANCE[Options.from_petsc().precision]
    found, failed = {}, 0
    for ranks in given.ranks:
        run = found[ranks] = Run.of(given, ranks)
        failed += not run.report(found[given.ranks[0]], tolerance)
        if given.json:
            with atomic_file(given.json) as file:
                file.write((json.dumps([r.row() for r in found.values()], indent=1) + "\n").encode())
        if failed and ranks == given.ranks[0]:
            return 1
    print("all agree" if not failed else f"{failed} of {len(found)} runs differ or fail")
    return 1 if failed else 0


def _parsed(arguments: list[str]) -> argparse.Namespace:
    """The options before the script are the check's own. Raises OptionError."""
    parser = argparse.ArgumentParser(prog="petsc-hdg check", allow_abbrev=False, description=__doc__)
    parser.add_argument("-ranks", type=_numbers, default=RANKS, help="with commas; the first is compared with")
    parser.add_argument(
        "-tolerance", type=float, default=None, help="of norms, relative (1e-11; single precision 1e-5)"
    )
    parser.add_argument("-random", type=int, default=None, help="deal cells out to ranks at random, with this seed")
    parser.add_argument("-timeout", type=float, default=3600, help="seconds that a run may take")
    parser.add_argument("-json", default="", help="file that receives the norms")
    number = next(i for i, name in enumerate(arguments) if name.endswith(".py"))
    given = parser.parse_args(arguments[:number])
    given.script, given.options = arguments[number], arguments[number + 1 :]
    if PETSc.COMM_WORLD.size > 1 or any(os.environ.get(name, "1") != "1" for name in SIZES):
        raise OptionError(f"check starts {given.script} by mpiexec itself: call it without mpiexec, with -ranks 1,2,3")
    if not Path(given.script).is_file():
        raise OptionError(f"'{given.script}' is no file; give the path of a Python script")
    if given.json:
        check_target(given.json)
    if shutil.which("mpiexec") is None:
        raise OptionError("mpiexec is not on the path, and check starts scripts by it: 'python -m petsc_hdg doctor'")
    return given


def _numbers(text: str) -> tuple[int, ...]:
    """Numbers of ranks with commas between them."""
    counts = tuple(int(part) for part in text.split(","))
    if min(counts) < 1:
        raise ValueError(text)
    return counts


class Run:
    """The script on some ranks: its solutions, or why there are none.

    solutions: as check_run.Solutions writes them.   failure: in one line, or "".
    """

    def __init__(self, ranks: int, solutions: list[dict], failure: str = "", said: str = ""):
        self.ranks, self.solutions, self.failure, self.said = ranks, solutions, failure, said
        self.difference: float | None = None

    @classmethod
    def of(cls, given, ranks: int) -> Run:
        """Run it."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "solutions.json"
            settings = {"path": str(path), "random": given.random}
            command = ["mpiexec", "-n", str(ranks), sys.executable, "-m", "petsc_hdg.commands.check_run"]
            command += [json.dumps(settings), given.script, *given.options]
            env, limit = for_mpiexec(), given.timeout
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=env)
            except subprocess.TimeoutExpired:
                return cls(ranks, [], f"did not end in {given.timeout:g} s")
            if done.returncode:
                lines = (done.stdout + done.stderr).strip().splitlines()[-LAST_LINES:]
                return cls(ranks, [], f"ended with exit code {done.returncode}", "\n".join(lines))
            solutions = json.loads(path.read_text()) if path.exists() else []
        if not solutions:
            return cls(ranks, [], "solved nothing: no Problem.solve, SNES.solve, TS.solve or KSP.solve ended")
        if not any(solution["size"] for solution in solutions):
            return cls(ranks, [], "solved nothing: there are no unknowns, essential conditions give all values")
        return cls(ranks, solutions)

    def report(self, first: Run, tolerance: float) -> bool:
        """Say whether the run agrees with the first one."""
        start = f"  {self.ranks} rank{'s' if self.ranks > 1 else ''}:"
        self.failure = self.failure or differs(first.solutions, self.solutions)
        if self.failure:
            print(f"{start} FAILS, it {self.failure}" + (f"\n{self.said}" if self.said else ""), flush=True)
            return False
        self.difference, where = largest_difference(first.solutions, self.solutions)
        if self is first:
            print(f"{start} {len(self.solutions)} solution{'s' if len(self.solutions) > 1 else ''}", flush=True)
        else:
            word = "agrees" if self.difference <= tolerance else "DIFFERS"
            print(f"{start} {word}, largest difference {self.difference:.1e}, {where}", flush=True)
        return self.difference <= tolerance

    def row(self) -> dict:
        """As plain data."""
        return {name: getattr(self, name) for name in ("ranks", "difference", "failure", "solutions")}


def differs(expected: list[dict], found: list[dict]) -> str:
    """Why two runs cannot be compared, or ""."""
    if len(expected) != len(found):
        return f"found {len(found)} solutions, and the first run {len(expected)}"
    for number, (a, b) in enumerate(zip(expected, found, strict=True)):
        if (a["what"], a["size"]) != (b["what"], b["size"]):
            return f"has solution {number} by {_title(b)}, and the first run by {_title(a)}"
    return ""


def largest_difference(expected: list[dict], found: list[dict]) -> tuple[float, str]:
    """Largest difference of a norm, relative to that norm, and what it is of."""
    worst, where = 0.0, "all norms"
    for number, (a, b) in enumerate(zip(expected, found, strict=True)):
        for name, value in a["norms"].items():
            difference = abs(b["norms"][name] - value) / abs(value) if value else abs(b["norms"][name])
            if not difference <= worst:  # also a nan
                worst, where = float(difference), f"{name} of solution number {number + 1}, {_title(a)}"
    return worst, where


def _title(solution: dict) -> str:
    return f"{solution['what']} with {solution['size']} unknown{'s' if solution['size'] != 1 else ''}"
