"""First use of a kernel of continuous Galerkin on a device: compare it with numpy on a few cells."""

from __future__ import annotations

import numpy as np

from ...discretizations.cg.oracle import Oracle
from ..vectors import TailedVector
from ..verdict import SAMPLES, judge, random_values, vector_of, waiting


def check_cg(operator) -> None:
    """Check the kernels of a CGOperator that have not been checked on this device yet."""
    checks = {"cg_residual": _check_residual, "cg_action": _check_action}
    if operator.discretization.num_facets:
        checks |= {
            "cg_facet_residual": _check_facet_residual,
            "cg_facet_action": _check_facet_action,
            "cg_facet_matrix": _check_facet_matrix,
        }
    if operator.has_matrices:
        checks |= {"cg_matrix": _check_matrix, "cg_diagonal": _check_diagonal}
    if operator.patches is not None:
        _check_patches(operator)
    names = waiting(operator, checks)
    sample = _Sample(operator) if names else None
    for name in names:
        judge(operator.all_kernels()[name], *checks[name](operator, sample), operator.arrays.precision)


class _Sample:
    """Random states on the device and on the host, for a few cells."""

    def __init__(self, operator):
        self.operator = operator
        disc = operator.discretization
        self.oracle = Oracle(disc)
        count = disc.dofmap.num_owned + disc.dofmap.num_tail
        self.host = {name: random_values(7 + k, count) for k, name in enumerate(("u", "u_t", "du"))}
        self.t, self.shift = 0.25, 1.5
        self.cells = np.unique(np.linspace(0, disc.mesh.num_cells - 1, SAMPLES).astype(int))
        self.facets = np.unique(np.linspace(0, max(disc.num_facets - 1, 0), SAMPLES).astype(int))
        self.numbers = disc.dofmap.compact[disc.dofmap.cell_dofs]

    def coefficients(self, name: str, cell: int) -> np.ndarray:
        return self.host[name][self.numbers[cell]]

    def aux(self, cell: int) -> np.ndarray:
        return self.operator.aux_rows[:, cell]

    def vector(self, name: str) -> TailedVector:
        return vector_of(self.operator, self.host[name])

    @property
    def where(self) -> dict:
        """The states, as kernels are launched at them."""
        vectors = {key: self.vector(name) for key, name in (("state", "u"), ("rate", "u_t"), ("du", "du"))}
        return {**vectors, "t": self.t}


def _run(operator, s, name: str) -> np.ndarray:
    """What a kernel writes at the sample's state: element vectors [cell, dof], else entries [entry, item]."""
    disc = operator.discretization
    rows = disc.num_dofs**2 if name.endswith("matrix") else disc.num_dofs
    stride = disc.facet_stride if "facet" in name else disc.stride
    out = operator.arrays.empty(rows * stride)
    shift, operator.shift = operator.shift, s.shift
    try:
        if "facet" in name:
            columns = disc.num_dofs if name.endswith(("matrix", "diagonal")) else 1
            operator.run_facets(name, out, first=0, columns=columns, **s.where)
        elif name.endswith(("matrix", "diagonal")):
            operator.run_columns(name, out, **s.where)
        else:
            operator.run_cells(name, out, **s.where)
    finally:
        operator.shift = shift
    found = operator.arrays.to_host(out, (rows, stride), name="kernel check").astype(float)
    return found if "facet" in name or name.endswith("matrix") else disc.of_cells(found)


def _check_residual(operator, s):
    got = _run(operator, s, "cg_residual")[s.cells]
    rows = [
        s.oracle.residual(c, s.coefficients("u", c), s.aux(c), operator.constants, s.t, s.coefficients("u_t", c))
        for c in s.cells
    ]
    return got, np.array(rows)


def _actions(operator, s) -> np.ndarray:
    """The oracle's Jacobian on the sample's direction [cell, dof]."""
    rows = []
    for c in s.cells:
        u, u_t, du = s.coefficients("u", c), s.coefficients("u_t", c), s.coefficients("du", c)
        rows.append(s.oracle.action(c, u, du, s.aux(c), operator.constants, s.t, s.shift, u_t))
    return np.array(rows)


def _check_action(operator, s):
    return _run(operator, s, "cg_action")[s.cells], _actions(operator, s)


def _check_facet_residual(operator, s):
    got = _run(operator, s, "cg_facet_residual")[:, s.facets].T
    rows = []
    for f in s.facets:
        c, local, condition = operator.discretization.natural_facets[:, f]
        u, u_t = s.coefficients("u", c), s.coefficients("u_t", c)
        rows.append(s.oracle.facet_residual(c, local, condition, u, s.aux(c), operator.constants, s.t, u_t))
    return got, np.array(rows)


def _facet_actions(operator, s) -> np.ndarray:
    """The oracle's boundary Jacobian on the sample's direction [facet, dof]."""
    rows = []
    for f in s.facets:
        c, local, condition = operator.discretization.natural_facets[:, f]
        u, u_t, du = s.coefficients("u", c), s.coefficients("u_t", c), s.coefficients("du", c)
        constants = operator.constants
        rows.append(s.oracle.facet_action(c, local, condition, u, du, s.aux(c), constants, s.t, s.shift, u_t))
    return np.array(rows)


def _check_facet_action(operator, s):
    return _run(operator, s, "cg_facet_action")[:, s.facets].T, _facet_actions(operator, s)


def _products(operator, s, name: str, items, cells) -> np.ndarray:
    """Element matrices of items applied to the sample's direction in their cells [item, dof]."""
    n = operator.discretization.num_dofs
    matrices = _run(operator, s, name).reshape(n, n, -1)
    return np.array([matrices[:, :, k] @ s.coefficients("du", c) for k, c in zip(items, cells, strict=True)])


def _check_matrix(operator, s):
    return _products(operator, s, "cg_matrix", s.cells, s.cells), _actions(operator, s)


def _check_diagonal(operator, s):
    n = operator.discretization.num_dofs
    matrices = _run(operator, s, "cg_matrix").reshape(n, n, -1)
    expected = np.array([np.diag(matrices[:, :, c]) for c in s.cells])
    return _run(operator, s, "cg_diagonal")[s.cells], expected


def _check_facet_matrix(operator, s):
    cells = operator.discretization.natural_facets[0, s.facets]
    return _products(operator, s, "cg_facet_matrix", s.facets, cells), _facet_actions(operator, s)


def _check_patches(operator) -> None:
    """Compare the sums of patches with those of element vectors, whose kernels are compared with numpy."""
    names = waiting(operator, ("cg_patch_residual", "cg_patch_action"))
    sample = _Sample(operator) if names else None
    for what in (name.removeprefix("cg_patch_") for name in names):
        got, expected = (
            _local_sums(operator, run, what, sample.where) for run in (operator.patches.sum, operator.sum_elements)
        )
        judge(operator.patches.kernels[f"cg_patch_{what}"], got, expected, operator.arrays.precision)


def _local_sums(operator, run, what: str, where) -> np.ndarray:
    """This rank's sums of owned and ghost values, before the ranks exchange them."""
    count, ghosts = operator.dofmap.num_owned, operator.dofmap.num_ghosts
    out = operator.arrays.zeros(max(1, count))
    run(what, out, **where)
    parts = [(out, count), (operator.ghost_sums, ghosts)]
    return np.concatenate([operator.arrays.to_host(b, n, name="kernel check") for b, n in parts])
