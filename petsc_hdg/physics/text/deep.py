"""Calls that recurse as deep as a text nests."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

from petsc_hdg.physics.text.source import Source

_STACK_BYTES, _MOST_CALLS = 512 << 20, 200_000


def deeply(source: Source, call: Callable):
    """The result of `call()`, in a thread with a large stack if Python's own is too small for it.

    Raises the PhysicsError of `source` for what nests deeper than that.
    """
    try:
        return call()
    except RecursionError:
        pass
    found: list = []
    before = threading.stack_size(_STACK_BYTES)
    try:
        thread = threading.Thread(target=_run, args=(call, found), daemon=True)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    result, error = found
    if isinstance(error, (RecursionError, MemoryError)):
        raise source.error(None, "the text nests too deep to be read; split it into several statements") from None
    if error is not None:
        raise error
    return result


def _run(call: Callable, found: list) -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _MOST_CALLS))
    try:
        found += [call(), None]
    except BaseException as error:  # noqa: BLE001  (raised in the thread that waits)
        found += [None, error]
    finally:
        sys.setrecursionlimit(limit)
