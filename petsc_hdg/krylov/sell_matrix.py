"""Assembled PETSc matrices on the device, in slices of rows: products joined with the updates that follow them."""

from __future__ import annotations

import weakref
from functools import cached_property

import numpy as np
from petsc4py import PETSc

from ..codegen import KernelSpec
from ..device import Kernel
from ..device.halo import Halo
from ..operators.block_rows import BlockRows, Transpose
from ..operators.overlap import FIRST, LEAST
from ..petsc import c_library

SLICE = 32  # rows whose entries are interleaved
FEW_ROWS = 1 << 17  # below, several work-items share a row, or the device has too little to do
ENTRIES = 4  # of a work-item then
MOST_TEAM = 8
WINDOW = 256  # rows that may change places
MOST_PADDED = 1.2  # of the entries, in slices of rows that stand one after the other
_MADE: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
_CACHE = "petsc_hdg_cache"  # attribute of a matrix: what was made of it


class SellMatrix:
    """Rows of this rank of an AIJ or BAIJ matrix; columns of other ranks come by a halo. Collective to make.

    arrays: device and precision of vectors and entries.
    """

    fuses = True  # `step` computes a product and the update that follows it

    def __init__(self, mat, arrays):
        comm = mat.getComm().tompi4py()
        self.num_rows, self.num_owned = mat.getLocalSize()
        starts, columns, values = rows_of(mat)
        columns, ghosts = self._local_columns(mat, columns)
        few, self.num_ghosts = arrays.device.is_gpu and self.num_rows < LEAST, len(ghosts[0])
        self.halo = Halo(comm, self.num_owned, *ghosts, arrays, alone=few) if comm.size > 1 else None
        self._at_once = few if self.halo is None else self.halo.alone
        self._load(arrays, starts, columns, values)
        self.tail = arrays.zeros(max(1, self.num_ghosts))

    def _local_columns(self, mat, columns: np.ndarray):
        """Columns counted from this rank's first, those of other ranks from num_owned on; owner and place of these."""
        if mat.comm.size == 1:
            return columns, 2 * (np.zeros(0, np.int64),)
        first, last = mat.getOwnershipRangeColumn()
        outside = (columns < first) | (columns >= last)
        if not outside.any():
            return (columns - first if first else columns), 2 * (np.zeros(0, np.int64),)
        ghosts, place = np.unique(columns[outside], return_inverse=True)
        local = columns - first
        local[outside] = self.num_owned + place
        ranges = np.asarray(mat.getOwnershipRangesColumn())
        owner = np.searchsorted(ranges, ghosts, side="right") - 1
        return local, (owner, ghosts - ranges[owner])

    def _load(self, arrays, row_starts, columns, values) -> None:
        """Slices of CSR rows, made on the device."""
        self._lay(arrays, np.diff(row_starts))
        self._slices = self._split(row_starts, columns)
        self._fill((1, 1), arrays, *(arrays.to_device(each, "matrices") for each in (row_starts, columns, values)))

    @classmethod
    def of_blocks(cls, rows, arrays) -> SellMatrix:
        """Slices for a matrix of BlockRows, which has one rank and maybe another precision; `take` fills them."""
        made, (height, width) = cls.__new__(cls), rows.shape
        made.num_rows, made.num_owned, made.num_ghosts = rows.num_rows * height, rows.num_columns * width, 0
        made._at_once, made.halo, made.tail = True, None, arrays.zeros(1)
        made._lay(arrays, np.repeat(np.diff(rows.starts) * width, height))
        made._slices = made._split(None, None)
        return made

    def take(self, rows) -> None:
        """Copy the values of BlockRows with the pattern that the slices were made for."""
        self._fill(rows.shape, rows.arrays, *rows.all)

    def _lay(self, arrays, lengths: np.ndarray) -> None:
        """Room for the entries of rows, so many [row] in each."""
        self.arrays, self._kernels = arrays, {}
        self.num_entries, self._order = int(lengths.sum()), None
        starts = slice_starts(lengths)
        if is_uneven(arrays, self.num_rows, int(starts[-1]), self.num_entries):
            self._order, starts = sorted_rows(arrays, lengths)
        self._starts, count = arrays.to_device(starts, "matrices"), max(1, int(starts[-1]))
        self._columns, self._values = arrays.empty(count, np.int32), arrays.empty(count)

    def _fill(self, shape: tuple[int, int], arrays, *given) -> None:
        """Copy rows of blocks of a shape, given as buffers of starts, columns and, in the precision of `arrays`,
        values."""
        items = -(-self.num_rows // SLICE) * SLICE
        kernel = Kernel(slice_spec(arrays, shape, self.arrays.precision), self.arrays.device)
        kernel(items, self.num_rows, *given, self._starts, self._order, self._columns, self._values)

    @property
    def bytes(self) -> int:
        """What a product reads of the matrix: entries and columns."""
        return self.num_entries * (4 + self.arrays.real.itemsize)

    # Products --------------------------------------------------------------------------------------------

    def apply(self, x, y) -> None:
        """y = A x; buffers [num_owned], [num_rows]."""
        self.step(x, y, scale=-1.0)

    def add(self, x, y) -> None:
        """y += A x"""
        self.step(x, y, scale=-1.0, keep=1.0)

    def residual(self, b, x, y) -> None:
        """y = b - A x"""
        self.step(x, y, b=b)

    def step(self, x, y, b=None, diagonal=None, keep: float = 0.0, mix: float = 0.0, scale: float = 1.0) -> None:
        """y = keep y + mix x + scale diagonal (b - A x), without b or diagonal where they are None. Collective."""
        stored = self._order, self._starts, self._columns, self._values
        factors, sizes = (float(keep), float(mix), float(scale)), (self.num_rows, self.num_owned, self.team)
        key = diagonal is not None, b is not None  # a kernel object each, most of whose arguments stay
        if key not in self._kernels:
            kinds = self.num_ghosts > 0, self._order is not None
            self._kernels[key] = Kernel(step_spec("sell_step", self.arrays, *key, *kinds), self.arrays.device)

        def run(listed, count: int, part: int | None) -> None:
            if count:
                kernel, tail = self._kernels[key].of_part(part), self.tail if self.num_ghosts else None
                given = count * SLICE * self.team, count, *sizes, listed, *stored
                kernel(*given, x, tail, b, diagonal, *factors, y)

        inner, outer = self._slices
        if self._at_once and self.halo is not None:
            self.halo.forward(x, self.tail)
        elif self.halo is not None:
            self.halo.forward_begin(x)
            run(*inner, FIRST)
            self.halo.forward_end(self.tail)
        run(*outer, None)

    def _split(self, row_starts: np.ndarray | None, columns: np.ndarray | None) -> list:
        """Slices without columns of other ranks, which are computed while these come, and the others: list, number.

        All are among the others where there are few, or no such columns at all.
        """
        count = -(-self.num_rows // SLICE)
        outer = np.ones(count, bool)
        if self.num_ghosts and not self._at_once:
            outer[:] = False
            entries = np.flatnonzero(columns >= self.num_owned)
            rows = np.searchsorted(row_starts, entries, side="right") - 1
            if self._order is not None:
                rows = np.argsort(self.arrays.to_host(self._order, count * SLICE, np.int32, "matrices"))[rows]
            outer[rows // SLICE] = True
        listed = [np.flatnonzero(~outer), np.flatnonzero(outer)]
        return [(None if len(k) in (0, count) else self.arrays.to_device(k, "matrices"), len(k)) for k in listed]

    @cached_property
    def team(self) -> int:
        """Work-items of a row."""
        if not self.arrays.device.is_gpu or self.num_rows > FEW_ROWS:
            return 1
        wanted = self.num_entries / max(1, self.num_rows) / ENTRIES
        return next(team for team in (1, 2, 4, MOST_TEAM) if team >= min(wanted, MOST_TEAM))


def slice_spec(arrays, shape: tuple[int, int] = (1, 1), precision: str = "double") -> KernelSpec:
    """Spec of what fills slices of a precision from rows of blocks of a shape, in that of `arrays`."""
    macros = {"SLICE": SLICE, "STORED": "real" if precision == arrays.precision else "float"}
    macros |= {"ROWS": shape[0], "COLUMNS": shape[1]}
    return KernelSpec("sell_slice", ("sell_slice.cl",), macros, precision=arrays.precision, local_size=SLICE)


def step_spec(name: str, arrays, diagonal=True, given=True, ghosts=False, ordered=False) -> KernelSpec:
    """Spec of `sell_step` or `sell_update`: one program for all on GPUs, for a choice of buffers on CPUs."""
    group = SLICE * (MOST_TEAM if arrays.device.is_gpu else 1)
    macros = {"SLICE": SLICE, "GROUP": group}
    if not arrays.device.is_gpu:
        known = {"TAIL": ghosts, "B": given, "D": diagonal, "ORDER": ordered}
        macros |= {f"KNOWN_{name}": int(value) for name, value in known.items()}
    return KernelSpec(name, ("sell.clh", "sell.cl"), macros, precision=arrays.precision, local_size=group)


def is_assembled(mat) -> bool:
    """True if a matrix has rows that can be mirrored."""
    return "aij" in mat.getType() and "sbaij" not in mat.getType()


def mirrored(mat, arrays) -> SellMatrix:
    """The mirror of a matrix as it is now, made once for those that ask while it lives. Collective."""
    key = mat.handle, mat.stateGet(), id(arrays.device), arrays.precision
    made = _MADE.get(key)
    if made is None:
        made = _MADE[key] = SellMatrix(mat, arrays)
        made.source = mat  # kept, or PETSc might give its place to another matrix, and this would stand for that one
    return made


def transfer(mat, arrays, transposed: bool = False) -> SellMatrix:
    """The mirror of an interpolation as it is now, or of its transpose, see `cached`. Collective."""
    make = _transposed if transposed else SellMatrix
    return cached(mat, ("mirror", id(arrays.device), arrays.precision, transposed), lambda: make(mat, arrays))


def cache_of(mat) -> dict:
    """Dictionary of data derived from a matrix, such as copies on a device. It lives as long as the matrix."""
    if mat.getAttr(_CACHE) is None:
        mat.setAttr(_CACHE, {})
    return mat.getAttr(_CACHE)


def cached(mat, key: tuple, make):
    """Return the result of make() for the present values of a matrix, and keep it in `cache_of`. When the values have
    changed, the next call makes a new one. The result must not refer to the matrix, which would then never be freed.
    """
    kept = cache_of(mat)
    if key not in kept or kept[key][0] != mat.stateGet():
        kept.pop(key, None)
        kept[key] = mat.stateGet(), make()
    return kept[key][1]


def _transposed(mat, arrays) -> SellMatrix:
    """The mirror of a matrix' transpose. Collective."""
    if mat.comm.size > 1:
        return SellMatrix(mat.transpose(PETSc.Mat()), arrays)
    starts, columns, values = rows_of(mat)
    given = arrays.to_device(columns, "matrices"), arrays.to_device(values, "matrices")
    turned = Transpose(BlockRows(arrays, (1, 1), mat.getSize()[1], starts, *given))
    turned.update()
    made = SellMatrix.of_blocks(turned.result, arrays)
    made.take(turned.result)
    return made


def transposed_product(access, arrays):
    """Return a function of (mat, x, y) that sets y = matᵀ x on the device. Calls of it are collective."""

    def multiply(mat, x, y) -> None:
        with access.read(x) as given, access.write(y) as out:
            transfer(mat, arrays, transposed=True).apply(given, out)

    return multiply


def rows_of(mat) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CSR of this rank's rows: starts, global columns, values; views of the matrix where it has such arrays."""
    if "baij" not in mat.getType():
        return c_library.rows_of_aij(mat)
    plain = mat.convert("aij", PETSc.Mat())  # a new one: the other stays as it is
    return tuple(map(np.copy, c_library.rows_of_aij(plain)))


def slice_starts(lengths: np.ndarray) -> np.ndarray:
    """First entry [slice + 1] of slices whose rows all have as many entries as the longest, from those of rows."""
    padded = np.zeros(-(-len(lengths) // SLICE) * SLICE, np.int64)
    padded[: len(lengths)] = lengths
    return np.concatenate([[0], np.cumsum(padded.reshape(-1, SLICE).max(axis=1, initial=0) * SLICE)])


def is_uneven(arrays, num_rows: int, padded: int, entries: int) -> bool:
    """True if rows of a large matrix on a GPU are to stand by their lengths: side by side they are padded too much."""
    return arrays.device.is_gpu and num_rows > FEW_ROWS and padded > MOST_PADDED * entries


def sorted_rows(arrays, lengths: np.ndarray) -> tuple:
    """Buffer of rows [slice, SLICE] by their lengths in each WINDOW, len(lengths) for none; `slice_starts` of them."""
    rows = len(lengths)
    items = -(-rows // WINDOW) * WINDOW
    order, longest = arrays.empty(items, np.int32), arrays.empty(items // SLICE, np.int32)
    macros = {"SLICE": SLICE, "WINDOW": WINDOW}
    spec = KernelSpec("sell_order", ("sell_order.cl",), macros, precision=arrays.precision, local_size=WINDOW)
    given = arrays.to_device(lengths.astype(np.int32), "matrices")
    Kernel(spec, arrays.device)(items, rows, given, order, longest)
    found = arrays.to_host(longest, -(-rows // SLICE), np.int32, "matrices")
    return order, np.concatenate([[0], np.cumsum(found.astype(np.int64) * SLICE)])
