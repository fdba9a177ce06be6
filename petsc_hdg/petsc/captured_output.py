"""What a C library prints, kept from the program's output."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from contextlib import contextmanager


@contextmanager
def kept_from_output():
    """A block whose output to file descriptor 1 goes to a file, which is yielded: read it before the block ends."""
    flush = ctypes.CDLL(None).fflush
    sys.stdout.flush()
    flush(None)
    before = os.dup(1)
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        os.dup2(file.fileno(), 1)
        try:
            yield lambda: _read(file, flush)
        finally:
            flush(None)
            os.dup2(before, 1)
            os.close(before)


def _read(file, flush) -> str:
    """What was printed so far, in one line."""
    flush(None)
    file.seek(0)
    return " ".join(file.read().split())
