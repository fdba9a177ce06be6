"""Ctrl-C and SIGTERM while a run writes checkpoints: the run ends after its step, with a checkpoint of it."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager

from mpi4py import MPI

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_received = 0  # the signal that waits for the next checkpoint
_waits = False  # whether signals wait


@contextmanager
def deferred(problem):
    """Let the first signal inside wait for the next step, if `-fe_checkpoint` is given; a second one does not wait.

    Collective. Raises KeyboardInterrupt on all ranks when the state of that step is written.
    """
    global _waits, _received
    if not problem.options.checkpoint or _waits or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _receive) for number in _SIGNALS}
    _waits, _received = True, 0
    try:
        yield
        end_if_asked(problem)
    finally:
        _waits = False
        for number, handler in before.items():
            signal.signal(number, handler)


def _receive(number: int, _frame) -> None:
    global _received
    if _received:
        raise KeyboardInterrupt
    _received = number


def asked(problem) -> bool:
    """Return True if a rank was asked to end. Collective within `deferred`, as its other names are."""
    return _waits and bool(problem.comm.allreduce(_received, MPI.MAX))


def end_if_asked(problem) -> None:
    """Raise KeyboardInterrupt on all ranks if a rank was asked to end. Collective."""
    if asked(problem):
        raise KeyboardInterrupt
