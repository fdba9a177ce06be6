"""The only file that copies between host and device; it counts the bytes by name and by callback."""

from __future__ import annotations

from contextlib import contextmanager
from weakref import WeakKeyDictionary

import numpy as np

from petsc_hdg.codegen import KernelSpec
from petsc_hdg.codegen.preamble import REAL_TYPE
from petsc_hdg.device.context import Device
from petsc_hdg.device.kernel import Kernel
from petsc_hdg.device.platforms import opencl
from petsc_hdg.errors import DeviceError

PIECE = 1 << 30  # bytes that are set at once


class Arrays:
    """Buffers of one device, with counts of what crosses between host and device.

    precision is that of `real` in the kernels; float arrays are converted to it on their way.
    h2d, d2h  name -> bytes
    callbacks callback -> {"calls", "h2d", "d2h"}
    """

    def __init__(self, device: Device, precision: str = "double"):
        self.device = device
        self.precision = precision
        self.real = np.dtype(REAL_TYPE[precision])
        self.h2d: dict[str, int] = {}
        self.d2h: dict[str, int] = {}
        self.callbacks: dict[str, dict[str, int]] = {}
        self._callback: dict[str, int] | None = None
        self._tables: WeakKeyDictionary = WeakKeyDictionary()  # of specs
        self._converters: dict[str, Kernel] = {}

    def in_precision(self, precision: str) -> Arrays:
        """Arrays of the same device in a precision: these, or others whose copies count with them."""
        if precision == self.precision:
            return self
        other = Arrays(self.device, precision)
        other.h2d, other.d2h = self.h2d, self.d2h
        return other

    def empty(self, count: int, dtype=None):
        """An uninitialised buffer of `count` values (of `real` unless dtype is given); never of zero bytes."""
        itemsize = self.real.itemsize if dtype is None else np.dtype(dtype).itemsize
        return self._allocate(int(count) * itemsize)

    def zeros(self, count: int, dtype=None):
        """A buffer of `count` zeros."""
        buffer = self.empty(count, dtype)
        self.fill(buffer, 0)
        return buffer

    def fill(self, buffer, byte: int = 0) -> None:
        """Set every byte of a buffer, on the device, in pieces: one call for 3.2 GB did not return on an H200."""
        for start in range(0, buffer.size, PIECE):
            size = min(PIECE, buffer.size - start)
            opencl().enqueue_fill_buffer(self.device.queue, buffer, np.uint8(byte), start, size)

    def to_device(self, array, name: str = "tables"):
        """A buffer holding `array`, its shape flattened: floats as `real`, integers as int (int64 must fit)."""
        array = self._device_form(np.asarray(array), name)
        buffer = self._allocate(array.nbytes)
        self.upload(buffer, array, name)
        return buffer

    def tables_of(self, spec):
        """Buffer of a KernelSpec's `table_buffer`, one for each spec, or None where it is empty."""
        if spec not in self._tables:
            self._tables[spec] = self.to_device(spec.table_buffer, "tables") if spec.table_buffer.size else None
        return self._tables[spec]

    def upload(self, buffer, array: np.ndarray, name: str, wait: bool = True, start: int = 0, **order):
        """Copy a contiguous host array into a buffer, from byte `start` on; the array must stay as it is until the
        returned event is done. order: queue and wait_for (events) of copies that are not next in the device's queue."""
        if not array.nbytes:
            return None
        self._count(self.h2d, "h2d", name, array.nbytes)
        queue = order.pop("queue", self.device.queue)
        return opencl().enqueue_copy(queue, buffer, array, dst_offset=start, is_blocking=wait, **order)

    def to_host(self, buffer, shape, dtype=None, name: str = "results") -> np.ndarray:
        """A new host array of `shape` with the start of a buffer (of `real` unless dtype is given)."""
        array = np.empty(shape, dtype=self.real if dtype is None else dtype)
        self.download(buffer, array, name)
        return array

    def download(self, buffer, array: np.ndarray, name: str, wait: bool = True, start: int = 0, **order):
        """Copy a buffer, from byte `start` on, into a contiguous host array, whole once the returned event is done.
        order: as for `upload`."""
        if not array.nbytes:
            return None
        self._count(self.d2h, "d2h", name, array.nbytes)
        queue = order.pop("queue", self.device.queue)
        return opencl().enqueue_copy(queue, array, buffer, src_offset=start, is_blocking=wait, **order)

    def copy(self, source, target, count: int, dtype=None, first: int = 0, at: int = 0) -> None:
        """Copy `count` values (of `real` unless dtype is given), from the source's `first` on, to the target's from
        `at` on, on the device."""
        size = self.real.itemsize if dtype is None else np.dtype(dtype).itemsize
        if count:
            cl, queue = opencl(), self.device.queue
            offsets = {"src_offset": first * size, "dst_offset": at * size}
            cl.enqueue_copy(queue, target, source, byte_count=count * size, **offsets)

    def convert(self, source, target, count: int, arrays: Arrays) -> None:
        """Copy `count` values to a target in the precision of `arrays`, on the device."""
        if arrays.precision == self.precision:
            self.copy(source, target, count)
            return
        name = "convert_narrow" if arrays.precision == "single" else "convert_widen"
        if name not in self._converters:
            spec = KernelSpec(name, ("convert.cl",), precision="double", local_size=64)
            self._converters[name] = Kernel(spec, self.device)
        self._converters[name](count, source, target, count)

    def pinned(self, count: int, dtype=None) -> np.ndarray:
        """Host memory of `count` values (of `real` unless dtype is given) that a GPU copies from and to at full speed;
        ordinary memory on CPUs."""
        kind = self.real if dtype is None else np.dtype(dtype)
        if not self.device.is_gpu or count == 0:
            return np.zeros(count, kind)
        cl = opencl()
        flags, access = cl.mem_flags, cl.map_flags
        buffer = self._allocate(count * kind.itemsize, flags.READ_WRITE | flags.ALLOC_HOST_PTR)
        both = access.READ | access.WRITE
        array, _ = cl.enqueue_map_buffer(self.device.queue, buffer, both, 0, (count,), kind, is_blocking=True)
        array[:] = 0
        return array

    @contextmanager
    def callback(self, name: str):
        """Count what is copied inside the block under the callback `name` too (not nested)."""
        previous = self._callback
        self._callback = self.callbacks.setdefault(name, {"calls": 0, "h2d": 0, "d2h": 0})
        self._callback["calls"] += 1
        try:
            yield
        finally:
            self._callback = previous

    def total(self) -> tuple[int, int]:
        """Bytes copied so far: (to the device, to the host)."""
        return sum(self.h2d.values()), sum(self.d2h.values())

    def _allocate(self, nbytes: int, flags=None):
        cl, memory = opencl(), self.device.memory
        if flags is None:
            return memory.buffer(self.device.context, cl.mem_flags.READ_WRITE, max(nbytes, 8))
        try:
            return cl.Buffer(self.device.context, flags, max(nbytes, 8))  # on the host
        except cl.Error as error:
            raise memory.shortage(nbytes, str(error)) from error

    def _device_form(self, array: np.ndarray, name: str) -> np.ndarray:
        if array.dtype.kind == "f":
            return np.ascontiguousarray(array, dtype=self.real)
        if array.dtype == np.uint16:  # ushort in C
            return np.ascontiguousarray(array)
        limits = np.iinfo(np.int32)
        if array.size and array.dtype != np.int32 and (array.min() < limits.min or array.max() > limits.max):
            raise DeviceError(f"array '{name}' holds integers beyond 32 bits: use more ranks")
        return np.ascontiguousarray(array, dtype=np.int32)

    def _count(self, table: dict[str, int], direction: str, name: str, nbytes: int) -> None:
        table[name] = table.get(name, 0) + nbytes
        if self._callback is not None:
            self._callback[direction] += nbytes
