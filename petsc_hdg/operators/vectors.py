"""Vectors on the device as the kernels read them: owned values, and a tail of ghosts and essential values; sums of
entries.

Vectors that PETSc hands to callbacks have the sizes of these: one of another size would be written beyond its end.
"""

from __future__ import annotations

import numpy as np

from ..codegen import KernelSpec
from ..device import Kernel
from ..errors import SolveError
from ..value_checks import plural

SHAPES = {True: (256, 512), False: (1, 16)}  # is a GPU -> work-items of a group, groups: the same, so that sums are


class TailedVector:
    """One vector's buffers: `owned` [num_owned] may be PETSc's own; `tail` [ghosts + constrained] is ours.

    The constrained part of the tail is zero until essential values are written there, or their rates if `is_rate`.
    """

    def __init__(self, operator, is_rate: bool = False):
        self.operator = operator
        self.is_rate = is_rate
        self.tail = operator.arrays.zeros(max(1, operator.dofmap.num_tail))
        self.owned = None
        self.essential_time = None
        self.under_way = False  # whether ghosts are yet to come
        self._copy = None

    def use(self, owned) -> TailedVector:
        """Take `owned` as the owned values and fetch the ghosts (collective)."""
        self.owned = owned
        self.operator.halo.forward(owned, self.tail)
        return self

    def begin(self, owned) -> TailedVector:
        """Take `owned` and send what is ghost elsewhere; kernels that read no ghosts may run until `end`.

        Collective; where the halo is `alone` ghosts have come afterwards."""
        if self.operator.halo.alone:
            return self.use(owned)
        self.owned = owned
        self.operator.halo.forward_begin(owned)
        self.under_way = True
        return self

    def end(self) -> TailedVector:
        """Receive the ghosts, if they are yet to come (collective, sooner or later)."""
        if self.under_way:
            self.under_way = False
            self.operator.halo.forward_end(self.tail)
        return self

    def copy(self, other: TailedVector) -> TailedVector:
        """Take the values of a vector of the same numbering in another precision, ghosts and essential ones too."""
        arrays, theirs, dofmap = self.operator.arrays, other.operator.arrays, self.operator.dofmap
        if other.owned is not None:
            if self._copy is None:
                self._copy = arrays.zeros(max(1, dofmap.num_owned))
            theirs.convert(other.owned, self._copy, dofmap.num_owned, arrays)
            self.owned = self._copy
        theirs.convert(other.tail, self.tail, dofmap.num_tail, arrays)
        return self

    def keep(self, owned, begin: bool = False) -> TailedVector:
        """Like `use`, with a copy of `owned` on the device, for a state that outlives the caller's vector; or like
        `begin`."""
        arrays, count = self.operator.arrays, self.operator.dofmap.num_owned
        if self._copy is None:
            self._copy = arrays.zeros(max(1, count))
        arrays.copy(owned, self._copy, count)
        return self.begin(self._copy) if begin else self.use(self._copy)


def require_sizes(who: str, wanted: tuple[int, int], vectors, remedy: str) -> None:
    """Raise SolveError unless vectors (or None) have the sizes wanted, this rank's and that of all ranks. Local."""
    for vector in vectors:
        if vector is None or (found := vector.getSizes()) == wanted:
            continue
        here = "" if found[1] != wanted[1] else f" ({wanted[0]} and {found[0]} of them on this rank)"
        raise SolveError(
            f"{who} has vectors of {plural(wanted[1], 'entry', 'entries')}, and one of {found[1]} was "
            f"given{here}: {remedy}"
        )


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
