"""Files that are whole or absent."""

from __future__ import annotations

import glob
import os
from contextlib import contextmanager
from pathlib import Path

from ..errors import OptionError
from ..given import path as given_path


@contextmanager
def atomic_file(path):
    """A binary file that appears under `path` when the block ends, and not at all if the block raises.

    It is written beside its final place and renamed. Raises OptionError if the folder is missing or cannot be written.
    """
    with atomic_path(path) as part, open(part, "wb") as file:
        yield file


@contextmanager
def atomic_path(path, durable: bool = False):
    """Path of a file to be written, which becomes `path` when the block ends, and is removed if the block raises.

    durable: what was there before stays until all of the new file is on the disk, also if power fails; parts of files
    that processes left that have ended on this machine are removed. Raises OptionError as `atomic_file`.
    """
    path = given_path("The file to be written", path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            check_target(path)
            if durable:
                _remove_leftovers(path)
            yield part
            if durable:
                _sync(part)
            os.replace(part, path)
            if durable:
                _sync(path.parent)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise OptionError(f"Cannot write {path}: {reason}; give a file in a folder that can be written.") from error


def _sync(path) -> None:
    """Wait until a file or the names in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_leftovers(path: Path) -> None:
    """Remove the parts of `path` whose processes are gone."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        number = part.name.split(".")[-2]
        if number.isdigit() and not Path(f"/proc/{number}").exists() and Path("/proc/self").exists():
            part.unlink(missing_ok=True)


def check_target(path, suffix: str = "") -> None:
    """Raise OptionError if `path` cannot be a file's place: no such folder, a folder itself, or without the suffix."""
    path = Path(path)
    if not path.parent.is_dir():
        raise OptionError(f"Cannot write {path}: there is no folder {path.parent}; make it, or give another path.")
    if path.is_dir():
        raise OptionError(f"Cannot write {path}: it is a folder; give the name of a file.")
    if suffix and path.suffix.lower() != suffix:
        kind = suffix.removeprefix(".").upper()
        raise OptionError(f"Cannot write {path}: {kind} is what is written; give a name that ends in {suffix}.")
