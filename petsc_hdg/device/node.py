"""Ranks that share memory, and windows there: each rank writes its own part, all read every part.

Memory that MPI allocated is made known to a GPU, so that it copies from and to it at full speed.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

from petsc_hdg.device.peer_memory import PeerMemory
from petsc_hdg.device.platforms import opencl
from petsc_hdg.device.regions import Block, Pool, Region
from petsc_hdg.errors import DeviceError

PRETEND = "PETSC_HDG_NODE_RANKS"  # environment variable: how many ranks a node has, to try exchanges between nodes
SHARED = "/dev/shm"  # where MPI keeps windows, of limited size
_FIRST_TAG, _TAGS = 7200, 4096
_NODES: dict[tuple, Node] = {}
SAMPLE = 1 << 20  # bytes that are copied to see how fast that goes
SLOWER = 2.0  # than from memory of the driver's own: not at full speed


class Node:
    """What exchanges on one communicator share. `Node.of(comm)` is collective when it is first called for its ranks.

    comm     a duplicate of the communicator, for our messages alone
    local    communicator of the ranks of this node
    members  [rank of `local`] rank of `comm`
    windows  Windows of `local`
    """

    def __init__(self, comm):
        self.comm = comm.Dup()
        self.local = node_communicator(self.comm)
        self.members = np.array(self.local.allgather(self.comm.rank))
        self.windows = Windows(self.local)
        self._peers: dict = {}  # of an Opened
        self._tag = 0

    @classmethod
    def of(cls, comm) -> Node:
        """The node of this rank among the ranks of an mpi4py communicator; PETSc frees and makes those as it likes."""
        ranks = MPI.Group.Translate_ranks(comm.group, list(range(comm.size)), MPI.COMM_WORLD.group)
        key = tuple(ranks)
        if key not in _NODES:
            _NODES[key] = cls(comm)
        return _NODES[key]

    @property
    def is_whole(self) -> bool:
        """True if all ranks of the communicator are on this node."""
        return self.local.size == self.comm.size

    def region(self, nbytes: int, device) -> Region | None:
        """This rank's part of a window, None where the ranks of the node go by messages. Collective on the node.

        Without full speed of copies messages are as fast: MPI copies once, and the device from memory of its own.
        """
        if device.halo == "messages":
            return None
        device.copies_done()  # a window that serves again may be under way there
        device.finish()
        region = self.windows.region(nbytes)
        if region is None:
            return None
        fast = self.local.allreduce(int(self.windows.are_fast(device)), MPI.MIN)
        return region if fast or device.halo == "windows" else None

    def peers(self, device) -> PeerMemory | None:
        """Memory of the node's devices that kernels of all ranks write, None where exchanges go another way. Collective
        on the node. Raises DeviceError where -fe_halo peers asks for what is not there.
        """
        if device.halo not in ("auto", "peers") or (device.halo == "auto" and not device.is_gpu):
            return None
        if device.opened not in self._peers:
            self._peers[device.opened] = PeerMemory.made(self, device)
        found = self._peers[device.opened]
        if found is None and device.halo == "peers":
            raise DeviceError(
                "-fe_halo peers: kernels cannot write the memory of the other ranks' devices here; it takes a node "
                "whose ranks have a GPU of NVIDIA each, that reach each other; give -fe_halo auto"
            )
        return found

    def next_tag(self) -> int:
        """A tag of its own for an exchange, the same on all ranks that make their exchanges in the same order."""
        self._tag = (self._tag + 1) % _TAGS
        return _FIRST_TAG + 2 * self._tag

    def near(self) -> np.ndarray:
        """Ranks of `comm` on this node [rank] bool."""
        mask = np.zeros(self.comm.size, bool)
        mask[self.members] = True
        return mask


def node_communicator(comm):
    """The ranks of `comm` that share memory with this one, in their order. Collective; the caller frees it."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    pretended = int(os.environ.get(PRETEND, "0") or 0)
    if pretended <= 0:
        return node
    smaller = node.Split(node.rank // pretended, node.rank)
    node.Free()
    return smaller


class Windows(Pool):
    """Shared memory of the ranks of a node."""

    def _made(self, size: int) -> _Window | None:
        free = _free_bytes() if self.local.rank == 0 else None
        return None if self.local.size * size > self.local.bcast(free) // 2 else _Window(self.local, size)

    def are_fast(self, device) -> bool:
        """True if the device copies at full speed from and to all windows, of which it is told at first."""
        if not device.is_gpu:
            return True
        known = device.opened.registered
        for block in self._blocks:
            for rank, part in enumerate(block.parts):
                if (block, rank) not in known:
                    known[block, rank] = register(device, np.frombuffer(part, np.uint8))
        return all(found.is_fast for found in known.values())

    def view(self, rank: int, block: int, start: int, count: int, dtype) -> np.ndarray:
        """`count` values from byte `start` on in the part of a rank of `local`."""
        return np.frombuffer(self._blocks[block].parts[rank], dtype, count, start)

    def sync(self) -> None:
        """Let what this rank has written be seen, and see what the others have, as far as messages have told of it."""
        for block in self._blocks:
            block.window.Sync()


def _free_bytes() -> int:
    """Room for windows."""
    try:
        space = os.statvfs(SHARED)
    except OSError:
        return 1 << 40  # not Linux: MPI keeps them elsewhere
    return space.f_bavail * space.f_frsize


class _Window(Block):
    """One window."""

    def __init__(self, local, size: int):
        super().__init__(size)
        self.window = MPI.Win.Allocate_shared(size, 1, comm=local)
        self.window.Lock_all()
        self.parts = [self.window.Shared_query(rank)[0] for rank in range(local.size)]


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
