"""Cells of one shape share the solver of their interior: it is found once for each shape."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...device import Kernel, kernels_of
from ...discretizations.base import padded
from ...discretizations.congruence import Shapes

MOST_SHARE = 1 / 8  # shapes over cells, from which on sharing does not pay
MOST_BYTES = 8e6  # of what shapes keep, which is to stay in cache


class LocalClasses:
    """K, U and [A⁻¹; B A⁻¹] of each shape of cells of a linear physics, from the matrix [A C; B G] of one of them.

    A cell then takes its vector and a product, no elimination. The shapes' matrices come from the device and are
    eliminated on the host, by LAPACK.
    status [shape]: least over largest pivot of A, or -1 where tau is not positive.
    """

    def __init__(self, local, shapes: Shapes):
        self.local, self.op, self.disc, self.arrays = local, local.op, local.disc, local.arrays
        self.shapes = shapes
        self.shape = self.arrays.to_device(shapes.shape, "cell shapes")
        self._state: tuple | None = None  # what the solvers belong to
        self.status = np.ones(shapes.count)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`condense_element`, `condense_shared` and `condense_spread`, by name."""
        return kernels_of(self.disc.class_specs(), self.op.device)

    # Solvers of the shapes ----------------------------------------------------------------------------------

    def update(self, t: float) -> None:
        """Find the solvers for time t and the data of the operator that matrices read, if they are not there."""
        if self.are_found(t):
            return
        inside = self.disc.num_eliminated
        matrices = self._matrices(t)
        A, C, B, G = (
            matrices[:, :inside, :inside], matrices[:, :inside, inside:], matrices[:, inside:, :inside],
            matrices[:, inside:, inside:],
        )  # fmt: skip
        pivots = pivot_ratios(A)
        self.status = np.where(self.status < 0, self.status, pivots)
        A = np.where((pivots > 0)[:, None, None], A, np.eye(inside))  # of a failure, which `status` tells
        solved = np.linalg.solve(A, np.concatenate([np.broadcast_to(np.eye(inside), A.shape), C], axis=2))
        inverse, recovery = solved[:, :, :inside], -solved[:, :, inside:]
        self.solver = self._stored(np.concatenate([inverse, B @ inverse], axis=1), (0, 2, 1))
        # [column, shape, row]: tiles of matrices
        self.recovery, self.schur = (self._stored(each, (2, 0, 1)) for each in (recovery, G + B @ recovery))
        self._state = self._wanted(t)

    def are_found(self, t: float) -> bool:
        """True if the solvers are those for time t and the operator's data."""
        return self._state == self._wanted(t)

    def _wanted(self, t: float) -> tuple:
        return t if self.disc.reads_time else None, self.op.coefficients, self.op.shift

    def _stored(self, matrices: np.ndarray, order: tuple[int, int, int]):
        """Device array of matrices [shape, row, column] whose axes are in another order."""
        return self.arrays.to_device(np.ascontiguousarray(matrices.transpose(order)), "cell shapes")

    def _matrices(self, t: float) -> np.ndarray:
        """Element matrices [shape, row, column] of the shapes, from the device."""
        op, disc, arrays = self.op, self.disc, self.arrays
        cells, count = self.shapes.representative, self.shapes.count
        shape = disc.shape_of("condense_element")
        stride, size, entries = padded(count), shape.size, shape.scratch_entries

        def few(rows: np.ndarray):
            """Device array [row, stride] of the representatives' columns of [row, cell]."""
            chosen = np.zeros((len(rows), stride), dtype=rows.dtype)
            chosen[:, :count] = rows[:, cells]
            return arrays.to_device(chosen if chosen.size else np.zeros(1), "cell shapes")

        scratch = arrays.empty(entries * padded(count)) if entries else None
        matrices, status = arrays.empty(size * count * size), arrays.zeros(stride)
        self.local.launch(
            self.kernels["condense_element"], (0, count), op.essential, None, t, stride=stride, dofs=None,
            cell_nodes=few(disc.cell_nodes()), conditions=few(disc.facet_conditions()), aux=few(op.aux_rows),
            batch=count, scratch=scratch, matrices=matrices, status=status,
        )  # fmt: skip
        self.status = arrays.to_host(status, count, name="status").astype(float)
        found = arrays.to_host(matrices, (size, count, size), name="cell shapes")
        return np.ascontiguousarray(found.transpose(1, 2, 0), dtype=float)

    # Cells --------------------------------------------------------------------------------------------------

    def condense(self, trace, interior, t: float, residual, solution) -> None:
        """Residual and local solution of all cells at (trace, interior)."""
        self.update(t)
        results = {"residual": residual, "solution": solution, "shape": self.shape, "solver": self.solver}
        kernel, cells = self.kernels["condense_shared"], (0, self.disc.mesh.num_cells)
        self.local.launch(kernel, cells, trace, interior, t, **results)

    def spread(self, first: int, count: int, batch: int, schur) -> None:
        """K of cells first … first + count - 1 into `schur` [column, batch, row]."""
        items = count * self.disc.num_trace_dofs
        self.kernels["condense_spread"](items, count, first, batch, self.shapes.count, self.shape, self.schur, schur)


def most_classes(disc) -> int:
    """Shapes up to which sharing solvers pays."""
    inside, trace = disc.num_eliminated, disc.num_trace_dofs
    each = disc.real_bytes * (inside + trace) ** 2
    return int(min(MOST_SHARE * disc.mesh.num_cells, MOST_BYTES / each)) if inside else 0


def pivot_ratios(matrices: np.ndarray) -> np.ndarray:
    """Least over largest |pivot| of elimination without exchanges, of matrices [matrix, row, column]; 0: singular."""
    left = matrices.copy()
    pivots = np.empty(matrices.shape[:2])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for k in range(matrices.shape[1]):
            pivots[:, k] = np.abs(left[:, k, k])
            factors = left[:, k + 1 :, k] / left[:, k, k][:, None]
            left[:, k + 1 :, k + 1 :] -= factors[:, :, None] * left[:, None, k, k + 1 :]
        ratio = pivots.min(axis=1) / pivots.max(axis=1)
    return np.where(np.isfinite(ratio), ratio, 0.0)
