"""Launch shape of thread transposition (Knepley, Rupp and Terrel 2016, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, lcm

from ..errors import OptionError

PREFERRED_THREADS = 128


@dataclass(frozen=True)
class Transposition:
    """threads of a work-group, cells it holds at once (a batch), bytes of local memory they take."""

    threads: int
    cells: int
    local_bytes: int


@dataclass(frozen=True)
class DeviceLimits:
    """Limits of a device for kernels: local memory in bytes, threads of a work-group, inline PTX.

    ptx    value of the macro PTX: the compute capability (90 for 9.0) of an NVIDIA GPU, else 0
    """

    local_bytes: int = 32768
    max_work_group: int = 256
    is_gpu: bool = False
    ptx: int = 0

    @classmethod
    def of(cls, device) -> DeviceLimits:
        """Limits of a Device."""
        return cls(device.local_bytes, device.max_work_group, device.is_gpu, device.ptx)

    def group(self, size: int) -> int:
        """Work-items of a work-group that share nothing, `size` on a GPU. On a CPU one: its program compiles in a half
        to three quarters of the time of several in a loop, and runs as fast."""
        return size if self.is_gpu else 1

    @property
    def macros(self) -> dict[str, int]:
        """PTX: kernels hold inline PTX under `#if PTX >= 90` (or what it needs), the portable path beside it."""
        return {"PTX": self.ptx}


def transposition(
    num_dofs: int, num_points: int, bytes_per_cell: int, limits: DeviceLimits, num_blocks: int = 0
) -> Transposition:
    """Threads and cells of a work-group.

    A block is lcm(num_dofs, num_points) threads on lcm / gcd cells: each thread does the same number of points and of
    basis functions. num_blocks (N_bl) blocks are held at once; 0 takes as many as give about 128 threads. Where a
    block is larger than the device allows, threads take several items in turn instead.

    Raises OptionError if the num_blocks asked for do not fit.
    """
    threads, cells = lcm(num_dofs, num_points), lcm(num_dofs, num_points) // gcd(num_dofs, num_points)

    def fits(blocks: int) -> bool:
        return blocks * threads <= limits.max_work_group and blocks * cells * bytes_per_cell <= limits.local_bytes

    if num_blocks:
        if not fits(num_blocks):
            raise OptionError(
                f"-fe_num_blocks {num_blocks} needs {num_blocks * threads} threads and "
                f"{num_blocks * cells * bytes_per_cell} bytes of local memory a work-group; "
                f"the device has {limits.max_work_group} and {limits.local_bytes}: give fewer, or 0 to let it be chosen"
            )
        return Transposition(num_blocks * threads, num_blocks * cells, num_blocks * cells * bytes_per_cell)
    blocks = max(1, PREFERRED_THREADS // threads)
    while blocks > 1 and not fits(blocks):
        blocks -= 1
    if fits(blocks):
        return Transposition(blocks * threads, blocks * cells, blocks * cells * bytes_per_cell)
    return _uneven(num_dofs, num_points, bytes_per_cell, limits)


def _uneven(num_dofs: int, num_points: int, bytes_per_cell: int, limits: DeviceLimits) -> Transposition:
    """Shape if the common multiple is too large: as many cells as fit, threads enough for one phase at a time."""
    most = min(PREFERRED_THREADS, limits.max_work_group)
    cells = max(1, min(most // min(num_dofs, num_points), limits.local_bytes // bytes_per_cell))
    threads = min(most, -(-cells * max(num_dofs, num_points) // 32) * 32)
    return Transposition(threads, cells, cells * bytes_per_cell)
