"""PETSc vectors as device buffers: shared with ViennaCL without a copy, or staged through memory allocated once.

Staged values pass through host memory a piece after the other. While a piece is on its way over the bus, threads copy
others from or to the vector. That takes memory of the driver's own: from any other it makes such copies itself, in one
thread.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from functools import cache

import numpy as np

from petsc_hdg.device.arrays import Arrays
from petsc_hdg.device.context import is_viennacl
from petsc_hdg.device.platforms import opencl
from petsc_hdg.threads import thread_pool, threads_of_rank

MOST_THREADS = 4  # more are hardly faster: the bus is the limit
PIECE = 1 << 22  # bytes
WHOLE = 4  # pieces below which a vector goes as one: to wake threads takes as long as to copy a megabyte


class Slot:
    """A buffer of `count` values and the pinned host memory that they pass through, both allocated once; a CPU takes
    doubles from where they are. Copies under way are counted as `name`."""

    def __init__(self, arrays: Arrays, count: int, name: str):
        self.arrays, self.name, self.buffer = arrays, name, arrays.empty(count)
        self.is_direct = not arrays.device.is_gpu and arrays.precision == "double"
        self.memory = arrays.pinned(0 if self.is_direct else count)
        self.pieces = pieces(count, self.memory.itemsize)
        self._loaded = None

    def load(self, values: np.ndarray) -> None:
        """Copy host values [count] to the buffer; they may change afterwards."""
        if self.is_direct:
            self.arrays.upload(self.buffer, values, self.name)
            return
        if self._loaded is not None:
            self._loaded.wait()

        def fill(piece: slice) -> slice:
            np.copyto(self.memory[piece], values[piece], casting="same_kind")
            return piece

        for piece in self._each(fill, self.pieces):
            self._loaded = self.arrays.upload(self.buffer, *self._part(piece), wait=False, start=self._start(piece))

    def store(self, values: np.ndarray) -> None:
        """Copy the buffer to host values [count]."""
        if self.is_direct:
            self.arrays.download(self.buffer, values, self.name)
            return

        def take(piece: slice, event) -> None:
            event.wait()
            np.copyto(values[piece], self.memory[piece], casting="same_kind")

        events = [
            self.arrays.download(self.buffer, *self._part(piece), wait=False, start=self._start(piece))
            for piece in self.pieces
        ]
        for _ in self._each(take, self.pieces, events):
            pass

    def _part(self, piece: slice) -> tuple[np.ndarray, str]:
        return self.memory[piece], self.name

    def _start(self, piece: slice) -> int:
        return piece.start * self.memory.itemsize

    def _each(self, work, *of_pieces):
        """Return the results of `work` for the pieces, in their order; by threads where there are several."""
        threads = _threads() if len(self.pieces) > 1 else None
        return threads.map(work, *of_pieces) if threads else map(work, *of_pieces)


def pieces(count: int, itemsize: int) -> list[slice]:
    """Slices of `count` values, of about the same size."""
    parts = -(-count * itemsize // PIECE)
    ends = np.linspace(0, count, 1 + (parts if parts > WHOLE else 1)).astype(int).tolist()
    return [slice(*ends_of) for ends_of in zip(ends[:-1], ends[1:], strict=True)]


@cache
def _threads():
    """A pool of threads that copy, None where this rank has one processor."""
    count = threads_of_rank(MOST_THREADS)
    return thread_pool(count) if count > 1 else None


class VecAccess:
    """Buffers of PETSc Vecs for kernels.

        with access.read(x) as bx, access.write(y) as by:
            kernel(n, bx, by, n)

    A buffer holds the Vec's local values [n] as `real`, and belongs to the block. Values of Vecs on the host are
    staged, and such a Vec keeps its old values if the block of `write` or `update` raises. Values of ViennaCL Vecs are
    used in place if the device came from `Device.from_vec` (in single precision they are converted on the device).
    """

    def __init__(self, arrays: Arrays, name: str = "vectors"):
        self.arrays = arrays
        self.name = name
        self._free: dict[int, list[Slot]] = {}
        self._wide = arrays.in_precision("double")

    @property
    def mode(self) -> str:
        """ "viennacl" if buffers are PETSc's own, "host" if values are staged."""
        return "viennacl" if self.arrays.device.from_petsc else "host"

    def read(self, vec):
        """Context manager: buffer with the values of `vec`, not to be written."""
        return self._access(vec, load=True, store=False)

    @contextmanager
    def read_state(self, state, rate=None):
        """Context manager: buffers with the values of a state and of its time derivative, None without one."""
        with self.read(state) as u, nullcontext() if rate is None else self.read(rate) as u_t:
            yield u, u_t

    def write(self, vec):
        """Context manager: buffer whose values become those of `vec`; every value must be written."""
        return self._access(vec, load=False, store=True)

    def update(self, vec):
        """Context manager: buffer with the values of `vec`, which become those of `vec` again."""
        return self._access(vec, load=True, store=True)

    def _access(self, vec, load: bool, store: bool):
        if vec.getLocalSize() == 0:
            return self._nothing(vec, store)
        if self.mode == "viennacl" and is_viennacl(vec):
            if self.arrays.precision == "single":
                return self._converted(vec, load, store)
            return self._shared(vec, "rw" if load and store else "w" if store else "r")
        return self._staged(vec, load, store)

    @contextmanager
    def _nothing(self, vec, store: bool):
        with self._slot(1) as slot:
            yield slot.buffer
        if store:
            vec.stateIncrease()  # or this rank alone would take a norm that PETSc remembers, and the others wait for it

    @contextmanager
    def _shared(self, vec, how: str):
        buffer = opencl().Buffer.from_int_ptr(vec.getCLMemHandle(how), False)
        try:
            yield buffer
        finally:
            if how != "r":
                vec.restoreCLMemHandle()

    @contextmanager
    def _converted(self, vec, load: bool, store: bool):
        count = vec.getLocalSize()
        with self._slot(count) as slot:
            if load:
                with self._shared(vec, "r") as wide:
                    self._wide.convert(wide, slot.buffer, count, self.arrays)
            yield slot.buffer
            if store:
                with self._shared(vec, "w") as wide:
                    self.arrays.convert(slot.buffer, wide, count, self._wide)

    @contextmanager
    def _staged(self, vec, load: bool, store: bool):
        with self._slot(vec.getLocalSize()) as slot:
            if load:
                with vec.getBuffer(readonly=True) as values:
                    slot.load(values)
            yield slot.buffer
            if store:
                with vec.getBuffer() as values:
                    slot.store(values)

    @contextmanager
    def _slot(self, count: int):
        free = self._free.setdefault(count, [])
        slot = free.pop() if free else Slot(self.arrays, count, self.name)
        try:
            yield slot
        finally:
            free.append(slot)
