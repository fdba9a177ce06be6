"""`python -m petsc_hdg precompile script.py … [options]`: fill the cache of compiled kernels for a quick first solve.

A program's text holds the physics, so its digest is that of the user's own: a script is run with its options up to its
first solve, on whatever mesh they give. A coarse one will do (`-dm_plex_box_faces 8,8`), as programs do not depend on
it; the coarsest launch others of their kernels, and PoCL makes machine code at a kernel's first launch.
"""

from __future__ import annotations

import runpy
import sys
import time
from unittest import mock

from petsc4py import PETSc

from ..errors import OptionError, SolveError, collectively
from ..problem import Problem

ENTRIES = ("solve", "attach", "create_snes")  # of a Problem: where a script begins to solve


def main(arguments: list[str]) -> int:
    """Compile the kernels of scripts on this rank's device. Raises OptionError."""
    scripts = [name for name in arguments if name.endswith(".py")]
    if not scripts:
        raise OptionError("precompile compiles what a script solves; give the path of a Python script")
    options = [a for a in arguments if a not in scripts]
    for script in scripts:
        start = time.perf_counter()
        said = _of_script(script, options)
        PETSc.Sys.Print(f"  {script}: {said or f'{time.perf_counter() - start:.1f} s'}")
    return 0


def compile_all(problem: Problem) -> None:
    """Have everything compiled and checked that a solve, its preconditioner and its results take. Collective."""
    snes, few = problem.create_snes(), {"max_it": 1}
    snes.setTolerances(**few)
    snes.getKSP().setTolerances(**few)
    with mock.patch.dict(problem.__dict__, {"snes": snes}):
        try:
            problem.solve()
        except SolveError:  # one iteration is seldom enough
            if problem.missing_auxiliary:
                raise
    with collectively(problem.comm), mock.patch.object(problem.device.opened, "waits", False):
        problem.operator.compile_variants()
        for kernel in problem.operator.all_kernels().values():
            kernel.program  # noqa: B018  compiled now
    u = problem.create_vec()
    problem.cell_values(u)
    if problem.physics.has_exact:
        problem.errors(u)


class _Reached(BaseException):
    """A script has come to its first solve; no Exception, so that no handler of errors takes it."""


def _of_script(script: str, options: list[str]) -> str:
    """Run a script up to its first solve, and compile what that takes. Returns what to say, if anything."""

    def reached(problem, *_, **__):
        with mock.patch.multiple(Problem, **plain):
            compile_all(problem)
        raise _Reached

    plain = {name: getattr(Problem, name) for name in ENTRIES}
    with mock.patch.multiple(Problem, **dict.fromkeys(ENTRIES, reached)), mock.patch.object(sys, "argv", [script]):
        sys.argv += options
        try:
            runpy.run_path(script, run_name="__main__")
        except _Reached:
            return ""
        except OSError as error:
            raise OptionError(f"'{script}' cannot be run ({error}); give the path of a Python script") from None
        except SystemExit as ended:
            if ended.code not in (None, 0):
                raise
    return "ended without a solve, nothing was compiled for one"
