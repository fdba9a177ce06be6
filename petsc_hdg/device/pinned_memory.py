"""Memory that MPI allocated, made known to a GPU so that it copies from and to it at full speed."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from petsc_hdg.device.platforms import opencl

SAMPLE = 1 << 20  # bytes that are copied to see how fast that goes
SLOWER = 2.0  # than from memory of the driver's own: not at full speed


@dataclass(frozen=True)
class Registered:
    """A buffer on host memory, which makes the driver lock its pages while it lives.

    Nothing passes through it: what is copied into such a buffer need not reach the host. Copies take the memory itself.
    speed: bytes per second of copies to the device.   is_fast: whether that is as much as from the driver's own memory.
    """

    buffer: object
    speed: float
    is_fast: bool
    how: str


def register(device, memory: np.ndarray) -> Registered:
    """Make memory [byte] known to a GPU; it is read, not written. Where the driver does not care it is not fast."""
    cl, sample, found = opencl(), min(SAMPLE, memory.size), Registered(None, 0.0, False, "refused")
    try:
        target = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, sample)
        own, buffer = _seconds(device, target, _own_memory(device, sample)), None
        for step in (_made, _read, _mapped):
            buffer = step(device, buffer, memory, target)
            seconds = _seconds(device, target, memory[:sample])
            found = Registered(buffer, sample / seconds, seconds <= SLOWER * own, step.__name__[1:])
            if found.is_fast:
                break
    except cl.Error:
        pass  # copies work without, at less speed
    return found


def _made(device, _buffer, memory, _target):
    """A buffer on the memory."""
    flags = opencl().mem_flags.READ_WRITE | opencl().mem_flags.USE_HOST_PTR
    return opencl().Buffer(device.context, flags, hostbuf=memory)


def _read(device, buffer, _memory, target):
    """The same, read once: some drivers look at it only then."""
    opencl().enqueue_copy(device.queue, target, buffer, byte_count=min(64, target.size))
    device.queue.finish()
    return buffer


def _mapped(device, buffer, memory, _target):
    """The same, mapped to be read."""
    cl = opencl()
    cl.enqueue_map_buffer(device.queue, buffer, cl.map_flags.READ, 0, (memory.size,), np.uint8, is_blocking=True)
    return buffer


def _own_memory(device, size: int) -> np.ndarray:
    cl = opencl()
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
    buffer, both = cl.Buffer(device.context, flags, size), cl.map_flags.READ | cl.map_flags.WRITE
    return cl.enqueue_map_buffer(device.queue, buffer, both, 0, (size,), np.uint8, is_blocking=True)[0]


def _seconds(device, target, memory: np.ndarray) -> float:
    """Of a copy to the device, the least of a few."""
    found = []
    for _ in range(6):
        start = time.perf_counter()
        opencl().enqueue_copy(device.queue, target, memory, is_blocking=True)
        found.append(time.perf_counter() - start)
    return min(found)
