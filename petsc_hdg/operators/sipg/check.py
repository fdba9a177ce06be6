"""First use of a kernel of interior penalty on a device: compare it with numpy on two cells and their neighbours."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...discretizations.sipg.oracle import PenaltyOracle, State
from ..verdict import SAMPLES, judge, random_values, vector_of, waiting


def check_sipg(operator) -> None:
    """Check the kernels of an SIPGOperator that have not been checked on this device yet. Not collective.

    Raises DeviceError naming the kernel and the difference.
    """
    checks = {
        "sipg_penalty": _check_penalty,
        "sipg_residual": lambda s: _check_pass(s, "residual", s.state),
        "sipg_action": lambda s: _check_pass(s, "action", s.direction),
        "cg_residual": lambda s: s.vectors("cg_residual", s.oracle.volume, s.state),
        "cg_action": lambda s: s.vectors("cg_action", s.oracle.volume, s.direction),
        "cg_matrix": _check_matrix,
        "sipg_facet_residual": lambda s: s.vectors("sipg_facet_residual", s.facets, s.state),
        "sipg_facet_action": lambda s: s.vectors("sipg_facet_action", s.facets, s.direction),
        "sipg_facet_block": _check_block,
        "sipg_diagonal": _check_diagonal,
        "sipg_facet_coupling": _check_coupling,
    }
    if operator.fast is not None:
        checks |= dict.fromkeys(operator.fast.kernels, _check_fast)
    disc = operator.discretization
    if operator.stored is not None and not disc.physics.dependence(disc.dim, False).auxiliary:
        checks |= {f"sipg_{operator.stored.name}": _check_stored}
    names = waiting(operator, checks)
    if not names:
        return
    with _at_sample(operator) as sample:
        for name in names:
            judge(operator.all_kernels()[name], *checks[name](sample), operator.arrays.precision)


@contextmanager
def _at_sample(operator):
    """A sample at whose state the operator is linearized meanwhile."""
    before = {name: getattr(operator, name) for name in ("state", "rate", "time", "shift")}
    try:
        yield _Sample(operator)
    finally:
        vars(operator).update(before)
        operator.restart()


class _Sample:
    """Random states on the device and on the host, and the penalties that the device finds there."""

    t, shift = 0.25, 1.5

    def __init__(self, operator):
        self.operator, self.disc = operator, operator.discretization
        disc, dofmap = self.disc, self.disc.dofmap
        values = [random_values(7 + k, dofmap.num_owned + dofmap.num_tail) for k in range(3)]
        vectors = [vector_of(operator, v) for v in values]
        self.where = dict(zip(("state", "rate", "du"), vectors, strict=True)) | {"t": self.t}
        self.cells = np.unique(np.linspace(0, disc.mesh.num_cells - 1, SAMPLES).astype(int))
        self.oracle = PenaltyOracle(disc)
        u, u_t, du = (v[disc.extended_dofs] for v in values)
        operator.state, operator.rate, operator.time, operator.shift = *vectors[:2], self.t, self.shift
        operator.penalty.update(*vectors[:2], self.t)
        aux, sigma, constants = operator.aux_rows, operator.penalties(), operator.constants
        self.state = State(u, aux, constants, sigma, self.t, self.shift, u_t)
        self.direction = replace(self.state, du=du)

    def facets(self, cell: int, state: State) -> np.ndarray:
        """The oracle's sum over the facets of a cell."""
        return sum(self.oracle.facet(cell, f, state) for f in range(self.disc.num_facets_of_cell))

    def rows(self, rule, state: State) -> np.ndarray:
        """rule(cell, state) of the sample's cells [cell, dof]."""
        return np.array([rule(c, state) for c in self.cells])

    def vectors(self, name: str, rule, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Element vectors [cell, dof] by a kernel and by a rule of the oracle."""
        got = self.run(name, self.disc.num_dofs)
        return got.T, self.rows(rule, state)

    def run(self, name: str, *shape: int) -> np.ndarray:
        """What a kernel of element vectors, blocks or couplings adds [*shape, cell] at the sample's state."""
        operator, stride = self.operator, self.disc.stride
        out = operator.arrays.zeros(int(np.prod(shape)) * stride)
        if name == "sipg_diagonal":
            operator.run_diagonal(out, **self.where)
        elif name.startswith("cg"):
            (operator.run_cells if len(shape) == 1 else operator.run_columns)(name, out, **self.where)
        elif name in ("sipg_facet_residual", "sipg_facet_action"):
            operator.run_facets_of_cells(name.removeprefix("sipg_facet_"), out, **self.where)
        else:
            operator.run_facet_columns(name, out, shape[0] if len(shape) == 3 else 1, **self.where)
        found = operator.arrays.to_host(out, (*shape, stride), name="kernel check").astype(float)
        return found[..., self.cells]

    @cached_property
    def own(self) -> list[State]:
        """Directions [cell] that vanish in the neighbours of each cell of the sample."""
        return [replace(self.state, du=_only(self.direction.du, c)) for c in self.cells]

    def products(self, blocks: np.ndarray) -> np.ndarray:
        """Blocks [test, trial, cell] times the sample's direction in their cells [cell, test]."""
        return np.einsum("ijk,kj->ki", blocks, self.direction.du[self.cells])


def _only(values: np.ndarray, cell: int) -> np.ndarray:
    """Values [cell, dof] of one cell, 0 in the others."""
    out = np.zeros_like(values)
    out[cell] = values[cell]
    return out


def _check_penalty(s: _Sample):
    expected = [[s.oracle.penalty(c, f, s.state) for f in range(s.disc.num_facets_of_cell)] for c in s.cells]
    return np.moveaxis(s.state.sigma[:, :, s.cells], 2, 0), np.swapaxes(np.array(expected), 1, 2)


def _check_matrix(s: _Sample):
    n = s.disc.num_dofs
    return s.products(s.run("cg_matrix", n, n)), s.rows(s.oracle.volume, s.direction)


def _check_block(s: _Sample):
    n = s.disc.num_dofs
    expected = [s.facets(c, direction) for c, direction in zip(s.cells, s.own, strict=True)]
    return s.products(s.run("sipg_facet_block", n, n)), np.array(expected)


def _check_diagonal(s: _Sample):
    """Some entries of each cell, beside products with unit vectors."""
    n, some = s.disc.num_dofs, np.unique(np.linspace(0, s.disc.num_dofs - 1, SAMPLES + 2).astype(int))
    expected = np.zeros((len(some), len(s.cells)))
    for k, c in np.ndindex(expected.shape):
        du = np.zeros_like(s.direction.du)
        du[s.cells[c], some[k]] = 1
        unit = replace(s.state, du=du)
        expected[k, c] = (s.oracle.volume(s.cells[c], unit) + s.facets(s.cells[c], unit))[some[k]]
    return s.run("sipg_diagonal", n)[some], expected


def _check_coupling(s: _Sample):
    n, faces = s.disc.num_dofs, s.disc.num_facets_of_cell
    blocks = s.run("sipg_facet_coupling", faces, n, n)
    got, expected = np.zeros((2, len(s.cells), faces, n))
    for k, cell in enumerate(s.cells):
        others = replace(s.state, du=s.direction.du - s.own[k].du)
        for f in range(faces):
            behind = s.disc.neighbours.neighbour[cell, f]
            if behind >= 0:
                got[k, f] = blocks[f, :, :, k] @ s.direction.du[behind]
                expected[k, f] = s.oracle.facet(cell, f, others)
    return got, expected


def _check_pass(s: _Sample, what: str, state: State):
    """The fused pass over all chunks."""
    return _passed(s, s.operator.fused, what, **s.where), s.rows(s.oracle.rows, state)


def _check_fast(s: _Sample):
    """The pass for constant coefficients."""
    s.operator.fast.update()
    return _passed(s, s.operator.fast, "action", du=s.where["du"]), s.rows(s.oracle.rows, s.direction)


def _passed(s: _Sample, passes, what: str, **where) -> np.ndarray:
    """What a pass over all chunks writes [cell, dof]."""
    operator, dofmap = s.operator, s.disc.dofmap
    out = operator.arrays.zeros(max(1, dofmap.num_owned))
    for part in range(2):
        passes.run(what, out, part, **where)
    found = operator.arrays.to_host(out, dofmap.num_owned, name="kernel check").astype(float)
    return found[dofmap.cell_dofs[s.cells]]


def _check_stored(s: _Sample):
    """The volume terms by stored matrices."""
    stored, n, stride = s.operator.stored, s.disc.num_dofs, s.disc.stride
    stored.update()
    out = s.operator.arrays.zeros(n * stride)
    stored.volume(s.where["du"], out)
    found = s.operator.arrays.to_host(out, (n, stride), name="kernel check").astype(float)
    return found[:, s.cells].T, s.rows(s.oracle.volume, s.direction)
