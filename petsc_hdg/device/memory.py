"""What buffers take of a device's memory, counted from their making to their end, and whether more fits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from petsc_hdg.device.platforms import opencl
from petsc_hdg.errors import DeviceError


@dataclass
class Taken:
    """bytes: of all buffers that this process has on a device."""

    bytes: int = 0


class Memory:
    """Device memory of one problem, and of all problems of the process, with the limit for both.

    held      bytes of the problem's buffers
    most      the largest that was (high water); both without PETSc's vectors
    taken     Taken: bytes of all problems' buffers
    room      bytes that all may have together, None for no limit: the device's memory over the ranks that share it
    unknowns, ranks  of the problem, for advice: this rank's, and those with cells; 0 where there is none yet
    """

    def __init__(self, name: str = "the device", room: int | None = None, taken: Taken | None = None):
        self.name, self.room, self.taken = name, room, taken or Taken()
        self.held = self.most = self.unknowns = self.ranks = 0

    def buffer(self, context, flags, nbytes: int):
        """A pyopencl.Buffer of so many bytes, counted while it lives.

        Raises DeviceError, before the driver is asked, if it does not fit beside the others: drivers may allocate at
        first use and accept anything before; and if the driver refuses.
        """
        if self.room is not None and self.taken.bytes + nbytes > self.room:
            raise self.shortage(nbytes)
        try:
            buffer = _counted()(context, flags, nbytes)
        except opencl().Error as error:
            raise self.shortage(nbytes, str(error)) from error
        buffer.memory, buffer.counted = self, nbytes
        self.add(nbytes)
        self.most = max(self.most, self.held)
        return buffer

    @property
    def free(self) -> float:
        """Bytes that no problem of the process has taken."""
        return math.inf if self.room is None else max(0, self.room - self.taken.bytes)

    def add(self, nbytes: int) -> None:
        """Count bytes that come, or go where the number is negative."""
        self.held += nbytes
        self.taken.bytes += nbytes

    def shortage(self, nbytes: int, reason: str = "") -> DeviceError:
        """The error that says what was asked for, what there is, and what would fit."""
        of = "" if self.room is None else f" of {size(self.room)} for this rank"
        taken = f"{size(self.taken.bytes)}{of} are taken" + (f"; {reason}" if reason else "")
        return DeviceError(f"{self.name} has no room for {size(nbytes)} more ({taken}): {self._advice(nbytes)}")

    def _advice(self, nbytes: int) -> str:
        general = "a coarser mesh or a lower -fe_degree"
        others = self.taken.bytes - self.held
        if others > self.held:
            return f"{size(others)} of them belong to other problems of this program; give up those that it has done"
        if not (self.unknowns and self.ranks and self.room):
            return f"use more ranks, each with a device of its own, {general}"
        each = (self.held + nbytes) / self.unknowns
        room = self.room - others
        fit, enough = int(room / each), max(math.ceil(self.ranks * (self.held + nbytes) / room), self.ranks + 1)
        return (
            f"these are {size(each)} an unknown, so that at most {fit:.3g} of this rank's {self.unknowns:.3g} unknowns "
            f"fit; use at least {enough} ranks with as much memory each (-fe_mesh_ranks {enough}), {general}"
        )


def size(nbytes: float) -> str:
    """Bytes with three digits: 12 B, 3.45 kB, 67.8 MB, 1.23 GB."""
    value, units = float(nbytes), ["B", "kB", "MB", "GB", "TB", "PB"]
    while abs(value) >= 999.5 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{value:.0f} B" if units[0] == "B" else f"{value:.3g} {units[0]}"


@lru_cache(maxsize=1)
def _counted() -> type:
    class Counted(opencl().Buffer):
        """A Buffer that says when it goes; pyopencl's own takes neither attributes nor weak references."""

        memory, counted = None, 0

        def __del__(self):
            if self.memory is not None:
                self.memory.add(-self.counted)

    return Counted
