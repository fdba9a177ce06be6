"""First use of the kernels of a trace format on a device: compare them with numpy on some cells and random matrices."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np

from ...device import verdicts
from ...discretizations.base import cell_fastest, padded
from ...discretizations.congruence import Shapes
from ..check import judge
from ..vectors import TailedVector
from .congruent_facets import CongruentFacets

CELLS = 8  # compared; consecutive ones, so that most have a facet in common with another


def check_trace(trace) -> None:
    """Check the kernels that a format takes now where they have not been checked on this device yet. Not collective.

    Raises DeviceError naming the kernel and the difference.
    """
    trace = getattr(trace, "chosen", trace)  # by `auto`
    if trace is None:
        return
    names = [name for name in trace.taken if verdicts.needs_check(trace.kernels[name])]
    sample = _Sample(trace) if names and trace.num_cells else None
    if sample is None or not sample.num_free:
        return
    results = _results(sample, trace.kind)
    for name in names:
        result = results[name.removeprefix("trace_").removeprefix(f"{trace.kind}_")]
        judge(trace.kernels[name], *result, trace.arrays.precision)


def _results(s: _Sample, kind: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Products, transposed ones and diagonals of random matrices by the format `kind`: (found, expected) of each."""
    s.fill(symmetric=kind == "symmetric")
    A, x = s.assembled(), s.values
    found = {
        "product": (s.run(s.format.mult), A @ x),
        "transposed": (s.run(partial(s.format.mult, transpose=True)), A.T @ x),
        "column": (s.run(s.format.diagonal, with_x=False), A.diagonal()),
    }
    found["cut"] = found["product"]
    if kind == "congruent":  # whose product has two dictionaries
        both = zip(found["product"], found["transposed"], strict=True)
        found["product"] = tuple(np.concatenate(each) for each in both)
    if kind == "dbf":
        found["assemble"] = _expanded(s.format), A
    return found


def _expanded(dense) -> np.ndarray:
    """The matrix [row, column] that a DenseBlock holds, free unknowns only."""
    layout, m = dense.layout, dense.layout.block
    shape = (layout.num_slots, m, dense.row_stride)
    blocks = dense.arrays.to_host(dense.A, shape, name="kernel check")
    count = dense.num_free + dense.dofmap.num_constrained
    found = np.zeros((count, count))
    for slot, facet in zip(*np.nonzero(layout.neighbours >= 0), strict=True):
        block = blocks[slot, :, facet * m : facet * m + m].T
        found[np.ix_(layout.numbers[facet], layout.numbers[layout.neighbours[slot, facet]])] += block
    return found[: dense.num_free, : dense.num_free]


class _Sample:
    """Operator and discretization of the first cells of a format's mesh, a third of whose facets are ghosts."""

    def __init__(self, trace):
        disc = trace.operator.discretization
        count = min(CELLS, trace.num_cells)
        self.spaces, self.arrays, self.device = disc.spaces, trace.arrays, trace.operator.device
        self.mesh = SimpleNamespace(num_cells=count, num_inner=count, num_facet_inner=count)
        self.stride = padded(count)
        self.discretization = self
        self.dofmap = _few_cells(disc.dofmap, count, trace.layout.block if trace.layout else 1)
        self.numbers = self.dofmap.compact[self.dofmap.cell_dofs]
        self.shape = np.arange(count, dtype=np.int32)  # cells of one shape have the same matrix
        given = self, None
        if isinstance(trace, CongruentFacets):
            self.shape %= 2
            given = *given, Shapes(self.shape, self.shape[:2])
        self.format = type(trace)(*given)
        self.format.use_kernels_of(trace)
        self.values = np.random.default_rng(7).uniform(-1, 1, self.num_free)
        self.K = np.zeros(0)

    @property
    def num_free(self) -> int:
        return self.dofmap.num_owned + self.dofmap.num_ghosts

    def cell_dofs(self) -> np.ndarray:
        return cell_fastest(self.numbers, self.stride)

    def fill(self, symmetric: bool) -> None:
        """Random matrices K [cell, row, column], in two tiles."""
        count, size = self.numbers.shape
        K = np.random.default_rng(8).uniform(-1, 1, (count, size, size))
        self.K = (K + K.transpose(0, 2, 1) if symmetric else K)[self.shape]
        half = -(-count // 2)
        for first in range(0, count, half):
            tile = self.K[first : first + half]
            stored = np.ascontiguousarray(tile.transpose(2, 0, 1))
            self.format.add_tile(self.arrays.to_device(stored, "kernel check"), first, len(tile), len(tile))

    def assembled(self) -> np.ndarray:
        """The sum of the matrices [row, column], essential unknowns left out."""
        count = self.num_free + self.dofmap.num_constrained
        found = np.zeros((count, count))
        for numbers, K in zip(self.numbers, self.K, strict=True):
            found[np.ix_(numbers, numbers)] += K
        return found[: self.num_free, : self.num_free]

    def run(self, product, with_x: bool = True) -> np.ndarray:
        """Owned and ghost values that a product of the format gives for `values`."""
        owned, ghosts = self.dofmap.num_owned, self.dofmap.num_ghosts
        x = TailedVector(self)
        x.owned = self.arrays.to_device(self.values[:owned], "kernel check")
        tail = np.append(self.values[owned:], np.zeros(self.dofmap.num_constrained + 1))
        x.tail = self.arrays.to_device(tail, "kernel check")
        y = self.arrays.zeros(owned), self.arrays.zeros(max(1, ghosts))
        product(*([x] if with_x else []), *y)
        parts = [self.arrays.to_host(b, n, name="kernel check") for b, n in zip(y, (owned, ghosts), strict=True)]
        return np.concatenate(parts).astype(float)


def _few_cells(dofmap, count: int, block: int):
    """The numbering of the first cells, blocks of unknowns kept together; the last third of the blocks is ghosts."""
    dofs = dofmap.cell_dofs[:count]
    kept = np.unique(dofs // block)
    numbers = dofmap.compact.reshape(-1, block)[kept]
    free = numbers[numbers < dofmap.num_owned + dofmap.num_ghosts]
    first = np.append(np.sort(numbers.min(axis=1)), np.iinfo(np.int32).max)
    num_owned = int((free < first[-(-2 * len(kept) // 3)]).sum())
    return replace(
        dofmap,
        cell_dofs=(np.searchsorted(kept, dofs // block) * block + dofs % block).astype(np.int32),
        compact=np.searchsorted(np.sort(numbers.ravel()), numbers.ravel()).astype(np.int32),
        num_owned=num_owned,
        num_ghosts=free.size - num_owned,
        num_constrained=numbers.size - free.size,
    )
