"""A few cells with random states, on the device and on the host, at which kernels are compared with an oracle."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

from .verdict import fetched, random_values, sampled, vector_of


class CellSample:
    """Sample of an operator with element vectors; a scheme gives `oracle`, and `state` and `direction` for it.

    values: of u, u_t and du, each [compact number];   where: the same on the device, as kernels are launched at them.
    """

    t, shift = 0.25, 1.5

    def __init__(self, operator):
        self.operator, self.disc = operator, operator.discretization
        count = self.disc.dofmap.num_owned + self.disc.dofmap.num_tail
        self.values = [random_values(7 + k, count) for k in range(3)]
        self.vectors = [vector_of(operator, v) for v in self.values]
        self.where = dict(zip(("state", "rate", "du"), self.vectors, strict=True)) | {"t": self.t}
        self.cells = sampled(self.disc.mesh.num_cells)
        operator.shift = self.shift

    @classmethod
    @contextmanager
    def of(cls, operator):
        """A sample at whose state the operator is linearized meanwhile."""
        before = {name: getattr(operator, name) for name in ("state", "rate", "time", "shift")}
        try:
            yield cls(operator)
        finally:
            vars(operator).update(before)
            operator.restart()

    def rows(self, rule, state) -> np.ndarray:
        """rule(cell, state) of the sample's cells [cell, dof]."""
        return np.array([rule(c, state) for c in self.cells])

    def vectors_by(self, name: str, rule, state) -> tuple[np.ndarray, np.ndarray]:
        """Element vectors [cell, dof] by a kernel and by a rule of the oracle."""
        return self.run(name, self.disc.num_dofs).T, self.rows(rule, state)

    def products(self, blocks: np.ndarray, cells=None) -> np.ndarray:
        """Blocks [test, trial, item] times the direction in their cells [item, test]."""
        cells = self.cells if cells is None else cells
        return np.array([blocks[..., k] @ self.direction.du[c] for k, c in enumerate(cells)])

    def run(self, name: str, *shape: int) -> np.ndarray:
        """Run an element kernel at the sample's state; return its result [*shape, cell]."""
        operator, disc = self.operator, self.disc
        out = operator.arrays.zeros(int(np.prod(shape)) * disc.stride)
        if name in ("cg_matrix", "cg_diagonal"):
            operator.run_columns(name, out, **self.where)
        else:
            operator.run_cells(name, out, **self.where)
        found = fetched(operator, out, *shape, disc.stride)
        return (found if len(shape) == 2 else disc.of_cells(found).T)[..., self.cells]


def cell_checks(n: int) -> dict:
    """Checks of element kernels of a scheme with n unknowns per cell."""
    return {
        "cg_residual": lambda s: s.vectors_by("cg_residual", s.oracle.volume, s.state),
        "cg_action": lambda s: s.vectors_by("cg_action", s.oracle.volume, s.direction),
        "cg_matrix": lambda s: (s.products(s.run("cg_matrix", n, n)), s.rows(s.oracle.volume, s.direction)),
    }
