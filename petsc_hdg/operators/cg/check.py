"""First use of a kernel of continuous Galerkin on a device: compare it with numpy on a few cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...discretizations.oracle import Oracle, State
from ..check import CellSample, cell_checks, compare, fetched, judge, sampled, waiting


def check_cg(operator) -> None:
    """Check the kernels of a CGOperator that have not been checked on this device yet."""
    disc = operator.discretization
    checks = cell_checks(disc.num_dofs) | {"cg_diagonal": _check_diagonal}
    if disc.num_facets:
        checks |= {
            "cg_facet_residual": lambda s: (s.run_facets("residual").T, s.facet_rows(s.state)),
            "cg_facet_action": lambda s: (s.run_facets("action").T, s.facet_rows(s.direction)),
            "cg_facet_matrix": lambda s: (
                s.products(s.run_facets("matrix", disc.num_dofs), s.natural[0]),
                s.facet_rows(s.direction),
            ),
        }
    if operator.patches is not None:
        _check_patches(operator)
    compare(operator, checks, _Sample.of)


class _Sample(CellSample):
    """A few cells, and a few facets with natural conditions."""

    def __init__(self, operator):
        super().__init__(operator)
        self.oracle, disc = Oracle(self.disc), self.disc
        self.facets = sampled(disc.num_facets)
        self.natural = disc.natural_facets[:, self.facets] if disc.num_facets else np.zeros((3, 0), int)
        numbers, cells = disc.dofmap.cell_dofs, {*self.cells, *self.natural[0]}
        u, u_t, du = ({c: v[disc.dofmap.compact[numbers[c]]] for c in cells} for v in self.values)
        aux, constants = operator.aux_rows, operator.constants
        self.state = State(u, aux, constants, t=self.t, shift=self.shift, u_t=u_t)
        self.direction = replace(self.state, du=du)

    def facet_rows(self, state: State) -> np.ndarray:
        """The oracle's integrals over the sample's facets [facet, dof]."""
        return np.array([self.oracle.facet(*facet, state) for facet in self.natural.T])

    def run_facets(self, what: str, *columns: int) -> np.ndarray:
        """Run a facet kernel at the sample's state; return its result [dof, *columns, facet]."""
        operator, shape = self.operator, (self.disc.num_dofs, *columns, self.disc.facet_stride)
        out = operator.arrays.empty(int(np.prod(shape)))
        operator.run_facets(f"cg_facet_{what}", out, first=0, **self.where)
        return fetched(operator, out, *shape)[..., self.facets]


def _check_diagonal(s: _Sample):
    n = s.disc.num_dofs
    return s.run("cg_diagonal", n), np.einsum("iik->ik", s.run("cg_matrix", n, n))


def _check_patches(operator) -> None:
    """Compare the sums of patches with those of element vectors, whose kernels are compared with numpy."""
    if names := waiting(operator, ("cg_patch_residual", "cg_patch_action")):
        with _Sample.of(operator) as sample:
            for what in (name.removeprefix("cg_patch_") for name in names):
                runs = operator.patches.sum, operator.sum_elements
                got, expected = (_local_sums(operator, run, what, sample.where) for run in runs)
                judge(operator.patches.kernels[f"cg_patch_{what}"], got, expected, operator.arrays.precision)


def _local_sums(operator, run, what: str, where) -> np.ndarray:
    """This rank's sums of owned and ghost values, before the ranks exchange them."""
    count, ghosts = operator.dofmap.num_owned, operator.dofmap.num_ghosts
    out = operator.arrays.zeros(max(1, count))
    run(what, out, **where)
    return np.concatenate([fetched(operator, b, n) for b, n in ((out, count), (operator.ghost_sums, ghosts))])
