"""Series of files with a state each: by PETSc's TS, by slabs in space and time, in steps of a load, by hand."""

from __future__ import annotations

import weakref
from pathlib import Path

from ...errors import OptionError, PetscHdgError, collectively
from ...output import FORMATS, Collection, write_arrays
from ...petsc import lifetimes
from ...value_checks import number
from ..input_data import require_vec
from . import nodal_arrays, results

_WRITERS: dict[str, weakref.ref] = {}  # the problem that writes a file by itself


def is_series(path) -> bool:
    """Return True if a file is a series by its name."""
    return isinstance(path, str | Path) and Path(path).suffix.lower() in FORMATS


def add(problem, path, u, t: float = 0.0, time: float | None = None, fields=None) -> None:
    """Add the state u at time t to a series, under another time if one is given. Collective. Raises OptionError.

    A series goes on where this problem has begun it, or has taken the state of a checkpoint; else it begins anew.
    """
    with collectively(problem.comm):
        time = number("The time t", t if time is None else time)
    require_vec(problem, u)
    known = problem.collections
    if str(path) not in known:
        known[str(path)] = Collection(path, problem.comm, goes_on=problem.checkpoints.restarted)
    write = _write_xdmf if known[str(path)].format is FORMATS[".xdmf"] else results.write_vtu
    known[str(path)].add(time, lambda file: write(problem, file, u, t, fields))


def _write_xdmf(problem, path, u, t: float, fields) -> str | None:
    """Write the arrays of a state on rank 0, which gets the text that describes them. Collective."""
    grid = nodal_arrays.grid_of(problem, u, t, fields, gather=True)
    with collectively(problem.comm):
        return None if grid is None else write_arrays(path, grid)


def after_step(problem, u, t: float, step: int, ends: bool, time: float | None = None) -> None:
    """Write the state after a step of a run if `-fe_output` wants it, or the run ends. Collective."""
    if problem.options.output and (ends or step % problem.options.output_interval == 0):
        claim(problem, problem.options.output, "series", "fe_output", OptionError)
        add(problem, problem.options.output, u, t, time)


def watch(problem, ts) -> None:
    """Let a TS write a series, if `-fe_output` asks for it."""
    if problem.options.output:
        ts.setMonitor(_TimeMonitor(problem))


class _TimeMonitor:
    """A monitor of TS: writes the first state, that after each interval, and the last one."""

    def __init__(self, problem):
        self._problem = weakref.ref(problem)  # which may itself keep the TS
        self._at: int | None = None

    def __call__(self, ts, step: int, t: float, u) -> None:
        problem = self._problem()
        if problem is None or step == self._at:  # a TS that goes on tells the present state again
            return
        self._at = step
        after_step(problem, u, t, step, ends=ts.getConvergedReason() > 0)


def claim(problem, path, what: str, option: str, kind: type[PetscHdgError]) -> None:
    """Raise an error of a kind if two problems would write the file of an option by turns. Collective.

    what: the file, in words;  option: its name without prefix.
    """
    writer = _WRITERS.get(str(path))
    if writer is not None and writer() is not problem:
        lifetimes.destroy(problem.comm)  # ends a problem that was given up, which Python may hold in cycles
    with collectively(problem.comm):
        if writer is not None and writer() not in (None, problem):
            raise kind(
                f"Two problems of this run would write the {what} {path} by turns; give them prefixes, and options "
                f"-PREFIX_{option} of their own."
            )
    _WRITERS[str(path)] = weakref.ref(problem)
