"""Files that are whole or absent."""

from __future__ import annotations

import glob
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from pathlib import Path

from .. import log
from ..errors import OptionError
from ..value_checks import path as given_path


@contextmanager
def atomic_file(path):
    """A binary file that appears under `path` when the block ends, and not at all if the block raises.

    It is written beside its final place and renamed. Missing folders of `path` are made. Raises OptionError if the file
    cannot be written.
    """
    with atomic_path(path) as part, open(part, "wb") as file:
        yield file


@contextmanager
def atomic_path(path, durable: bool = False):
    """Path of an empty file to write, which becomes `path` when the block ends, and is removed if the block raises.

    A link stays, and what it points at is written; what is there and is no regular file is refused; mode and owner of
    what is there are kept. The part has a name that nobody can foresee.
    durable: what was there before stays until all of the new file is on the disk, also if power fails; parts of files
    that processes left that have ended on this machine are removed. Raises OptionError as `atomic_file`.
    """
    given = given_path("The file to be written", path)
    part = None
    try:
        try:
            check_target(given)
            path = Path(os.path.realpath(given))
            if durable:
                _remove_leftovers(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            part = _new_part(path)
            yield part
            if durable:
                _sync(part)
            os.replace(part, path)
            log.info("wrote %s", given)
            if durable:
                _sync(path.parent)
        finally:
            if part is not None:
                part.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise OptionError(f"Cannot write {given}: {reason}; give a file in a folder that can be written.") from error


def _new_part(path: Path) -> Path:
    """An empty file beside `path`, as readable as the one it will replace. Raises OSError."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(8)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        with suppress(FileNotFoundError):
            before = os.stat(path)
            with suppress(PermissionError):  # an owner can be given by root alone
                os.fchown(descriptor, before.st_uid, before.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
    finally:
        os.close(descriptor)
    return part


def _sync(path) -> None:
    """Wait until a file or the names in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_leftovers(path: Path) -> None:
    """Remove the parts of `path` whose processes are gone."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.*.part"):
        number = part.name.split(".")[-3]
        if number.isdigit() and not Path(f"/proc/{number}").exists() and Path("/proc/self").exists():
            part.unlink(missing_ok=True)


def check_target(path, suffix: str = "") -> None:
    """Raise OptionError if `path` cannot be a file's place: below a file, something else than a file, or without the
    suffix. A link is what it points at."""
    path = Path(path)
    target = Path(os.path.realpath(path))
    above = next(folder for folder in target.parents if folder.exists())
    if not above.is_dir():
        raise OptionError(f"Cannot write {path}: {above} is no folder; give another path.")
    if target.is_dir():
        raise OptionError(f"Cannot write {path}: it is a folder; give the name of a file.")
    if target.exists() and not target.is_file():
        raise OptionError(f"Cannot write {path}: it is a device, a pipe or the like; give the name of a file.")
    if suffix and path.suffix.lower() != suffix:
        kind = suffix.removeprefix(".").upper()
        raise OptionError(f"Cannot write {path}: {kind} is what is written; give a name that ends in {suffix}.")
