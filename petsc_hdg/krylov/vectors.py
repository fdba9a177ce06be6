"""Vectors of a Krylov method on the device, the sums over them, and their totals over ranks.

PETSc's own operations in the midst of buffers work on pairs of PETSc vectors.
"""

from __future__ import annotations

import weakref
from functools import cached_property

import numpy as np
from petsc4py import PETSc

from ..codegen import KernelSpec
from ..device import Arrays, Halo, Kernel, Node, VecAccess
from ..operators.vectors import SHAPES


class Vectors:
    """Named buffers [count] of one rank, and kernels on them.

    arrays: those of the operator, which count the copies.   comm: mpi4py communicator.
    precision: of the numbers, double where the device has it; sums over them are double there in any case.
    """

    def __init__(self, arrays: Arrays, count: int, comm, precision: str = "double"):
        device = arrays.device
        precision = precision if device.has_fp64 else "single"
        self.arrays = arrays.in_precision(precision)
        self.access = VecAccess(self.arrays, "Krylov vectors")
        self.count, self.comm = count, comm
        self.group, self.groups = SHAPES[device.is_gpu]
        self.items = self.group * self.groups if count else 0
        self._buffers: dict = {}
        self._parts = 0, None

    def of_size(self, count: int) -> Vectors:
        """Vectors of another size in the same precision."""
        return Vectors(self.arrays, count, self.comm, self.arrays.precision)

    def in_precision(self, precision: str) -> Vectors:
        """Vectors of the same size in a precision: these, or others."""
        return self if precision == self.arrays.precision else Vectors(self.arrays, self.count, self.comm, precision)

    def buffer(self, name: str):
        """The buffer of this name, allocated at first use."""
        if name not in self._buffers:
            self._buffers[name] = self.arrays.empty(self.count)
        return self._buffers[name]

    def parts(self, count: int):
        """A buffer for `count` parts of a sum, zero at first; None for no parts."""
        if count != self._parts[0]:
            self._parts = count, self.arrays.zeros(count) if count else None
        return self._parts[1]

    def kernel(self, name: str) -> Kernel:
        """A kernel object of its own: arguments that stay are then not handed over again."""
        return Kernel(kernel_spec(name, self.arrays), self.arrays.device)

    @property
    def device(self):
        """The Device of the buffers."""
        return self.arrays.device

    @cached_property
    def _kernels(self) -> dict:
        names = ("sums", "subtract", "multiply", "combine", "shift", "set", "noise", "invert")
        return {name: self.kernel(f"krylov_{name}") for name in names}

    def run(self, name: str, *arguments) -> None:
        """Launch `krylov_NAME` over all values."""
        self._kernels[name](self.items, self.count, *arguments)

    def copy(self, source, target) -> None:
        """target = source"""
        self.run("combine", 1.0, source, 0.0, target)

    # Sums ------------------------------------------------------------------------------------------------

    @cached_property
    def has_peers(self) -> bool:
        """True if kernels of each rank write the memory of other ranks' devices. Collective."""
        return self.comm.size > 1 and Node.of(self.comm).peers(self.device) is not None

    @cached_property
    def _partial(self):
        return Rows(weakref.proxy(self), 1)  # no circle: vectors take memory of the device

    def sums(self, a, b) -> np.ndarray:
        """(b·b, a·b, a·a, sum of a) over all ranks; waits. Collective."""
        self.run("sums", a, b, 0, self._partial.buffer)
        return self._partial.over_ranks(0, 1)[0]

    def over_ranks(self, values: np.ndarray) -> np.ndarray:
        """Sums of a rank's values over ranks, in one reduction. Collective."""
        if self.comm.size == 1:
            return values
        total = np.empty_like(values)
        self.comm.Allreduce(values, total)
        return total


def kernel_spec(name: str, arrays: Arrays) -> KernelSpec:
    """KernelSpec of a kernel on vectors. The prefix of its name tells the source file."""
    group, prefix = SHAPES[arrays.device.is_gpu][0], name.partition("_")[0]
    file = f"krylov_{'vectors' if prefix == 'krylov' else prefix}.cl"
    macros = {"GROUP": group, "SUM_BYTES": sum_type(arrays).itemsize}
    return KernelSpec(name, ("krylov_sum.clh", file), macros, precision=arrays.precision, local_size=group)


def sum_type(arrays: Arrays) -> np.dtype:
    """Type of sums over vectors."""
    return np.dtype(np.float64 if arrays.device.has_fp64 else np.float32)


class Rows:
    """Rows of sums [row, group, 4] on the device, zero at first."""

    def __init__(self, vectors: Vectors, rows: int):
        self.vectors, self.width = vectors, 4 * vectors.groups
        kind = sum_type(vectors.arrays)
        self.buffer = vectors.arrays.zeros(rows * self.width, kind)
        self._host = vectors.arrays.pinned(rows * self.width, kind)
        self._ones = np.ones(vectors.groups)  # a product with them takes a fifth of the time of numpy's sum
        self._event = None
        self._range = (0, 0)

    def clear(self) -> None:
        """All sums are zero."""
        self.vectors.arrays.fill(self.buffer)

    def read(self, first: int, count: int) -> None:
        """Begin to copy `count` rows to the host."""
        start, arrays = first * self.width, self.vectors.arrays
        self._range = (start, start + count * self.width)
        self._event = arrays.download(
            self.buffer, self._host[slice(*self._range)], "Krylov sums", wait=False, start=start * self._host.itemsize
        )

    def wait(self) -> np.ndarray:
        """This rank's totals [row, 4] of the rows that were read last, added up in a fixed order."""
        self._event.wait()
        return self._ones @ self._host[slice(*self._range)].reshape(-1, self.vectors.groups, 4)

    def over_ranks(self, first: int, count: int) -> np.ndarray:
        """Totals [row, 4] of rows over all ranks. Collective."""
        self.read(first, count)
        return self.vectors.over_ranks(self.wait())


class StepSums(Rows):
    """Rows [block, row] of two steps at a time, which kernels read by themselves: those of the groups on one rank,
    totals over ranks on several, by way of the host.

    given   what kernels take: how many sums a row has, and the buffer
    buffer  where kernels write the groups' sums
    waits   whether kernels that need the totals wait for the host
    """

    def __init__(self, vectors: Vectors, rows: int, num_totals: int = 1):
        super().__init__(vectors, 2 * rows)
        self._of_block, self.alone, arrays = rows, vectors.comm.size == 1, vectors.arrays
        self.waits, self._first = not self.alone, 0
        self._totals = arrays.pinned(8 * rows * num_totals).reshape(2 * rows, num_totals, 4)
        self._sent: dict = {}  # row -> its copy to the device: an event that is dropped early would wait
        self.given = (vectors.groups, self.buffer) if self.alone else (num_totals, arrays.zeros(self._totals.size))

    def begin(self) -> None:
        """A solve begins: all sums are zero."""
        self.clear()
        if not self.alone:
            self._sent.clear()
            self._totals[:] = 0
            self.vectors.arrays.upload(self.given[1], self._totals, "Krylov sums")

    def row(self, block: int, row: int) -> int:
        """Place of a row in `buffer`."""
        return block * self._of_block + row

    def share(self, block: int) -> None:
        """Kernels launched from now on have the sums of a block, as they do on one rank. Collective."""
        if not self.alone:
            self.read_block(block)
            self.wait_block()

    def read_block(self, block: int) -> None:
        """Begin to copy a block to the host."""
        self._first = self.row(block, 0)
        self.read(self._first, self._of_block)

    def wait_block(self) -> np.ndarray:
        """Totals [row, 4] of the block that was read, which kernels launched from now on have. Collective."""
        return self._sent_to_kernels(self._first, self.vectors.over_ranks(self.wait()))

    def reduced(self, block: int, row: int) -> np.ndarray:
        """A row over ranks, for kernels too. Collective."""
        place = self.row(block, row)
        return self._sent_to_kernels(place, self.over_ranks(place, 1))[0]

    def _sent_to_kernels(self, first: int, totals: np.ndarray) -> np.ndarray:
        """The same totals [row, 4]. The host does not wait for their copy to the device: their place is written again
        after sums were read that come after it in the queue."""
        if not self.alone:
            part = self._totals[first : first + len(totals)]
            part[:] = totals[:, None]
            start, arrays = first * part[0].nbytes, self.vectors.arrays
            self._sent[first] = arrays.upload(self.given[1], part, "Krylov sums", wait=False, start=start)
        return totals


class BlockSums(StepSums):
    """The sums of steps on several ranks whose kernels write each other's memory (`Vectors.has_peers`). A row has the
    totals of all ranks, and `share` exchanges a block of them."""

    def __init__(self, vectors: Vectors, rows: int):
        comm = vectors.comm
        super().__init__(vectors, rows, comm.size)
        self.waits = False
        self._halos, others = [], np.delete(np.arange(comm.size), comm.rank)
        self._total = [vectors.kernel("krylov_rank_totals") for _ in range(2)]
        for block in range(2):
            places = self.row(block, np.arange(rows))[:, None] * comm.size + others
            owners = np.broadcast_to(others, places.shape).ravel()
            where = {"components": 4, "ghost_place": places.ravel()}
            self._halos.append(Halo(comm, 2 * rows * comm.size, owners, places.ravel(), vectors.arrays, **where))

    def share(self, block: int) -> None:
        vectors, (ranks, totals) = self.vectors, self.given
        sizes = vectors.groups, self.row(block, 0), ranks, vectors.comm.rank
        self._total[block](self._of_block * vectors.group, *sizes, self.buffer, totals)
        self._halos[block].forward(totals, totals)

    def read_block(self, block: int) -> None:
        self._block = self._totals[self.row(block, 0) :][: self._of_block]
        start = block * self._block.nbytes
        self._event = self.vectors.arrays.download(self.given[1], self._block, "Krylov sums", wait=False, start=start)

    def wait_block(self) -> np.ndarray:
        self._event.wait()
        return self._block.sum(axis=1)


def step_sums(vectors: Vectors, rows: int) -> StepSums:
    """The sums of steps, which pass through the host where kernels of ranks do not write each other's memory.
    Collective."""
    return (BlockSums if vectors.has_peers else StepSums)(vectors, rows)


class Staged:
    """`apply(x, y)` on buffers by a function of two PETSc vectors, such as Mat.mult. Collective."""

    def __init__(self, vectors: Vectors, like: PETSc.Mat):
        self.vectors = vectors
        self.x, self.y = like.createVecs()

    def apply(self, function, x, y) -> None:
        """y = function(x)"""
        access, vectors = self.vectors.access, self.vectors
        with access.write(self.x) as buffer:
            vectors.copy(x, buffer)
        function(self.x, self.y)
        with access.read(self.y) as buffer:
            vectors.copy(buffer, y)

    def change(self, function, x) -> None:
        """Let a function change a vector."""
        self.apply(lambda given, out: (given.copy(out), function(out)), x, x)


class Converted:
    """Buffers in the precision of `arrays` around those of vectors, where they differ."""

    def __init__(self, vectors: Vectors, arrays):
        self.vectors, self.arrays = vectors, arrays
        self.is_needed = arrays.precision != vectors.arrays.precision

    @cached_property
    def _buffers(self) -> tuple:
        return tuple(self.arrays.empty(self.vectors.count) for _ in range(2))

    def apply(self, function, x, y) -> None:
        """function(x, y) in the precision of the arrays."""
        if not self.is_needed:
            function(x, y)
            return
        (given, found), theirs, count = self._buffers, self.vectors.arrays, self.vectors.count
        theirs.convert(x, given, count, self.arrays)
        function(given, found)
        self.arrays.convert(found, y, count, theirs)


class NullSpaceRemoval:
    """`remove(x)` projects a buffer as MatNullSpaceRemove does; constants and given vectors are on the device."""

    def __init__(self, null_space: PETSc.NullSpace, mat: PETSc.Mat, vectors: Vectors):
        self.null_space, self.vectors = null_space, vectors
        self._size = mat.getSize()[0]
        self._basis = []
        for vec in null_space.getVecs():
            buffer = vectors.arrays.empty(vectors.count)
            with vectors.access.read(vec) as values:
                vectors.copy(values, buffer)
            self._basis.append(buffer)
        self._staged = Staged(vectors, mat) if null_space.getFunction() else None

    def remove(self, x) -> None:
        """x minus its part in the null space. Collective."""
        vectors = self.vectors
        if self._staged is not None:
            self._staged.change(self.null_space.remove, x)
            return
        if self.null_space.hasConstant():
            vectors.run("shift", -float(vectors.sums(x, x)[3]) / max(1, self._size), x)
        parts = [float(vectors.sums(vector, x)[1]) for vector in self._basis]
        for part, vector in zip(parts, self._basis, strict=True):
            vectors.run("combine", -part, vector, 1.0, x)


def removal(mat: PETSc.Mat, vectors: Vectors) -> NullSpaceRemoval | None:
    """For the null space of a matrix, None if it has none. Collective."""
    null_space = mat.getNullSpace()
    return NullSpaceRemoval(null_space, mat, vectors) if null_space.handle else None
