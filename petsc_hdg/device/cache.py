"""The folder of compiled programs: one entry per digest, written whole, locked while a process compiles.

Programs run as they are, so the folder is this user's alone: made with mode 0700, and not used where it belongs to
another user or others can write to it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import tempfile
import time
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from ..errors import warn_user

LOCK_SECONDS = 600.0


def cache_folder() -> Path:
    """`$PETSC_HDG_CACHE`, else `petsc_hdg/kernels` in the user's cache folder."""
    if os.environ.get("PETSC_HDG_CACHE"):
        return Path(os.environ["PETSC_HDG_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "petsc_hdg" / "kernels"


def distrust(folder: Path) -> str:
    """Why what lies in a folder is not used; empty for this user's own, which no other can write, and for none."""
    try:
        return _distrust(folder, os.stat(folder))
    except OSError:
        return ""


def _distrust(path: Path, found: os.stat_result) -> str:
    if found.st_uid != os.geteuid():
        return f"{path} belongs to another user"
    return f"others can write to {path}" if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


@cache
def warn(distrusted: str) -> None:
    """Say once, on the first rank, why the cache is not used."""
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == 0:
        remedy = "call chmod 700 for it, or set PETSC_HDG_CACHE to a folder of yours"
        warn_user(f"Compiled kernels are neither read nor kept: {distrusted}; {remedy}.")


class Entry:
    """Files of one program in the cache: binary, source, build log and verdicts. Every method is safe to call where
    the folder cannot be written or trusted: then nothing is remembered.

    program: SHA-256 of the bytes that were loaded or compiled, which a verdict is given for.
    distrusted: why the folder is not used, empty if it is.
    free_kernels: OpenCL's kernels of the program, by name, that nothing uses now.
    """

    def __init__(self, digest: str):
        self.root = cache_folder()
        self.folder = self.root / digest
        self.program = self.distrusted = ""
        self.free_kernels: dict[str, list] = {}

    def path(self, name: str) -> Path:
        """Path of a file of this entry."""
        return self.folder / name

    @contextmanager
    def locked(self, timeout: float = LOCK_SECONDS):
        """Hold the entry's lock; after `timeout` seconds, or where locks do not work, go on without it.

        The lock belongs to an open file, so the system frees it when its process ends: none is ever stale.
        """
        handle = self._open_lock()
        try:
            if handle is not None:
                _wait_for_lock(handle, timeout)
            yield
        finally:
            if handle is not None:
                handle.close()

    def _open_lock(self):
        try:
            self._make()
            return os.fdopen(os.open(self.path("lock"), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600), "w")
        except OSError:
            return None

    def _make(self) -> None:
        """Make the folder, for this user alone. Raises OSError where that is not possible."""
        self.root.parent.mkdir(parents=True, exist_ok=True)
        for folder in (self.root, self.folder):
            folder.mkdir(mode=0o700, exist_ok=True)
        if not self._trusted():
            raise PermissionError

    def _trusted(self) -> bool:
        self.distrusted = distrust(self.root) or distrust(self.folder)
        return not self.distrusted

    def write(self, name: str, content: bytes) -> bool:
        """Replace a file at once, so that no reader sees half of it; False where the folder cannot be written."""
        temporary = None
        try:
            self._make()
            descriptor, temporary = tempfile.mkstemp(prefix=f"{name}.", dir=self.folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(temporary, self.path(name))
        except OSError:
            with suppress(OSError):  # a full disk keeps a part
                if temporary is not None:
                    os.unlink(temporary)
            return False
        return True

    def read(self, name: str) -> bytes | None:
        """Content of a file, None if it cannot be read or trusted."""
        if not self._trusted():
            return None
        try:
            descriptor = os.open(self.path(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                found = os.fstat(descriptor)
                return file.read() if stat.S_ISREG(found.st_mode) and not _distrust(self.folder, found) else None
        except OSError:
            return None

    def write_binary(self, binary: bytes) -> bool:
        """Keep a compiled program together with its checksum."""
        return self.write("program.bin", hashlib.sha256(binary).digest() + binary)

    @property
    def has_binary(self) -> bool:
        """True if there is a file of a binary, which need not be sound."""
        return self.path("program.bin").exists()

    def read_binary(self) -> bytes | None:
        """The compiled program, None if there is none or it is damaged."""
        content = self.read("program.bin")
        if content is None or hashlib.sha256(content[32:]).digest() != content[:32]:
            return None
        return content[32:]

    def runs(self, binary: bytes) -> None:
        """Tell which bytes are the program that runs."""
        self.program = hashlib.sha256(binary).hexdigest()

    def read_json(self, name: str) -> dict:
        """A JSON object, {} if it is missing or damaged."""
        try:
            value = json.loads(self.read(name) or b"{}")
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def write_json(self, name: str, value: dict) -> bool:
        """Keep a JSON object."""
        return self.write(name, json.dumps(value, indent=1, sort_keys=True).encode())


def _wait_for_lock(handle, timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        except OSError:
            return False
