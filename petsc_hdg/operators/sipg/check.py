"""First use of a kernel of interior penalty on a device: compare it with numpy on two cells and their neighbours."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...discretizations.base import padded
from ...discretizations.oracle import State
from ...discretizations.sipg.oracle import PenaltyOracle
from ..check import SAMPLES, CellSample, cell_checks, compare, fetched


def check_sipg(operator) -> None:
    """Check the kernels of an SIPGOperator that have not been checked on this device yet. Not collective.

    Raises DeviceError naming the kernel and the difference.
    """
    checks = cell_checks(operator.discretization.num_dofs) | {
        "sipg_penalty": _check_penalty,
        "sipg_least": _check_least,
        "sipg_residual": lambda s: _check_pass(s, "residual", s.state),
        "sipg_action": lambda s: _check_pass(s, "action", s.direction),
        "sipg_facet_residual": lambda s: s.vectors_by("sipg_facet_residual", s.facets, s.state),
        "sipg_facet_action": lambda s: s.vectors_by("sipg_facet_action", s.facets, s.direction),
        "sipg_facet_matrix": _check_block,
        "sipg_facet_coupling": _check_coupling,
    }
    if (operator.fast is not None and not operator.blocks_by_products) or not operator.multiplies:
        del checks["sipg_action"]  # which nothing takes
    if operator.fast is not None and operator.multiplies:
        operator.fast.choose()
        checks |= dict.fromkeys(operator.fast.kernels, _check_fast)
    compare(operator, checks, Sample.of)


def check_diagonal(operator) -> None:
    """Check the kernels of diagonals likewise. The operator keeps its linearization and its penalties."""
    checks = {
        "cg_diagonal": lambda s: _check_diagonal(s, "cg_diagonal", s.oracle.volume),
        "sipg_facet_diagonal": lambda s: _check_diagonal(s, "sipg_facet_diagonal", s.facets),
    }
    with linearization_kept(operator):
        compare(operator, checks, Sample.of)


@contextmanager
def linearization_kept(operator):
    """A block of checks between a linearization and its use: penalties are then as before."""
    penalty, copy = operator.penalty, operator.arrays.copy
    kept, before = operator.arrays.empty(penalty.size), (penalty.is_known, penalty.version)
    copy(penalty.buffer, kept, penalty.size)
    yield
    copy(kept, penalty.buffer, penalty.size)
    penalty.is_known, penalty.version = before


class Sample(CellSample):
    """Random states of cells and their neighbours, and the penalties that the device finds there."""

    def __init__(self, operator):
        super().__init__(operator)
        self.oracle, disc = PenaltyOracle(self.disc), self.disc
        u, u_t, du = (v[disc.extended_dofs] for v in self.values)
        operator.state, operator.rate, operator.time = *self.vectors[:2], self.t
        operator.penalty.update(*self.vectors[:2], self.t, alone=True)
        aux, sigma, constants = operator.aux_rows, operator.penalties(), operator.constants
        least = operator.penalty.least_values() if disc.sees_least else None
        self.state = State(u, aux, constants, sigma, self.t, self.shift, u_t, least=least)
        self.direction = replace(self.state, du=du)

    def facets(self, cell: int, state: State) -> np.ndarray:
        """The oracle's sum over the facets of a cell."""
        return sum(self.oracle.facet(cell, f, state) for f in range(self.disc.num_facets_of_cell))

    def run(self, name: str, *shape: int) -> np.ndarray:
        """Result [*shape, cell] of a kernel of element vectors, blocks or couplings at the sample's state."""
        if name.startswith("cg") and name != "cg_diagonal":
            return super().run(name, *shape)
        operator, stride = self.operator, self.disc.stride
        out = operator.arrays.zeros(int(np.prod(shape)) * stride)
        operator.run_around(operator.all_kernels()[name], out, **self.where)
        return fetched(operator, out, *shape, stride)[..., self.cells]

    @cached_property
    def own(self) -> list[State]:
        """Directions [cell] that vanish in the neighbours of each cell of the sample."""
        return [replace(self.state, du=_only(self.direction.du, c)) for c in self.cells]


def _only(values: np.ndarray, cell: int) -> np.ndarray:
    """Values [cell, dof] of one cell, 0 in the others."""
    out = np.zeros_like(values)
    out[cell] = values[cell]
    return out


def _check_penalty(s: Sample):
    expected = [[s.oracle.penalty(c, f, s.state) for f in range(s.disc.num_facets_of_cell)] for c in s.cells]
    return np.moveaxis(s.state.sigma[:, :, s.cells], 2, 0), np.swapaxes(np.array(expected), 1, 2)


def _check_least(s: Sample):
    return s.state.least[:, s.cells].T, np.array([s.oracle.least(cell, s.state) for cell in s.cells])


def _check_block(s: Sample):
    n = s.disc.num_dofs
    expected = [s.facets(c, direction) for c, direction in zip(s.cells, s.own, strict=True)]
    return s.products(s.run("sipg_facet_matrix", n, n)), np.array(expected)


def _check_diagonal(s: Sample, name: str, rule):
    """Some entries of each cell by a kernel, beside products with unit vectors by a rule of the oracle."""
    n, some = s.disc.num_dofs, np.unique(np.linspace(0, s.disc.num_dofs - 1, SAMPLES + 2).astype(int))
    expected = np.zeros((len(some), len(s.cells)))
    for k, c in np.ndindex(expected.shape):
        du = np.zeros_like(s.direction.du)
        du[s.cells[c], some[k]] = 1
        unit = replace(s.state, du=du)
        expected[k, c] = rule(s.cells[c], unit)[some[k]]
    return s.run(name, n)[some], expected


def _check_coupling(s: Sample):
    n, (cells, facets), kernel = s.disc.num_dofs, s.disc.sides, s.operator.all_kernels()["sipg_facet_coupling"]
    stride, (near, far) = padded(len(cells)), np.zeros((2, 0, n))
    out = s.operator.arrays.zeros(n * n * stride)
    kernel.launch(len(cells), s.operator.arguments(kernel, len(cells), out=out, **s.where))
    blocks = fetched(s.operator, out, n, n, stride)
    for k, cell in enumerate(s.cells):
        others = replace(s.state, du=s.direction.du - s.own[k].du)
        for side in np.flatnonzero(cells == cell):
            behind = s.disc.neighbours.neighbour[cell, facets[side]]
            near = np.append(near, [blocks[:, :, side] @ s.direction.du[behind]], axis=0)
            far = np.append(far, [s.oracle.facet(cell, facets[side], others)], axis=0)
    return near, far


def _check_pass(s: Sample, what: str, state: State):
    """The fused pass over all chunks."""
    return _passed(s, s.operator.fused, what, **s.where), s.rows(s.oracle.rows, state)


def _check_fast(s: Sample):
    """The pass for constant coefficients."""
    s.operator.fast.update()
    return _passed(s, s.operator.fast, "action", du=s.where["du"]), s.rows(s.oracle.rows, s.direction)


def _passed(s: Sample, passes, what: str, **where) -> np.ndarray:
    """Result of a pass over all chunks [cell, dof]."""
    operator, dofmap = s.operator, s.disc.dofmap
    out = operator.arrays.zeros(max(1, dofmap.num_owned))
    for part in range(2):
        passes.run(what, out, part, **where)
    return fetched(operator, out, dofmap.num_owned)[dofmap.cell_dofs[s.cells]]
