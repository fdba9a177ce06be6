"""First use of the kernels of a trace format on a device: compare them with numpy on some cells and random matrices."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from ...device import verdicts
from ...discretizations.base import cell_fastest, padded
from ...discretizations.trace.facet_groups import facet_kinds
from ..check import judge
from ..vectors import TailedVector
from .element_matrices import CongruentFacets

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
    results = _CHECKS[trace.kind](sample)
    for name in names:
        judge(trace.kernels[name], *results[name], "single" if trace.stored.itemsize == 4 else "double")


def _check_dense(s: _Sample) -> dict:
    s.fill(symmetric=False)
    A, x = s.assembled(), s.values
    found = {"trace_dbf_assemble": (_expanded(s.format), A)}
    found[f"trace_dbf_product{'_facet' * s.format.by_facet}"] = s.run(s.format.mult), A @ x
    found["trace_dbf_transposed"] = s.run(s.format.mult_transpose), A.T @ x
    found["trace_dbf_column"] = s.run(s.format.diagonal, with_x=False), A.diagonal()
    return found


def _check_elements(s: _Sample) -> dict:
    if s.shares:
        s.share()
        s.fill(symmetric=False)
        A = s.assembled()
        both = s.run(s.format.mult), s.run(s.format.mult_transpose)
        product = np.concatenate(both), np.concatenate([A @ s.values, A.T @ s.values])
        column = s.run(s.format.diagonal, with_x=False), A.diagonal()
        return {"trace_congruent_product": product, "trace_congruent_column": column}
    found = {}
    for symmetric, name in ((True, "trace_packed"), (False, "trace_element")):
        s.fill(symmetric)
        A = s.assembled()
        found[f"{name}_product"] = s.run(s.format.mult), A @ s.values
        found[f"{name}_transposed"] = s.run(s.format.mult_transpose), A.T @ s.values
        found[f"{name}_column"] = s.run(s.format.diagonal, with_x=False), A.diagonal()
    return found


def _check_symmetric(s: _Sample) -> dict:
    s.fill(symmetric=True)
    A = s.assembled()
    product = s.run(s.format.mult), A @ s.values
    column = s.run(s.format.diagonal, with_x=False), A.diagonal()
    return {"trace_symmetric_product": product, "trace_symmetric_cut": product, "trace_symmetric_column": column}


_CHECKS = {"dbf": _check_dense, "element": _check_elements, "symmetric": _check_symmetric}


def _expanded(dense) -> np.ndarray:
    """The matrix [row, column] that a DenseBlock holds, free unknowns only."""
    layout, m = dense.layout, dense.layout.block
    shape = (layout.num_slots, m, dense.row_stride)
    blocks = dense.arrays.to_host(dense.A, shape, dense.stored, name="kernel check")
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
        self.format = type(trace)(self, single=trace.stored != trace.arrays.real)
        self.format.use_kernels_of(trace)
        self.shares = getattr(trace, "congruent", None) is not None
        self.values = np.random.default_rng(7).uniform(-1, 1, self.num_free)
        self.shape = np.arange(count)  # cells of one shape have the same matrix
        self.K = np.zeros(0)

    @property
    def num_free(self) -> int:
        return self.dofmap.num_owned + self.dofmap.num_ghosts

    def cell_dofs(self) -> np.ndarray:
        return cell_fastest(self.numbers, self.stride)

    def share(self) -> None:
        """Let every other cell have the same matrix."""
        self.shape = self.shape % 2
        self.format.congruent = CongruentFacets(self.format, facet_kinds(self.format.layout, self.shape))

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
