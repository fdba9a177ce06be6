"""Where time goes: wall seconds by stage, each also a stage of PETSc's `-log_view`, and events in it.

A stage within another one is counted as itself alone, as PETSc's log does: the seconds add up to no more than the run.
"""

from __future__ import annotations

import time
from contextlib import contextmanager

from . import log
from .database import given_text
from .progress import PROGRESS

SECONDS: dict[str, float] = {}
_STAGES: dict[str, object] = {}
_EVENTS: dict[str, object] = {}
_INSIDE: list[float] = []  # seconds of the stages within each one that is open


@contextmanager
def stage(name: str):
    """Count the time of a block, or of each call of a function, under `name` and show it as a stage of PETSc's log."""
    from petsc4py import PETSc

    if name not in _STAGES:
        _STAGES[name] = PETSc.Log.Stage(f"fe {name}")
    if not _INSIDE and (wanted := given_text("", "fe_log_level", "")) in log.LEVELS:  # a mesh has no options of ours
        log.settle(wanted, PETSc.COMM_WORLD.rank)
    _STAGES[name].push()
    _INSIDE.append(0.0)
    start = time.perf_counter()
    try:
        with PROGRESS.task(name):
            yield
    finally:
        passed = time.perf_counter() - start
        SECONDS[name] = SECONDS.get(name, 0.0) + passed - _INSIDE.pop()
        if _INSIDE:
            _INSIDE[-1] += passed
        _STAGES[name].pop()
        log.debug("stage %s took %.3g s", name, passed)


def petsc_stage(name: str):
    """The stage of PETSc's log for `name`, None before its first use."""
    return _STAGES.get(name)


@contextmanager
def event(name: str, flops: int = 0):
    """Count a block, or each call of a function, as the event `Fe{name}` of PETSc's log, with flops of this rank."""
    from petsc4py import PETSc

    if name not in _EVENTS:
        _EVENTS[name] = PETSc.Log.Event(f"Fe{name}")
    with _EVENTS[name]:
        yield
        PETSc.Log.logFlops(flops)
