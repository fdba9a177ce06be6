"""The folder of compiled programs: one entry per digest, written whole, locked while a process compiles."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK_SECONDS = 600.0


def cache_folder() -> Path:
    """`$PETSC_HDG_CACHE`, else `petsc_hdg/kernels` in the user's cache folder."""
    if os.environ.get("PETSC_HDG_CACHE"):
        return Path(os.environ["PETSC_HDG_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "petsc_hdg" / "kernels"


class Entry:
    """Files of one program in the cache: binary, source, build log and verdicts. Every method is safe to call where
    the folder cannot be written: then nothing is remembered."""

    def __init__(self, digest: str):
        self.folder = cache_folder() / digest

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
            self.folder.mkdir(parents=True, exist_ok=True)
            return open(self.path("lock"), "a")
        except OSError:
            return None

    def write(self, name: str, content: bytes) -> bool:
        """Replace a file at once, so that no reader sees half of it; False where the folder cannot be written."""
        temporary = self.path(f"{name}.{os.uname().nodename}.{os.getpid()}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(content)
            os.replace(temporary, self.path(name))
        except OSError:
            with suppress(OSError):  # a full disk keeps a part
                temporary.unlink(missing_ok=True)
            return False
        return True

    def read(self, name: str) -> bytes | None:
        """Content of a file, None if it cannot be read."""
        try:
            return self.path(name).read_bytes()
        except OSError:
            return None

    def write_binary(self, binary: bytes) -> bool:
        """Keep a compiled program together with its checksum."""
        return self.write("program.bin", hashlib.sha256(binary).digest() + binary)

    def read_binary(self) -> bytes | None:
        """The compiled program, None if there is none or it is damaged."""
        content = self.read("program.bin")
        if content is None or hashlib.sha256(content[32:]).digest() != content[:32]:
            return None
        return content[32:]

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
