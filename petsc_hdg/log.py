"""What a run says while it works: Python's logger "petsc_hdg", whose level `-fe_log_level` sets."""

from __future__ import annotations

import logging
import sys

LEVELS = {"quiet": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}
LOGGER = logging.getLogger("petsc_hdg")
LOGGER.addHandler(logging.NullHandler())  # without one Python would write warnings by its own
info, debug = LOGGER.info, LOGGER.debug


class _Lines(logging.Handler):
    """Lines on what is stderr at the time; on a terminal in the place of a line of progress."""

    def emit(self, record: logging.LogRecord) -> None:
        clear = "\r\033[K" if sys.stderr.isatty() else ""
        sys.stderr.write(f"{clear}petsc_hdg {record.levelname.lower()}: {record.getMessage()}\n")
        sys.stderr.flush()


_OURS = _Lines()


def settle(level: str, rank: int) -> None:
    """Follow a level of LEVELS; info and debug are of rank 0 alone. Handlers of the user's take the place of lines on
    stderr."""
    LOGGER.setLevel(LEVELS[level] if rank == 0 else max(LEVELS[level], logging.WARNING))
    LOGGER.removeHandler(_OURS)
    if not logging.getLogger().handlers and len(LOGGER.handlers) == 1:
        LOGGER.addHandler(_OURS)


def warns() -> bool:
    """True unless warnings are switched off."""
    return LOGGER.isEnabledFor(logging.WARNING)
