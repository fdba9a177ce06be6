"""Exchange of ghost values between device buffers: packed on the device, one message a neighbour."""

from __future__ import annotations

import numpy as np

from petsc_hdg.codegen import KernelSpec
from petsc_hdg.device.arrays import Arrays
from petsc_hdg.device.halo_plan import HaloPlan
from petsc_hdg.device.kernel import Kernel
from petsc_hdg.errors import DeviceError, collectively


class Halo:
    """Ghost values of vectors [point, component] of `real` on a device.

        halo = Halo(comm, owned_size, ghost_owner_rank, ghost_owner_index, arrays)
        halo.forward(owned, ghosts)          owners → ghosts
        halo.reverse_add(ghosts, owned)      ghosts → owners, summed in a fixed order

    Both are split into `..._begin(source)` and `..._end(target)`, between which other kernels may run; one exchange can
    be under way at a time. ghost_place [ghost] says where each ghost stands in the buffer of ghosts (default: 0, 1, …),
    so that one buffer may hold owned points and ghosts. Building a Halo is collective on `comm` (mpi4py).
    """

    def __init__(
        self, comm, owned_size, ghost_owner_rank, ghost_owner_index, arrays: Arrays, components=1, ghost_place=None
    ):
        self.plan = HaloPlan(comm, owned_size, ghost_owner_rank, ghost_owner_index)
        self.arrays = arrays
        self.components = int(components)
        self._under_way: str | None = None
        with collectively(comm):
            if self.plan.active:
                self._allocate(ghost_place)

    def _allocate(self, ghost_place) -> None:
        plan, arrays = self.plan, self.arrays
        ghosts = plan.receive_ghosts if ghost_place is None else np.asarray(ghost_place)[plan.receive_ghosts]
        tables = {"ghosts": ghosts, "points": plan.send_points, "targets": plan.targets}
        tables |= {"offsets": plan.target_offsets, "slots": plan.target_slots}
        self._tables = {name: arrays.to_device(table, "halo tables") for name, table in tables.items()}
        counts = {"points": plan.send_points.size, "ghosts": plan.receive_ghosts.size, "targets": plan.targets.size}
        self._items = {name: count * self.components for name, count in counts.items()}
        self._buffers = {name: arrays.empty(self._items[name]) for name in ("points", "ghosts")}
        self._stages = {name: arrays.pinned(self._items[name]) for name in ("points", "ghosts")}
        self._requests = {
            reverse: plan.persistent(*self._by_slot("ghosts", "points", reverse), reverse) for reverse in (False, True)
        }
        self._kernels = {name: self._kernel(name) for name in ("halo_pack", "halo_unpack", "halo_add")}

    def _by_slot(self, ghosts: str, points: str, reverse: bool) -> list[np.ndarray]:
        names = (ghosts, points) if reverse else (points, ghosts)
        return [self._stages[name].reshape(-1, self.components) for name in names]

    def _kernel(self, name: str) -> Kernel:
        spec = KernelSpec(name, ("halo.cl",), {"COMPONENTS": self.components}, precision=self.arrays.precision)
        return Kernel(spec, self.arrays.device)

    def forward(self, owned, ghosts) -> None:
        """Copy the owners' values in buffer `owned` into buffer `ghosts`."""
        self.forward_begin(owned)
        self.forward_end(ghosts)

    def forward_begin(self, owned) -> None:
        """Pack and send the values of `owned`, which may change after this."""
        self._begin("forward", owned, "points")

    def forward_end(self, ghosts) -> None:
        """Receive into `ghosts`."""
        self._end("forward")
        count = self._receive("ghosts")
        if count:
            self._kernels["halo_unpack"](count, self._buffers["ghosts"], self._tables["ghosts"], ghosts, count)

    def reverse_add(self, ghosts, owned) -> None:
        """Add the values in buffer `ghosts` to their owners' in buffer `owned`."""
        self.reverse_add_begin(ghosts)
        self.reverse_add_end(owned)

    def reverse_add_begin(self, ghosts) -> None:
        """Pack and send the values of `ghosts`, which may change after this."""
        self._begin("reverse_add", ghosts, "ghosts")

    def reverse_add_end(self, owned) -> None:
        """Receive and add to `owned`."""
        self._end("reverse_add")
        if not self._receive("points"):
            return
        tables, count = self._tables, self._items["targets"]
        self._kernels["halo_add"](
            count, self._buffers["points"], tables["targets"], tables["offsets"], tables["slots"], owned, count
        )

    def _begin(self, what: str, source, name: str) -> None:
        if self._under_way is not None:
            raise DeviceError(f"a halo exchange ({self._under_way}) is under way: end it before {what} begins")
        self._under_way = what
        if not self.plan.active:
            return
        count = self._items[name]
        if count:
            self._kernels["halo_pack"](count, source, self._tables[name], self._buffers[name], count)
            self.arrays.download(self._buffers[name], self._stages[name], "halo")
        for request in self._requests[what == "reverse_add"]:
            request.Start()

    def _end(self, what: str) -> None:
        if self._under_way != what:
            raise DeviceError(f"a halo exchange ends as {what}, but {self._under_way or 'none'} is under way")
        self._under_way = None
        if self.plan.active:
            for request in self._requests[what == "reverse_add"]:
                request.Wait()

    def _receive(self, name: str) -> int:
        """Move what was received for `name` to the device; the number of values."""
        count = self._items[name] if self.plan.active else 0
        if count:
            self.arrays.upload(self._buffers[name], self._stages[name], "halo")
        return count

    def destroy(self) -> None:
        """Free the persistent requests."""
        if self.plan.active:
            for requests in self._requests.values():
                for request in requests:
                    request.Free()
            self._requests = {False: [], True: []}
