"""Files that are whole or absent."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path

from ..errors import OptionError


@contextmanager
def atomic_file(path):
    """A binary file that appears under `path` when the block ends, and not at all if the block raises.

    It is written beside its final place and renamed. Raises OptionError if the folder is missing or cannot be written.
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            check_target(path)
            with open(part, "wb") as file:
                yield file
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise OptionError(f"Cannot write {path}: {reason}; give a file in a folder that can be written.") from error


def check_target(path) -> None:
    """Raise OptionError if `path` cannot be a file's place: no such folder, or a folder itself."""
    path = Path(path)
    if not path.parent.is_dir():
        raise OptionError(f"Cannot write {path}: there is no folder {path.parent}; make it, or give another path.")
    if path.is_dir():
        raise OptionError(f"Cannot write {path}: it is a folder; give the name of a file.")
