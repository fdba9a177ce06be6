"""Slots of a halo and of its neighbours in each other's device memory, which kernels write and wait for."""

from __future__ import annotations

import numpy as np

from petsc_hdg.codegen import KernelSpec
from petsc_hdg.device.arrays import Arrays
from petsc_hdg.device.halo_plan import OTHER, HaloPlan
from petsc_hdg.device.kernel import Kernel
from petsc_hdg.device.peer_memory import PeerMemory
from petsc_hdg.errors import DeviceError

KERNELS = "peer_send", "peer_receive", "peer_exchange"
GROUP, MOST_GROUPS = 256, 64  # work-items of a group, groups of a launch
_FLAGS = 4096  # bytes before the slots in which neighbours write the numbers of exchanges


def halo_kernel(name: str, arrays: Arrays, components: int) -> Kernel:
    """A kernel of halo.cl."""
    size = GROUP if arrays.device.is_gpu else 1
    macros = {"COMPONENTS": components, "GROUP": size, "PTX": arrays.device.ptx}
    spec = KernelSpec(name, ("halo.cl",), macros, precision=arrays.precision, local_size=size)
    return Kernel(spec, arrays.device)


class PeerLinks:
    """Sends the slots of one side, `points` or `ghosts`, and receives those of the other, by launches alone.

    An exchange is a `send` of one side and a `receive` of the other, in this order, on all ranks with neighbours.
    Making it is collective, and `prepare`, which is not, comes next. Raises DeviceError on all ranks where devices have
    no room.
    """

    def __init__(self, plan: HaloPlan, memory: PeerMemory, arrays: Arrays, components: int):
        self._arrays, self._memory, self._components = arrays, memory, components
        self._groups = {
            side: {rank: (first, last - first) for rank, first, last in plan.groups(side)} for side in OTHER
        }
        self._near = sorted({rank for groups in self._groups.values() for rank in groups})
        self._count = {side: sum(count for _, count in groups.values()) for side, groups in self._groups.items()}
        self._steps = {side: count * components for side, count in self._count.items()}
        self._region = memory.zeroed(_FLAGS + 2 * sum(self._steps.values()) * arrays.real.itemsize)
        if self._region is None:
            raise DeviceError("-fe_halo peers: a device has no room for exchanges; give -fe_halo windows")
        self._own = memory.part(plan.comm.rank, self._region.number)
        self._places = self._find_places()
        self._told = self._tell(plan.comm)

    def prepare(self) -> None:
        """Make what this rank alone needs. Raises DeviceError.

        Kernels that wait for other ranks are launched once without: a driver may compile there, for all ranks.
        """
        self._states = [self._state() for _ in range(len(self._near) + 1)]
        kernels = (halo_kernel(name, self._arrays, self._components) for name in KERNELS)
        self._send, self._receive, self._exchange = kernels
        self._together = MOST_GROUPS if self._arrays.device.is_gpu else 1  # groups that run at the same time
        unused, states = (self._region.start + _FLAGS) // 4 - 1, (self._state(), self._state())
        nothing = self._own, 0, 0, self._own, 0, 0, states[0], None, self._own, 0
        self._receive(1, *nothing)
        self._exchange(1, self._own, None, 0, 0, self._own, 0, 0, self._own, unused, states[1], *nothing)

    def _state(self):
        return self._arrays.zeros(2, np.int32)

    def _find_places(self) -> dict[str, int]:
        """Where slots of odd exchanges begin in this rank's part, in values, by side; those of even ones are before."""
        place, found = (self._region.start + _FLAGS) // self._arrays.real.itemsize, {}
        for side in OTHER:
            found[side] = place + self._steps[side]
            place += 2 * self._steps[side]
        return found

    def _tell(self, comm) -> dict[int, tuple]:
        """Of each neighbour: its part, the place of its number there, and by side that this rank sends the place of the
        slots and the step between odd and even exchanges. Collective."""
        words: list = [None] * comm.size
        for number, rank in enumerate(self._near):
            flag = self._region.start // 4 + number
            slots = {
                OTHER[side]: (self._places[side] + self._groups[side][rank][0] * self._components, self._steps[side])
                for side in OTHER
                if rank in self._groups[side]
            }
            words[rank] = self._region.number, flag, slots
        heard = comm.alltoall(words)
        return {rank: (self._memory.part(rank, heard[rank][0]), *heard[rank][1:]) for rank in self._near}

    def _items(self, count: int, most: int = MOST_GROUPS) -> int:
        size = self._send.spec.local_size
        return size * max(1, min(most, -(-count * self._components // size)))

    def _to(self, side: str, values, index) -> list[tuple]:
        """(number of a neighbour, number of slots, arguments of the kernel that sends a side) of each neighbour."""
        found = []
        for number, (rank, (part, flag, slots)) in enumerate(self._told.items()):
            first, count = self._groups[side].get(rank, (0, 0))
            where = part, *slots.get(side, (0, 0)), part, flag, self._states[number]
            found.append((number, count, (values, index, first, count, *where)))
        return found

    def _from(self, side: str, values, index) -> tuple:
        """Arguments of the kernel that receives a side."""
        mailbox = self._own, self._places[side], self._steps[side]
        numbers = self._own, self._region.start // 4, len(self._near), self._states[-1]
        return *mailbox, *numbers, index, values, self._count[side]

    def send(self, side: str, values, index) -> None:
        """Write slots of a side, `values` at the points `index` [slot] or one by one, into the neighbours' memory."""
        for number, count, arguments in self._to(side, values, index):
            self._send.of_part((side, number))(self._items(count), *arguments)

    def receive(self, side: str, values, index) -> None:
        """Wait for the neighbours, and copy what has come for a side to `values` at the points `index` [slot]."""
        self._receive.of_part(side)(self._items(self._count[side]), *self._from(side, values, index))

    def exchange(self, side: str, sent: tuple, received: tuple) -> None:
        """`send` a side and `receive` the other, of (values, index) each, with a launch for each neighbour."""
        *others, (_, count, last) = self._to(side, *sent)
        for number, of_other, arguments in others:
            self._send.of_part((side, number))(self._items(of_other), *arguments)
        other = OTHER[side]
        together = self._items(max(count, self._count[other]), self._together)
        self._exchange.of_part(side)(together, *last, *self._from(other, *received))
