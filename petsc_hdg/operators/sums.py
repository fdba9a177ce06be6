"""Sums over the entries of buffers, added up on the device by work-groups and on the host in a fixed order."""

from __future__ import annotations

import numpy as np

from ..codegen import KernelSpec
from ..device import Kernel

SHAPES = {True: (256, 512), False: (1, 16)}  # is a GPU -> work-items of a group, groups: the same, so that sums are


class Sums:
    """Kernels of a source file that comes after krylov_sum.clh; `rows` sums of four numbers are left by those that have
    sums."""

    def __init__(self, arrays, source: str, rows: int = 1, **macros: int):
        self._arrays, self._rows, self._made = arrays, rows, {}
        self._group, self._groups = SHAPES[arrays.device.is_gpu]
        self._given = ("krylov_sum.clh", source), {"GROUP": self._group, **macros}
        self._sums = arrays.empty(4 * rows * self._groups)

    def run(self, name: str, *arguments) -> None:
        """Launch a kernel over all entries, of which its first argument is the number."""
        if name not in self._made:
            spec = KernelSpec(name, *self._given, precision=self._arrays.precision, local_size=self._group)
            self._made[name] = Kernel(spec, self._arrays.device)
        self._made[name](self._group * self._groups, *arguments)

    def of(self, name: str, *arguments) -> np.ndarray:
        """Sums [row, 4] of a kernel whose last argument, beside `arguments`, is the buffer for them; waits."""
        self.run(name, *arguments, self._sums)
        found = self._arrays.to_host(self._sums, (self._rows, self._groups, 4), name="sums")
        return found.sum(axis=1, dtype=float)
