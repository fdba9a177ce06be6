"""Exchange of ghost values between device buffers: packed on the device, while kernels that need none of them run."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from petsc_hdg import stages
from petsc_hdg.device.arrays import Arrays
from petsc_hdg.device.context import aside
from petsc_hdg.device.halo_links import Links
from petsc_hdg.device.halo_peers import PeerLinks, halo_kernel
from petsc_hdg.device.halo_plan import OTHER, HaloPlan
from petsc_hdg.device.node import Node
from petsc_hdg.errors import DeviceError, collectively

FEW = 1 << 21  # values of a GPU below which a product takes less time than its exchange, and than launches to split it


class Halo:
    """Ghost values of vectors [point, component] of `real` on a device.

        halo = Halo(comm, owned_size, ghost_owner_rank, ghost_owner_index, arrays)
        halo.forward(owned, ghosts)          owners → ghosts
        halo.reverse_add(ghosts, owned)      ghosts → owners, summed in a fixed order

    Both are split into `..._begin(source)`, which does not wait, and `..._end(target)`, which does: kernels launched
    between them run beside the exchange. Sources stay as they are until the end, as far as they are ghosts; one
    exchange can be under way at a time. ghost_place [ghost] says where each ghost stands in the buffer of ghosts
    (default: 0, 1, …), so that one buffer may hold owned points and ghosts. Building a Halo is collective on `comm`
    (mpi4py).

    places [slot]: where in the buffer of ghosts what is received stands, on ranks with neighbours.
    alone: nothing should run beside exchanges, which are next in the device's queue; by default where devices write
    each other's memory, and where this rank owns so few values that an exchange takes longer than what could.
    muted: exchanges do nothing, and results are wrong; benchmarks find what exchanges cost so. The same on all ranks.
    """

    muted = False

    def __init__(
        self,
        comm,
        owned_size,
        ghost_owner_rank,
        ghost_owner_index,
        arrays: Arrays,
        components=1,
        ghost_place=None,
        alone=None,
    ):
        self.plan = HaloPlan(comm, owned_size, ghost_owner_rank, ghost_owner_index)
        self.arrays = arrays
        self.components = int(components)
        self.places = np.zeros(0, np.int64)
        self._under_way: str | None = None
        self._links = self._peers = None
        memory = Node.of(comm).peers(arrays.device) if comm.size > 1 else None
        if memory is not None:
            self._peers = PeerLinks(self.plan, memory, arrays, self.components)
        elif comm.size > 1:
            self._links = Links(self.plan, Node.of(comm), arrays, self.components)
        few = arrays.device.is_gpu and owned_size * self.components < FEW
        self.alone = memory is not None or (few if alone is None else alone)
        with collectively(comm):
            if comm.size > 1:
                (self._peers or self._links).prepare()
            if self.plan.active:
                self._allocate(ghost_place)

    def _allocate(self, ghost_place) -> None:
        plan, arrays = self.plan, self.arrays
        ghosts = plan.receive_ghosts if ghost_place is None else np.asarray(ghost_place)[plan.receive_ghosts]
        self.places = ghosts
        first = int(ghosts[0]) if ghosts.size else 0
        self._first_ghost = first if np.array_equal(ghosts, first + np.arange(ghosts.size)) else None  # of one run
        tables = {"ghosts": ghosts, "points": plan.send_points, "targets": plan.targets}
        tables |= {"offsets": plan.target_offsets, "slots": plan.target_slots}
        self._tables = {name: arrays.to_device(table, "halo tables") for name, table in tables.items()}
        counts = {"points": plan.send_points.size, "ghosts": plan.receive_ghosts.size, "targets": plan.targets.size}
        self._items = {name: count * self.components for name, count in counts.items()}
        goes_straight = self._peers is not None or self._first_ghost is not None
        staged = ("points",) if goes_straight else ("points", "ghosts")
        self._buffers = {name: arrays.empty(self._items[name]) for name in staged}
        names = ("halo_pack", "halo_unpack", "halo_add")
        self._kernels = {name: halo_kernel(name, arrays, self.components) for name in names}

    def forward(self, owned, ghosts) -> None:
        """Copy the owners' values in buffer `owned` into buffer `ghosts`."""
        if not self._at_once("points", owned, ghosts):
            self.forward_begin(owned)
            self.forward_end(ghosts)

    def forward_begin(self, owned) -> None:
        """Pack the values of `owned`, which may change after this."""
        self._repeatable(lambda: self._begin("forward", owned, "points"))

    def forward_end(self, ghosts) -> None:
        """Send and receive into `ghosts`."""
        self._repeatable(lambda: self._end("forward") and self._exchange("points", ghosts))

    @property
    def has_peers(self) -> bool:
        """True if exchanges are launches alone."""
        return self._peers is not None

    def reverse(self, ghosts, target, places) -> None:
        """Copy the values in buffer `ghosts` into the owners' buffer `target`, at `places` [slot of send_points], with
        peers."""
        if not Halo.muted:
            self._peers.exchange("ghosts", (ghosts, self._tables["ghosts"]), (target, places))
            self._count("ghosts")

    def reverse_add(self, ghosts, owned) -> None:
        """Add the values in buffer `ghosts` to their owners' in buffer `owned`."""
        if self._at_once("ghosts", ghosts, None):
            self._sum(owned)
        else:
            self.reverse_add_begin(ghosts)
            self.reverse_add_end(owned)

    def reverse_add_begin(self, ghosts) -> None:
        """Take the values of `ghosts`, which stay as they are until the end."""
        self._repeatable(lambda: self._begin("reverse_add", ghosts, "ghosts"))

    def reverse_add_end(self, owned) -> None:
        """Send, receive and add to `owned`."""
        self._repeatable(lambda: self._add(owned))

    def _add(self, owned) -> None:
        if not self._end("reverse_add"):
            return
        self._exchange("ghosts", None)
        self._sum(owned)

    def _sum(self, owned) -> None:
        tables, count = self._tables, self._items["targets"]
        self._kernels["halo_add"](
            count, self._buffers["points"], tables["targets"], tables["offsets"], tables["slots"], owned, count
        )

    def _repeatable(self, call) -> None:
        """Run call(), now and where a sequence of launches that is being recorded is repeated."""
        if self.plan.active and self._peers is None:
            aside(self.arrays.device, call)
        else:
            call()

    def _begin(self, what: str, source, side: str) -> None:
        if self._under_way is not None:
            raise DeviceError(f"a halo exchange ({self._under_way}) is under way: end it before {what} begins")
        self._under_way = what
        if not self.plan.active or Halo.muted:
            return
        count, self._ready_on = self._items[side], self.arrays.device.queue
        if self._peers is not None:
            self._peers.send(side, source, self._tables[side])
            return
        self._source, self._start = source, 0
        if side == "ghosts" and self._first_ghost is not None:
            self._start, packed = self._first_ghost * self._links.bytes_of_slot, False
        else:
            self._source, packed = self._buffers[side], count > 0
        if packed:
            self._ready = self._kernels["halo_pack"](count, source, self._tables[side], self._source, count)
        elif not self.alone:
            self._ready = self.arrays.device.marker()
        self._links.begin(side)

    def _at_once(self, side: str, source, ghosts) -> bool:
        """Exchange with peers by as few launches as can be; True if that is done."""
        if self._peers is None or not self.plan.active or Halo.muted or self._under_way is not None:
            return False
        self._peers.exchange(side, (source, self._tables[side]), self._arrival(side, ghosts))
        self._count(side)
        return True

    def _arrival(self, side: str, ghosts) -> tuple:
        """Buffer of the other side's slots and their places there, None where these are packed, when a side is sent."""
        return (ghosts, self._tables["ghosts"]) if side == "points" else (self._buffers["points"], None)

    def _end(self, what: str) -> bool:
        """True if there is something to do."""
        if self._under_way != what:
            raise DeviceError(f"a halo exchange ends as {what}, but {self._under_way or 'none'} is under way")
        self._under_way = None
        return self.plan.active and not Halo.muted

    def _exchange(self, side: str, ghosts) -> None:
        """Send the slots of a side; receive those of the other, into `ghosts` if these are ghosts."""
        if self._peers is not None:
            self._peers.receive(OTHER[side], *self._arrival(side, ghosts))
            self._count(side)
            return
        device, began = self.arrays.device, time.perf_counter()
        ready = None if self.alone else self._ready
        if ready is not None:
            self._ready_on.flush()  # what the other queue waits for
            device.queue.flush()
        with stages.event("Halo"):
            self._links.send(side, self._source, self._start, ready)
            if side == "ghosts":
                self._links.receive("points", self._buffers["points"], 0, ready)
            elif self._first_ghost is not None:
                self._links.receive("ghosts", ghosts, self._first_ghost * self._links.bytes_of_slot, ready)
            else:
                self._links.receive("ghosts", self._buffers["ghosts"], 0, ready)
        device.exchanges.count += 1
        device.exchanges.waited += time.perf_counter() - began
        if side == "points" and self._first_ghost is None:
            count = self._items["ghosts"]
            self._kernels["halo_unpack"](count, self._buffers["ghosts"], self._tables["ghosts"], ghosts, count)

    def _count(self, side: str) -> None:
        """Count an exchange with peers. What was launched goes to the device now: other ranks' kernels wait for it, and
        this host may wait for them. After a sequence that is repeated a sum or a copy takes it there."""
        exchanges, nbytes = self.arrays.device.exchanges, self._items[side] * self.arrays.real.itemsize
        if self.arrays.device.recording is None:
            self.arrays.device.queue.flush()
        aside(self.arrays.device, partial(exchanges.add_peers, nbytes))

    def destroy(self) -> None:
        """Free the persistent requests."""
        if self._links is not None:
            self._links.free()

    def __del__(self):
        if getattr(self, "_links", None) is not None:
            self.destroy()
