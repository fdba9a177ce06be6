"""Trace and interior of a nonlinear condensed scheme as one state: its residual, and Newton's step by condensation."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

from ...device import Kernel, kernels_of
from ...discretizations.base import padded
from ...errors import collectively
from .check import check_condensed


class JointState:
    """The trace û, which the caller has, and the interior u of all cells beside it, here on the host.

    With the residual (r, s) of interior and trace and the matrix [A C; B G] at (u, û), a step (v, w) solves
        K w = s - B A⁻¹ r,    v = A⁻¹ (r - C w),    K = G - B A⁻¹ C,
    and leads to (u - v, û - w). No local problem is solved, so none need have a solution at the traces on the way.

    operator: CondensedOperator of a nonlinear physics.   interior [dof, cell].
    """

    def __init__(self, operator):
        self.op, self.disc, self.arrays = operator, operator.discretization, operator.arrays
        local, spec = operator.local, self.disc.condense_spec("condense_residual")
        local.kernels.update(kernels_of({"condense_residual": spec}, operator.device))
        if self.disc.options.check_kernels:
            with collectively(self.disc.mesh.comm):
                check_condensed(operator)
        self._recover = Kernel(self.disc.recover_spec(), operator.device)
        self._target = self.arrays.zeros(max(1, self.disc.num_eliminated * self.disc.stride))
        self.interior = read_interior(operator, operator.interior)

    def residual(self, x, interior: np.ndarray, out, t: float = 0.0) -> float:
        """out = the trace's part of the residual at (x, interior); gives the sum of squares of this rank's other part.

        Collective.
        """
        op = self.op
        write_interior(op, interior)
        op.local.sum(op.trace(x, t), op.interior, t)
        op._sum_residual(out)
        return float(np.sum(np.square(read_interior(op, op.local.inner))))

    @contextmanager
    def held(self):
        """In the block `linearize` of the operator condenses at `interior`."""
        write_interior(self.op, self.interior)
        self.op.holds_interior = True
        try:
            yield
        finally:
            self.op.holds_interior = False

    def condensed(self, out) -> None:
        """out = s - B A⁻¹ r of the last `linearize`. Collective."""
        self.op._sum_residual(out)

    def target(self, minus_w, t: float = 0.0) -> np.ndarray:
        """u - v [dof, cell] of the last `linearize` for the trace's part of a step, negative. Collective."""
        op, disc, local = self.op, self.disc, self.op.local
        op.direction.use(minus_w)
        matrices = self.arrays.empty(local.recovery_reals * padded(min(local.tile_cells, disc.mesh.num_cells)))

        def recover(_, first: int, count: int, batch: int) -> None:
            self._recover(
                disc.num_eliminated * count, count, first, disc.stride, op.dofmap.num_owned, op._dofs,
                op.direction.owned, op.direction.tail, batch, matrices, local.solution, self._target,
            )  # fmt: skip

        local.condense(op.state, op.interior, t, recover, matrices)
        local.release()
        return read_interior(self.op, self._target)


def read_interior(operator, buffer) -> np.ndarray:
    """Values [dof, cell] of this rank's cells in a buffer [dof, stride]."""
    disc = operator.discretization
    found = operator.arrays.to_host(buffer, (disc.num_eliminated, disc.stride), name="interior")
    return found[:, : disc.mesh.num_cells].astype(float)


def write_interior(operator, interior: np.ndarray) -> None:
    """Let local problems begin at an interior [dof, cell]."""
    disc, arrays = operator.discretization, operator.arrays
    values = np.zeros((disc.num_eliminated, disc.stride), arrays.real)
    values[:, : disc.mesh.num_cells] = interior
    operator.begin_at_interior()
    if values.size:
        arrays.upload(operator.interior, values, "interior")


def kept_interior(operator):
    """A copy of the interior in a buffer of its own, for `restore_interior` and `read_interior`."""
    arrays, count = operator.arrays, _size(operator)
    kept = arrays.empty(max(1, count))
    arrays.copy(operator.interior, kept, count)
    return kept


def restore_interior(operator, kept) -> None:
    """Let local problems begin at an interior that was kept."""
    operator.begin_at_interior()
    operator.arrays.copy(kept, operator.interior, _size(operator))


def _size(operator) -> int:
    return operator.discretization.num_eliminated * operator.discretization.stride
