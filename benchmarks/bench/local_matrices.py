"""Rows of condensation: matrices K and U of all cells, and sums along lines beside products at all points."""

from __future__ import annotations

import gc

import numpy as np

from petsc_hdg.commands.bench import median_seconds
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.operators.condensed.operator import CondensedOperator

from .cublas import condensation_seconds
from .row import row

# Cells a second that one H100 allows: 3.0 TB/s for what is written, or its arithmetic with q eliminated first.
H100_LIMITS = {
    ("triangle", 1): 10400e6,
    ("triangle", 3): 2604e6,
    ("triangle", 5): 805e6,
    ("triangle", 8): 130e6,
    ("tetrahedron", 1): 2604e6,
    ("tetrahedron", 2): 651e6,
    ("tetrahedron", 3): 234e6,
    ("tetrahedron", 4): 70e6,
}
EMULATED = DeviceLimits(48 * 1024, 1024, True)  # where local memory stands in for tensor cores


def local_matrices_row(keep: bool):
    """Condensation of all cells with K, and U where it is kept, written to the device's memory.

    bytes_compulsory, with N eliminated and M trace unknowns of a cell: it writes reals · (M² + M + N), and N M where U
    is kept, and reads 4 (M + geometry nodes); mesh nodes · dim reals. flops: products with the gradients' tables at
    the points, and the elimination. limit_seconds: what H100_LIMITS allow.
    """

    def measure(title, op, repeat, copy) -> dict:
        disc, cells = op.discretization, op.discretization.mesh.num_cells
        seconds, nbytes = _seconds(op, keep, repeat)
        peer = condensation_seconds(disc, op.device, cells, repeat) if keep else None
        made = cell_row(title, op, seconds, nbytes, cells * disc.flops_per_cell, copy, peer)
        known = H100_LIMITS.get((disc.mesh.cell, disc.options.degree)) if "H100" in op.device.name else None
        if known and disc.has_jumps and disc.components == 1:
            made["limit_seconds"], made["fraction_of_limit"] = cells / known, cells / known / seconds
        return made

    return measure


def lines_row(title, op, repeat, copy) -> dict:
    """Condensation with K and U by sums along lines; peer "products": by products of functions at all points.

    flops: those of the products, so that rates compare. limit_seconds: bytes_compulsory at the bandwidth of a copy.
    difference: as `_difference` says.
    """
    disc, seconds = op.discretization, []
    default, found = (_matrices(CondensedOperator(_by_warps(disc, v, 1), op.arrays)) for v in (False, True))
    for lines in (False, True):
        gc.collect()  # operators and their parts hold each other, and the device's memory
        measured, nbytes = _seconds(CondensedOperator(_by_warps(disc, lines, disc.copies), op.arrays), True, repeat)
        seconds.append(measured)
    flops = disc.mesh.num_cells * disc.flops_per_cell
    made = cell_row(title, op, seconds[1], nbytes, flops, copy, {"products": seconds[0]})
    return made | {"limit_seconds": made["bytes_compulsory"] / copy, "difference": _difference(default, found)}


def has_lines(disc) -> bool:
    """Whether tensor cores condense the cells by sums along lines, where they are told to."""
    may = disc.options.precision == "double" and disc.mesh.cell == "hexahedron"
    return may and _by_warps(disc, True, 1).warp_shape is not None


def _by_warps(disc, lines: bool, copies: int):
    """The discretization on copies of its tile, by tensor cores or what stands in for them."""
    made = type(disc)(disc.tile, copies)
    made.limits = disc.limits if disc.limits.is_gpu else EMULATED
    made.uses_warps, made.uses_threads, made.uses_lines = True, False, lines
    return made


def _seconds(op, keep: bool, repeat: int) -> tuple[float, float]:
    """Median seconds of a condensation of all cells, and its compulsory bytes."""
    disc, recovery = op.discretization, op.kept.buffer() if keep else None
    trace = op.trace(op.arrays.zeros(op.dofmap.num_owned), 0.0)
    op.arrays.fill(op.interior, 0)
    launch = lambda: op.local.condense(trace, op.interior, 0.0, _nothing, recovery)  # noqa: E731
    seconds = median_seconds(op.device, launch, repeat)
    op.local.release()
    N, M, cells = disc.num_eliminated, disc.num_trace_dofs, disc.mesh.num_cells
    reals = M * M + M + N + (N * M if recovery is not None else 0)
    nbytes = cells * (disc.real_bytes * reals + 4 * (M + disc.geometry_element.num_basis))
    return seconds, nbytes + disc.real_bytes * disc.dim * len(disc.mesh.geometry.nodes)


def _nothing(*tile) -> None:
    """What is done with the matrices of a tile."""


def _matrices(op) -> list[np.ndarray]:
    """K [column, cell, row] and U likewise, residual and interior [dof, cell] of all cells at a trace."""
    disc, arrays = op.discretization, op.arrays
    N, M, cells, K = disc.num_eliminated, disc.num_trace_dofs, disc.mesh.num_cells, []

    def take(schur, first, count, batch):
        K.append(arrays.to_host(schur, (M, batch, M))[:, :count])

    trace = op.trace(arrays.to_device(np.linspace(-1, 1, op.dofmap.num_owned)), 0.0)
    arrays.fill(op.interior, 0)
    U = op.kept.buffer()
    op.local.condense(trace, op.interior, 0.0, take, U)
    op.local.release()
    found = [np.concatenate(K, axis=1)]
    if U is not None:
        found.append(arrays.to_host(U, (M, disc.stride, N))[:, :cells])
    vectors = (op.local.residual, M), (op.local.solution, N)
    return found + [arrays.to_host(buffer, (n, disc.stride))[:, :cells] for buffer, n in vectors]


def _difference(one: list, other: list) -> float:
    """The largest difference of matrices and vectors of a tile of cells, over the largest entry of each."""
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(one, other, strict=True))


def cell_row(title, op, seconds, nbytes, flops, copy, peer=None) -> dict:
    """A row whose dofs are each cell's own trace unknowns."""
    disc = op.discretization
    return row(
        kernel=title, discretization=disc, device=op.device, cells=disc.mesh.num_cells,
        dofs=disc.mesh.num_cells * disc.num_trace_dofs, dof_kind="element", seconds=seconds, nbytes=nbytes,
        flops=flops, copy=copy, peer=peer,
    )  # fmt: skip
