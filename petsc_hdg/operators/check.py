"""First use of a kernel on a device: compare it with numpy on a few cells, and remember the verdict with the binary."""

from __future__ import annotations

import numpy as np

from ..device import verified
from ..discretizations.oracle import Oracle
from ..errors import DeviceError
from .vectors import TailedVector

SAMPLES = 2  # cells compared; a miscompiled kernel is wrong on most of them
TOLERANCE = {"double": 1e-10, "single": 2e-4}


def check_kernels(operator) -> None:
    """Check the kernels of `operator` that have not been checked on this device yet. Not collective.

    Raises DeviceError naming the kernel and the difference.
    """
    checks = {
        "cg_residual": _check_residual,
        "cg_action": _check_action,
        "cg_facet_residual": _check_facet_residual,
        "cg_facet_action": _check_facet_action,
    }
    if operator.discretization.num_facets:
        checks["cg_facet_matrix"] = _check_facet_matrix
    if operator.has_matrices:
        checks |= {"cg_matrix": _check_matrix, "cg_diagonal": _check_diagonal}
    if operator.patches is not None:
        _check_patches(operator)
    kernels = operator.all_kernels()
    waiting = [name for name in checks if name in kernels and verified.needs_check(kernels[name])]
    if not waiting or not operator.discretization.mesh.num_cells:
        return
    sample = _Sample(operator)
    for name in waiting:
        if "facet" in name and not operator.discretization.num_facets:
            continue
        got, expected = checks[name](operator, sample)
        _judge(kernels[name], got, expected, TOLERANCE[operator.arrays.precision])


class _Sample:
    """Random states on the device and on the host, for a few cells."""

    def __init__(self, operator):
        self.operator = operator
        disc = operator.discretization
        self.oracle = Oracle(disc)
        random = np.random.default_rng(7)
        count = disc.dofmap.num_owned + disc.dofmap.num_tail
        self.host = {name: random.uniform(0.2, 1.0, count) for name in ("u", "u_t", "du")}
        self.t, self.shift = 0.25, 1.5
        self.cells = np.unique(np.linspace(0, disc.mesh.num_cells - 1, SAMPLES).astype(int))
        self.facets = np.unique(np.linspace(0, max(disc.num_facets - 1, 0), SAMPLES).astype(int))
        self.numbers = disc.dofmap.compact[disc.dofmap.cell_dofs]

    def coefficients(self, name: str, cell: int) -> np.ndarray:
        return self.host[name][self.numbers[cell]]

    def aux(self, cell: int) -> np.ndarray:
        return self.operator.aux_rows[:, cell]

    def vector(self, name: str) -> TailedVector:
        """The state on the device, tail included, without an exchange."""
        split = self.operator.dofmap.num_owned
        vector = TailedVector(self.operator)
        vector.owned = self.operator.arrays.to_device(_filled(self.host[name][:split]), "kernel check")
        vector.tail = self.operator.arrays.to_device(_filled(self.host[name][split:]), "kernel check")
        return vector


def _filled(values: np.ndarray) -> np.ndarray:
    return values if values.size else np.zeros(1)


def _run(operator, sample, name: str) -> np.ndarray:
    """Rows of the element vector [dof, item] that a kernel writes for the sample's state."""
    disc = operator.discretization
    where = {"state": sample.vector("u"), "rate": sample.vector("u_t"), "du": sample.vector("du"), "t": sample.t}
    stride = disc.facet_stride if "facet" in name else disc.stride
    out = operator.arrays.empty(disc.num_dofs * stride)
    shift, operator.shift = operator.shift, sample.shift
    try:
        if "facet" in name:
            operator.run_facets(name, out, first=0, **where)
        else:
            operator.run_cells(name, out, **where)
    finally:
        operator.shift = shift
    return operator.arrays.to_host(out, (disc.num_dofs, stride), name="kernel check")


def _check_residual(operator, s):
    got = _run(operator, s, "cg_residual")[:, s.cells].T
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
    return _run(operator, s, "cg_action")[:, s.cells].T, _actions(operator, s)


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


def _columns(operator, s, name: str, count: int) -> np.ndarray:
    """What a kernel of columns writes for the sample's state: [count, item]."""
    disc = operator.discretization
    where = {"state": s.vector("u"), "rate": s.vector("u_t"), "t": s.t}
    stride = disc.facet_stride if "facet" in name else disc.stride
    out = operator.arrays.empty(count * stride)
    shift, operator.shift = operator.shift, s.shift
    try:
        if "facet" in name:
            operator.run_facets(name, out, first=0, columns=disc.num_dofs, **where)
        else:
            operator.run_columns(name, out, **where)
    finally:
        operator.shift = shift
    return operator.arrays.to_host(out, (count, stride), name="kernel check").astype(float)


def _products(operator, s, name: str, items, cells) -> np.ndarray:
    """Element matrices of items applied to the sample's direction in their cells [item, dof]."""
    n = operator.discretization.num_dofs
    matrices = _columns(operator, s, name, n * n).reshape(n, n, -1)
    return np.array([matrices[:, :, k] @ s.coefficients("du", c) for k, c in zip(items, cells, strict=True)])


def _check_matrix(operator, s):
    return _products(operator, s, "cg_matrix", s.cells, s.cells), _actions(operator, s)


def _check_diagonal(operator, s):
    n = operator.discretization.num_dofs
    matrices = _columns(operator, s, "cg_matrix", n * n).reshape(n, n, -1)
    expected = np.array([np.diag(matrices[:, :, c]) for c in s.cells])
    return _columns(operator, s, "cg_diagonal", n)[:, s.cells].T, expected


def _check_facet_matrix(operator, s):
    cells = operator.discretization.natural_facets[0, s.facets]
    return _products(operator, s, "cg_facet_matrix", s.facets, cells), _facet_actions(operator, s)


def _check_patches(operator) -> None:
    """Compare the sums of patches with those of element vectors, whose kernels are compared with numpy."""
    waiting = [k for k in ("residual", "action") if verified.needs_check(operator.patches.kernels[f"cg_patch_{k}"])]
    if not waiting or not operator.discretization.mesh.num_cells:
        return
    sample = _Sample(operator)
    for what in waiting:
        where = {"state": sample.vector("u"), "rate": sample.vector("u_t"), "du": sample.vector("du"), "t": sample.t}
        got, expected = (
            _local_sums(operator, run, what, where) for run in (operator.patches.sum, operator.sum_elements)
        )
        _judge(operator.patches.kernels[f"cg_patch_{what}"], got, expected, TOLERANCE[operator.arrays.precision])


def _local_sums(operator, run, what: str, where) -> np.ndarray:
    """This rank's sums of owned and ghost values, before the ranks exchange them."""
    count, ghosts = operator.dofmap.num_owned, operator.dofmap.num_ghosts
    out = operator.arrays.zeros(max(1, count))
    run(what, out, **where)
    parts = [(out, count), (operator.ghost_sums, ghosts)]
    return np.concatenate([operator.arrays.to_host(b, n, name="kernel check") for b, n in parts])


def _judge(kernel, got, expected, tolerance: float) -> None:
    """Record the verdict. States at which the physics is not finite decide nothing."""
    finite = np.isfinite(expected)
    if not finite.all():
        return
    difference = (
        float(np.abs(got - expected).max() / max(np.abs(expected).max(), 1e-300))
        if expected.any()
        else float(np.abs(got).max())
    )
    ok = bool(difference <= tolerance)
    detail = f"largest relative difference from numpy {difference:.2e}"
    verified.record(kernel, ok, detail)
    if not ok:
        raise DeviceError(
            f"kernel '{kernel.spec.name}' gives wrong results on {kernel.device.name} "
            f"(driver {kernel.device.driver}): {detail}, accepted {tolerance:.0e}; "
            "choose another -fe_device or update its driver"
        )
