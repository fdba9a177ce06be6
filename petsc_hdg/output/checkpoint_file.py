"""HDF5 files of a run's state: whole or absent, with a digest of all their bytes before HDF5 sees them.

The first 512 bytes (HDF5's user block) say what the file is, how many bytes follow and their SHA-256. The root group
has the attribute `about`, a JSON text; each array is a dataset in the order of all items, whatever the partition.

HDF5 reads and writes through Python's file, which is the one that was checked, and tells it of no error of the disk.
A digest is no signature: what a file says is checked in turn, and nothing outside of it is read.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..errors import CheckpointError, collectively
from ..value_checks import plural
from .atomic import atomic_path

BLOCK = 512  # bytes of the user block
MAGIC = "petsc_hdg checkpoint 1"
CHUNK = 1 << 22  # numbers that travel at once
REMEDY = "restart from an earlier checkpoint, or without one"


def h5py_package():
    """The package h5py. Raises CheckpointError where it is missing."""
    try:
        import h5py
    except ImportError:
        raise CheckpointError("An HDF5 file was asked for, and h5py cannot be imported; pip install h5py.") from None
    return h5py


# Writing -------------------------------------------------------------------------------------------------------------


def write(path, comm, about: dict, arrays: dict[str, np.ndarray]) -> None:
    """Write `about` and arrays given by this rank's blocks [item, …], which follow each other by rank. Collective.

    Raises CheckpointError or OptionError on all ranks; the file that was there before is untouched then.
    """
    stream, failure = _sent(comm, arrays), None
    if comm.rank == 0:
        try:
            _write(path, about, stream)
        except Exception as error:  # any error, since the other ranks wait to send
            failure = error
    for _ in stream:
        pass  # the other ranks send; rank 0 drops what it cannot write
    with collectively(comm):
        if failure is not None:
            raise failure


def _write(path, about: dict, stream) -> None:
    h5py = h5py_package()
    with atomic_path(path, durable=True) as part, open(part, "r+b") as disk:
        quiet = Quiet(disk)
        with h5py.File(quiet, "w", userblock_size=BLOCK) as file:
            file.attrs["about"] = json.dumps(about)
            for name, shape, first, values in stream:
                if name not in file:
                    file.create_dataset(name, shape, "<f8", track_times=False)
                file[name][first : first + len(values)] = values
                quiet.check()
        quiet.check()
        size, digest = _measured(disk)
        disk.seek(0)
        disk.write(f"{MAGIC}\n{size}\n{digest}\n".encode().ljust(BLOCK, b"\0"))


class Quiet:
    """An open file that HDF5 writes to, and that tells it of no error: HDF5 prints its own where a full disk is met,
    and loses those of data that it writes as objects are closed. `check` raises the first one."""

    def __init__(self, file):
        self._file, self._error = file, None
        self.read, self.seek, self.tell = file.read, file.seek, file.tell

    def check(self) -> None:
        """Bring all to the file. Raises the first OSError that there was."""
        self.flush()
        if self._error is not None:
            raise self._error

    def write(self, data) -> int:
        self._do(self._file.write, data)
        return len(data)

    def flush(self) -> None:
        self._do(self._file.flush)

    def truncate(self, size=None) -> int:
        self._do(self._file.truncate, size)
        return size

    def readinto(self, data) -> int:
        return self._file.readinto(data) if self._error is None else len(data)

    def _do(self, what, *arguments) -> None:
        if self._error is None:
            try:
                what(*arguments)
            except OSError as error:
                self._error = error


def _measured(file) -> tuple[int, str]:
    """Bytes behind the user block of an open file and their digest."""
    file.seek(BLOCK)
    digest, size = hashlib.sha256(), 0
    while data := file.read(CHUNK):
        digest.update(data)
        size += len(data)
    return size, digest.hexdigest()


def _sent(comm, arrays: dict[str, np.ndarray]):
    """Send this rank's blocks to rank 0, which gets name, whole shape, first item and values [item, …] of a piece."""
    for name, block in arrays.items():
        block = np.ascontiguousarray(block, np.float64)
        counts = comm.allgather(len(block))
        shape, step = (sum(counts), *block.shape[1:]), _step(block.shape[1:])
        if comm.rank:
            for start in range(0, len(block), step):
                comm.Send(block[start : start + step], dest=0)
            continue
        if not shape[0]:
            yield name, shape, 0, block
        first = 0
        for rank, count in enumerate(counts):
            for start in range(0, count, step):
                values = block[start : start + step]
                if rank:
                    values = np.empty((min(step, count - start), *shape[1:]))
                    comm.Recv(values, source=rank)
                yield name, shape, first + start, values
            first += count


def _step(shape) -> int:
    """Items of a shape that travel at once."""
    return max(1, CHUNK // max(1, int(np.prod(shape))))


# Reading -------------------------------------------------------------------------------------------------------------


@contextmanager
def opened(path, comm):
    """A CheckpointFile for reading. Collective. Raises CheckpointError on all ranks for what is no whole checkpoint."""
    file = about = None
    try:
        with collectively(comm):
            if comm.rank == 0:
                file = verified(Path(path))
                about = _about(file, path)
        yield CheckpointFile(path, comm, file, comm.bcast(about))
    finally:
        if file is not None:
            file.close()


def verified(path: Path):
    """The HDF5 file, open, after its bytes were compared with their digest. Not collective. Raises CheckpointError."""
    h5py = h5py_package()
    try:
        file = open(path, "rb")  # which HDF5 reads from, so that it sees the bytes that were compared
        _check(path, file)
    except OSError as error:
        raise CheckpointError(
            f"Cannot read the checkpoint {path}: {error.strerror or error}; give the file of a -fe_checkpoint."
        ) from None
    try:
        return h5py.File(file, "r")
    except (OSError, RuntimeError) as error:
        raise CheckpointError(f"The checkpoint {path} cannot be opened by HDF5 ({error}); {REMEDY}.") from None


def _check(path: Path, file) -> None:
    """Raise CheckpointError unless the user block and the bytes behind it agree."""
    lines = file.read(BLOCK).rstrip(b"\0").split(b"\n")
    if not lines[0].startswith(MAGIC.rsplit(" ", 1)[0].encode()):
        raise CheckpointError(f"{path} is no checkpoint of petsc_hdg; give a file that -fe_checkpoint has written.")
    if lines[0].decode("utf-8", "replace") != MAGIC:
        raise CheckpointError(f"The checkpoint {path} is of another format than '{MAGIC}'; {REMEDY}.")
    size, digest = _measured(file)
    given = dict(enumerate(lines))
    if given.get(1) != str(size).encode():
        raise CheckpointError(f"The checkpoint {path} is truncated: {plural(size, 'byte')} after its head; {REMEDY}.")
    if given.get(2) != digest.encode():
        raise CheckpointError(f"The checkpoint {path} is damaged: its SHA-256 is not that of its bytes; {REMEDY}.")


def _about(file, path) -> dict:
    try:
        about = json.loads(file.attrs["about"])
    except (KeyError, TypeError, ValueError, OSError, RuntimeError):  # a RecursionError is one
        about = None
    if not isinstance(about, dict):
        raise unclear(path)
    return about


def unclear(path) -> CheckpointError:
    """The error for a file that does not say what every checkpoint says."""
    return CheckpointError(f"The checkpoint {path} does not say what it is of; {REMEDY}.")


def _array(file, name: str):
    """A dataset of numbers in the file itself, laid out as they are written; None for whatever else has this name."""
    h5py = h5py_package()
    if "/" in name or not isinstance(file.get(name, getlink=True), h5py.HardLink):  # a link may lead out of the file
        return None
    if file.get(name, getclass=True) is not h5py.Dataset:
        return None
    found = file[name]
    layout = found.id.get_create_plist()  # others are put together from other files, or by filters of the system
    plain = layout.get_layout() == h5py.h5d.CONTIGUOUS and not layout.get_external_count()
    return found if plain and found.dtype == np.dtype("<f8") else None


class CheckpointFile:
    """An open checkpoint: `about` on all ranks, arrays by blocks."""

    def __init__(self, path, comm, file, about: dict):
        self.path, self.comm, self.about, self._file = path, comm, about, file

    def read(self, name: str, shape) -> np.ndarray:
        """This rank's block [item, …] of an array, of the given shape; blocks follow each other by rank. Collective.

        Raises CheckpointError on all ranks.
        """
        block, failure = np.zeros(shape), None
        counts, step = self.comm.allgather(len(block)), _step(shape[1:])
        if self.comm.rank:
            for start in range(0, len(block), step):
                self.comm.Recv(block[start : start + step], source=0)
        else:
            failure = self._deal(name, block, counts, step)
        with collectively(self.comm):
            if failure:
                raise CheckpointError(f"The checkpoint {self.path} holds no fitting '{name}' ({failure}); {REMEDY}.")
        return block

    def _deal(self, name: str, block: np.ndarray, counts, step: int) -> str:
        """Send each rank its block. Returns what is wrong, since the other ranks wait for their values."""
        failure, first, wanted = "", 0, (sum(counts), *block.shape[1:])
        try:
            found = _array(self._file, name)
            failure = "" if found is not None else "it is not an array of this file"
        except (KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
            found, failure = None, str(error)
        if found is not None and found.shape != wanted:
            failure = f"its shape is {found.shape}, wanted is {wanted}"
        for rank, count in enumerate(counts):
            for start in range(0, count, step):
                values = np.zeros((min(step, count - start), *block.shape[1:]))
                try:
                    if not failure:
                        values[...] = found[first + start : first + start + len(values)]
                except (OSError, RuntimeError) as error:
                    failure = str(error)
                if rank:
                    self.comm.Send(values, dest=rank)
                else:
                    block[start : start + len(values)] = values
            first += count
        return failure
