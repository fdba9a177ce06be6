"""Memory of the devices of a node that the kernels of all its ranks read and write.

A kernel writes what a neighbour waits for into memory of that one's device, and a kernel there waits for it. So an
exchange takes microseconds and no host. NVIDIA's OpenCL has no shared buffers of its own, and does not let kernels
write host memory. CUDA's driver, which comes with it, allocates the memory (cuMemCreate) and exports it as a file
descriptor; OpenCL takes that in each rank (cl_khr_external_memory_opaque_fd). On CPUs a window of MPI serves.
"""

from __future__ import annotations

import ctypes
import os
import socket
import uuid

import numpy as np
from mpi4py import MPI

from petsc_hdg import nvml
from petsc_hdg.device.platforms import identity, opencl
from petsc_hdg.device.regions import Block, Pool
from petsc_hdg.errors import DeviceError

EXTENSION = "cl_khr_external_memory_opaque_fd"
_OPAQUE_FD = 0x2060  # CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR
MOST = 3 << 27  # bytes of a part: NVIDIA's OpenCL crashes when it takes half a gigabyte
_POSIX_FD, _PINNED, _ON_DEVICE = 1, 1, 1  # CUDA's names of them


class PeerMemory(Pool):
    """Blocks with a part on each rank's device: parts [rank of the node] are pyopencl Buffers of `device`'s context."""

    def __init__(self, local, device):
        super().__init__(local)
        self._device = device

    @classmethod
    def made(cls, node, device) -> PeerMemory | None:
        """Make the PeerMemory of a node's ranks; None if their devices cannot share memory. Collective on the node."""
        local = node.local
        mine = identity(device.cl_device) if device.is_gpu else local.rank
        everyone = local.allgather((device.is_gpu, mine, EXTENSION in device.cl_device.extensions.split()))
        kinds, places, able = zip(*everyone, strict=True)
        alike = len(set(kinds)) == 1 and (not kinds[0] or (all(able) and len(set(places)) == local.size))
        reached = alike and (not kinds[0] or nvml.reaches(_on_bus(mine), set(map(_on_bus, places)) - {_on_bus(mine)}))
        if not local.allreduce(int(node.is_whole and reached), MPI.MIN):
            return None
        memory = cls(local, device)
        return memory if memory.region(1) is not None else None

    def part(self, rank: int, block: int):
        """The buffer of a rank's part of a block."""
        return self._blocks[block].parts[rank]

    def zeroed(self, nbytes: int):
        """A region of zeros, None where there is no room. Collective."""
        self._device.finish()  # what was there may be in use
        found = self.region(nbytes)
        if found is not None:
            part = self.part(self.local.rank, found.number)
            opencl().enqueue_fill_buffer(self._device.queue, part, np.uint8(0), found.start, found.size)
            self._device.finish()
        return found

    def _made(self, size: int) -> Block | None:
        make = self._exported if self._device.is_gpu else self._shared
        try:
            block = make(size)
        except (DeviceError, OSError, opencl().Error):
            block = None
        return block if self.local.allreduce(int(block is not None), MPI.MIN) else None

    def _shared(self, size: int) -> Block:
        """A window of MPI."""
        cl, block = opencl(), Block(size)
        block.window = MPI.Win.Allocate_shared(size, 1, comm=self.local)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        parts = [np.frombuffer(block.window.Shared_query(rank)[0], np.uint8) for rank in range(self.local.size)]
        block.parts = [cl.Buffer(self._device.context, flags, hostbuf=part) for part in parts]
        return block

    def _exported(self, size: int) -> Block:
        """Memory of each device."""
        if size > MOST:
            raise DeviceError(f"a part of {size} bytes is more than the {MOST} that OpenCL takes")
        try:
            own, size = _allocate(identity(self._device.cl_device), size)
        except (DeviceError, OSError):
            own = -1
        if self.local.allreduce(own, MPI.MIN) < 0:
            raise DeviceError("a device has no memory to share")
        block = Block(size)
        sizes = self.local.allgather(size)
        descriptors = _exchanged(self.local, own)
        block.parts = [_imported(self._device.context, *each) for each in zip(descriptors, sizes, strict=True)]
        return block


class _Properties(ctypes.Structure):
    """CUmemAllocationProp"""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("place", ctypes.c_int),
        ("device", ctypes.c_int),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


def _cuda(name: str, *arguments) -> None:
    """Call a function of CUDA's driver. Raises OSError where there is none, DeviceError."""
    code = getattr(ctypes.CDLL("libcuda.so.1"), name)(*arguments)
    if code:
        raise DeviceError(f"{name} of CUDA's driver failed with code {code}")


def _on_bus(place: str) -> str:
    """The place on the bus in an `identity`."""
    return place.removeprefix("PCI ")


def _cuda_device(place: str) -> int:
    """CUDA's number of the device of an `identity`."""
    found = ctypes.c_int()
    _cuda("cuInit", 0)
    _cuda("cuDeviceGetByPCIBusId", ctypes.byref(found), f"{_on_bus(place)}.0".encode())
    return found.value


def _allocate(place: str, size: int) -> tuple[int, int]:
    """Descriptor and size of new memory of a device, which lives while something holds the descriptor or the memory."""
    wanted = _Properties(_PINNED, _POSIX_FD, _ON_DEVICE, _cuda_device(place))
    step, handle, descriptor = ctypes.c_size_t(), ctypes.c_ulonglong(), ctypes.c_int(-1)
    _cuda("cuMemGetAllocationGranularity", ctypes.byref(step), ctypes.byref(wanted), 0)
    size = -(-size // step.value) * step.value
    _cuda("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(wanted), ctypes.c_ulonglong(0))
    _cuda("cuMemExportToShareableHandle", ctypes.byref(descriptor), handle, _POSIX_FD, ctypes.c_ulonglong(0))
    return descriptor.value, size


def _exchanged(local, own: int) -> list[int]:
    """The descriptors of all ranks of a node, as this process has them. Collective."""
    found = [own] * local.size
    with socket.socket(socket.AF_UNIX) as mine:
        name = f"\0petsc_hdg {uuid.uuid4()}"
        mine.bind(name)
        mine.listen(local.size)
        names = local.allgather(name)
        for rank, other in enumerate(names):
            if rank != local.rank:
                with socket.socket(socket.AF_UNIX) as link:
                    link.connect(other)
                    socket.send_fds(link, [local.rank.to_bytes(4, "little")], [own])
        for _ in range(local.size - 1):
            link, _ = mine.accept()
            with link:
                message, descriptors, _, _ = socket.recv_fds(link, 4, 1)
                found[int.from_bytes(message, "little")] = descriptors[0]
        local.Barrier()  # all have accepted before one closes
    return found


def _imported(context, descriptor: int, size: int):
    """A buffer on exported memory; OpenCL keeps the descriptor."""
    cl, code = opencl(), ctypes.c_int()
    library = ctypes.CDLL(_loader())
    library.clCreateBufferWithProperties.restype = ctypes.c_void_p
    properties = (ctypes.c_ulonglong * 3)(_OPAQUE_FD, descriptor, 0)
    flags, address = ctypes.c_ulonglong(cl.mem_flags.READ_WRITE), ctypes.c_void_p(context.int_ptr)
    made = library.clCreateBufferWithProperties(
        address, properties, flags, ctypes.c_size_t(size), None, ctypes.byref(code)
    )
    if code.value:
        raise DeviceError(f"OpenCL does not take the memory of another device (code {code.value})")
    return cl.Buffer.from_int_ptr(made, False)


def _loader() -> str:
    """The library of OpenCL that this process has loaded."""
    with open(f"/proc/{os.getpid()}/maps", encoding="utf-8") as lines:
        found = [line.split()[-1] for line in lines if "libOpenCL" in line]
    if not found:
        raise DeviceError("the OpenCL library of this process is not known")
    return found[0]
