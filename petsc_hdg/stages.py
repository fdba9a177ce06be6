"""Where time goes: wall seconds by stage, each also a stage of PETSc's `-log_view`."""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import wraps

SECONDS: dict[str, float] = {}
_STAGES: dict[str, object] = {}


@contextmanager
def stage(name: str):
    """Count the time of the block under `name` and show it as a stage of PETSc's log."""
    from petsc4py import PETSc

    if name not in _STAGES:
        _STAGES[name] = PETSc.Log.Stage(f"fe {name}")
    _STAGES[name].push()
    start = time.perf_counter()
    try:
        yield
    finally:
        SECONDS[name] = SECONDS.get(name, 0.0) + time.perf_counter() - start
        _STAGES[name].pop()


def staged(name: str):
    """Decorator: count the time of a function under `name`."""

    def decorate(function):
        @wraps(function)
        def run(*args, **kwargs):
            with stage(name):
                return function(*args, **kwargs)

        return run

    return decorate
