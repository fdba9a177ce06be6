"""Host memory between slots of a halo and those of its neighbours: windows inside a node, messages between nodes."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from petsc_hdg.device.arrays import Arrays
from petsc_hdg.device.halo_plan import OTHER, HaloPlan
from petsc_hdg.device.node import Node
from petsc_hdg.errors import DeviceError

GATHERED = 1 << 16  # bytes up to which what comes from several neighbours goes to the device in one copy


class Links:
    """Sends the slots of one side, `points` or `ghosts`, and receives those of the other. Making it is collective, and
    `prepare`, which is not, comes next.

    Neighbours of this node read what is sent in this rank's part of a window, after a message of one byte that says it
    is there. All of them are told in each exchange, in both directions, and windows serve in turn: when a neighbour's
    message comes, it has read what was sent the time before, so that no rank waits for the end of reading.
    Others get one message each, from and to memory that the device copies at full speed.

    The host does not wait for what is copied to the device: it looks before it next says that it has read, and before
    messages next fill the memory that is copied.
    """

    def __init__(self, plan: HaloPlan, node: Node, arrays: Arrays, components: int):
        self.plan, self.node, self.arrays, self.components = plan, node, arrays, components
        self.bytes_of_slot = components * arrays.real.itemsize
        self.tag, self.turn = node.next_tag(), 0
        self._copied = self._queue = None  # the event of the last copy to the device, and that copy's queue
        self._region = node.region(self._window_bytes, arrays.device)
        self._is_near = node.near() if self._region is not None else np.zeros(node.comm.size, bool)
        self._own, self._theirs = self._find_windows()
        self._hear, self._tell, self._receive, self._send = [], [], {}, {}

    def prepare(self) -> None:
        """Make what this rank alone needs. Raises DeviceError."""
        if self.arrays.device.halo == "windows" and self._region is None:
            raise DeviceError(
                "-fe_halo windows: MPI has no room for shared memory on this node; enlarge /dev/shm, or give "
                "-fe_halo auto or messages"
            )
        self._make_stages()
        self._make_requests()

    @property
    def _window_bytes(self) -> int:
        return 2 * self.bytes_of_slot * (self.plan.send_points.size + self.plan.receive_ghosts.size)

    # Windows ---------------------------------------------------------------------------------------------

    def _find_windows(self):
        """This rank's memory [turn][side] and that of neighbours [turn][side]: (first slot, last slot, values there).

        Collective on the node.
        """
        own, theirs = ({}, {}), ({"points": [], "ghosts": []}, {"points": [], "ghosts": []})
        if self._region is None:
            return own, theirs
        windows, members, own_place = self.node.windows, self.node.members, self.node.local.rank
        local = {int(rank): place for place, rank in enumerate(members)}
        half = self._window_bytes // 2
        start = {"points": self._region.start, "ghosts": self._region.start + self._bytes("points")}
        told: list = [{} for _ in members]
        for side in OTHER:
            for rank, first, _ in self._groups(side, near=True):
                told[local[rank]][side] = self._region.number, start[side] + first * self.bytes_of_slot, half
            for turn in range(2):
                at = start[side] + turn * half
                own[turn][side] = windows.view(own_place, self._region.number, at, self._count(side), self.arrays.real)
        heard = self.node.local.alltoall(told)
        for side in OTHER:
            for rank, first, last in self._groups(side, near=True):
                number, at, step = heard[local[rank]][OTHER[side]]
                for turn in range(2):
                    count = (last - first) * self.components
                    values = windows.view(local[rank], number, at + turn * step, count, self.arrays.real)
                    theirs[turn][side].append((first, last, values))
        return own, theirs

    def _count(self, side: str) -> int:
        groups = self.plan.groups(side)
        return groups[-1][2] * self.components if groups else 0

    def _bytes(self, side: str) -> int:
        return self._count(side) * self.arrays.real.itemsize

    def _groups(self, side: str, near: bool) -> list:
        """Neighbours of this node, or the others, as HaloPlan.groups has them."""
        return [group for group in self.plan.groups(side) if self._is_near[group[0]] == near]

    # Messages --------------------------------------------------------------------------------------------

    def _make_stages(self) -> None:
        """Host memory of a side as messages take it, and as it comes from several neighbours at once."""
        self._runs = {side: _runs(self.plan.groups(side), self._is_near) for side in OTHER}
        near = {side: self._groups(side, near=True) for side in OTHER}
        self._together = {
            side: len(near[side]) > 1 and len(self._runs[side]) == 1 and self._bytes(side) <= GATHERED for side in OTHER
        }
        self._stages = {
            side: self.arrays.pinned(self._count(side) if self._groups(side, near=False) or self._together[side] else 0)
            for side in OTHER
        }

    def _make_requests(self) -> None:
        comm, tag = self.node.comm, self.tag
        near = sorted({group[0] for side in OTHER for group in self._groups(side, near=True)})
        self._token = np.zeros(1, np.uint8), np.zeros(max(1, len(near)), np.uint8)
        self._hear = [comm.Recv_init(self._token[1][i : i + 1], rank, tag) for i, rank in enumerate(near)]
        self._tell = [comm.Send_init(self._token[0], rank, tag) for rank in near]
        self._receive = {side: self._far_requests(comm.Recv_init, side) for side in OTHER}
        self._send = {side: self._far_requests(comm.Send_init, side) for side in OTHER}

    def _far_requests(self, make, side: str) -> list:
        values, c = self._stages[side], self.components
        return [make(values[a * c : b * c], rank, self.tag + 1) for rank, a, b in self._groups(side, near=False)]

    # Exchange --------------------------------------------------------------------------------------------

    def begin(self, side: str) -> None:
        """Be ready for what the neighbours of the other side send; `side` is what this rank sends."""
        if self._receive[OTHER[side]]:
            self._wait_for_copies()
        _start(self._hear + self._receive[OTHER[side]])

    def send(self, side: str, buffer, start: int, ready) -> None:
        """Send what stands in a device buffer from byte `start` on, on the second queue once the event `ready` is done;
        where that is None, on the device's own queue."""
        arrays, c = self.arrays, self.components
        last, where = len(self._runs[side]) - 1, self._order(ready)
        if last < 0 or where["queue"] is not self._queue:  # else copies to the host wait for those before them
            self._wait_for_copies()
        for i, (near, a, b) in enumerate(self._runs[side]):
            host = self._own[self.turn][side] if near else self._stages[side]
            arrays.download(
                buffer, host[a * c : b * c], "halo", wait=i == last, start=start + a * self.bytes_of_slot, **where
            )
            arrays.device.exchanges.windows += near * (b - a) * self.bytes_of_slot
            arrays.device.exchanges.messages += (not near) * (b - a) * self.bytes_of_slot
        if self._tell:
            self.node.windows.sync()
        _start(self._send[side] + self._tell)

    def _order(self, ready) -> dict:
        """Where copies go, and what they wait for."""
        device = self.arrays.device
        return {"queue": device.queue} if ready is None else {"queue": device.copy_queue, "wait_for": [ready]}

    def _wait_for_copies(self) -> None:
        if self._copied is not None:
            self._copied.wait()

    def receive(self, side: str, buffer, start: int, ready) -> None:
        """Wait for what the neighbours send to `side`, and begin to copy it to a device buffer from byte `start` on,
        before what the queue of the device gets next."""
        MPI.Request.Waitall(self._hear + self._tell)
        parts = self._theirs[self.turn][side]
        if parts:
            self.node.windows.sync()
        if self._together[side]:
            parts = [self._gathered(side, parts)]
        MPI.Request.Waitall(self._receive[side] + self._send[OTHER[side]])
        c = self.components
        parts = parts + [(a, b, self._stages[side][a * c : b * c]) for near, a, b in self._runs[side] if not near]
        where = self._order(ready)
        self._queue = where["queue"]
        for a, _, values in parts:
            begin = start + a * self.bytes_of_slot
            self._copied = self.arrays.upload(buffer, values, "halo", wait=False, start=begin, **where)
        if parts and ready is not None:
            self.arrays.device.wait_for_copies(self._copied)
        self.turn = 1 - self.turn

    def _gathered(self, side: str, parts: list) -> tuple:
        stage, c = self._stages[side], self.components
        for first, last, values in parts:
            stage[first * c : last * c] = values
        return parts[0][0], parts[-1][1], stage[parts[0][0] * c : parts[-1][1] * c]

    def free(self) -> None:
        """Free the requests of MPI."""
        requests = [*self._hear, *self._tell, *sum([*self._receive.values(), *self._send.values()], [])]
        self._hear, self._tell, self._receive, self._send = [], [], {}, {}
        self._wait_for_copies()
        if not MPI.Is_finalized():
            for request in requests:
                request.Free()


def _start(requests: list) -> None:
    if requests:
        MPI.Prequest.Startall(requests)


def _runs(groups: list, is_near: np.ndarray) -> list[tuple[bool, int, int]]:
    """(near, first slot, last slot): neighbours of one kind that follow each other, as one copy takes them."""
    runs: list[tuple[bool, int, int]] = []
    for rank, first, last in groups:
        near = bool(is_near[rank])
        if runs and runs[-1][0] == near:
            runs[-1] = near, runs[-1][1], last
        else:
            runs.append((near, first, last))
    return runs
