"""First use of a kernel on a device: compare it with numpy on a few cells, and remember the verdict with the binary."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module

import numpy as np

from ..device import verdicts
from ..errors import DeviceError, warn_user
from ..mesh.order import samples
from ..threads import random_numbers
from .vectors import TailedVector

SAMPLES = 2  # cells compared; a miscompiled kernel is wrong on most of them
TOLERANCE = {"double": 1e-10, "single": 2e-4}
MOST_LOST = 1e-2  # of a difference that is accepted where round-off is large


def waiting(operator, names) -> list[str]:
    """Those of `names` whose kernels this rank has, has cells for, and has not compared on this device yet."""
    kernels = operator.all_kernels()
    if not operator.discretization.mesh.num_cells:
        return []
    return [name for name in names if name in kernels and verdicts.needs_check(kernels[name])]


def compare(operator, checks: dict, sample_of) -> None:
    """Judge those of `checks` that wait, each a function of a sample that returns found and expected values.

    sample_of(operator): context manager of the sample.   Raises DeviceError naming the kernel and the difference.
    """
    if names := waiting(operator, checks):
        with sample_of(operator) as sample:
            for name in names:
                kernel, check = operator.all_kernels()[name], checks[name]
                settle(kernel, operator.arrays.precision, lambda check=check: _scaled(operator, *check(sample)))


def settle(kernel, precision: str, compare) -> None:
    """Judge a kernel by what a function returns: found and expected values, and their scale. One that is wrong on a CPU
    is compiled without optimizations, in which compilers for CPUs have mistakes, and judged again. Raises DeviceError.
    """

    def judge_it() -> None:
        got, expected, scale = compare()
        judge(kernel, got, expected, precision, scale)

    try:
        judge_it()
    except DeviceError as error:
        if kernel.device.is_gpu or not kernel.spec.is_optimized:
            raise
        kernel.compile_without_optimizations()
        judge_it()
        warn_user(
            f"{str(error).partition(';')[0]}; without the compiler's optimizations, which it takes now, it is right"
        )


def _scaled(operator, got: np.ndarray, expected: np.ndarray) -> tuple:
    """Found and expected values with their scale."""
    return got, expected, np.abs(expected).max(initial=0.0) * _loss(operator)


def _loss(operator) -> float:
    """How many times the accepted difference rounding of coordinates may make, which thin cells feel; at least 1."""
    geometry, cells = operator.discretization.mesh.geometry, sampled(operator.discretization.mesh.num_cells)
    nodes = geometry.nodes[geometry.cell_nodes[cells]]
    sizes = np.linalg.svd(nodes - nodes.mean(axis=1, keepdims=True), compute_uv=False)
    rounding = np.finfo(operator.arrays.real).eps * np.abs(nodes).max() / max(sizes.min(), 1e-300)
    accepted = TOLERANCE[operator.arrays.precision]
    return float(np.clip(rounding, accepted, MOST_LOST) / accepted)


def sampled(count: int) -> np.ndarray:
    """Some of `count` items, the first and the last among them."""
    return samples(max(count, 1), SAMPLES)


def fetched(operator, buffer, *shape: int) -> np.ndarray:
    """Values of a buffer on the host [*shape]."""
    return operator.arrays.to_host(buffer, shape, name="kernel check").astype(float)


def random_values(seed: int, count: int) -> np.ndarray:
    """Values between 0.2 and 1, at which most physics is finite."""
    return random_numbers(0.2, 1.0, count, seed)


def vector_of(operator, values: np.ndarray) -> TailedVector:
    """Values [compact number] on the device, tail included, without an exchange."""
    vector = TailedVector(operator)
    owned, tail = np.split(values, [operator.dofmap.num_owned])
    vector.owned = operator.arrays.to_device(_filled(owned), "kernel check")
    vector.tail = operator.arrays.to_device(_filled(tail), "kernel check")
    return vector


def _filled(values: np.ndarray) -> np.ndarray:
    return values if values.size else np.zeros(1)


def judge(kernel, got: np.ndarray, expected: np.ndarray, precision: str, scale: float | None = None) -> None:
    """Record the verdict. Empty arrays, and states at which the physics is not finite, are not judged.

    scale: size of the numbers that `expected` is a sum of; its own largest entry by default.
    Raises DeviceError naming the kernel and the difference.
    """
    finite = np.isfinite(expected)
    if not finite.size or not finite.all():
        return
    difference, tolerance = float(np.abs(got - expected).max()), TOLERANCE[precision]
    if expected.any() or scale:
        difference /= max(np.abs(expected).max() if scale is None else scale, 1e-300)
    ok = bool(difference <= tolerance)
    detail = f"largest relative difference from numpy {difference:.2e}"
    verdicts.record(kernel, ok, detail)
    if not ok:
        raise DeviceError(
            f"kernel '{kernel.spec.name}' gives wrong results on {kernel.device.name} "
            f"(driver {kernel.device.driver}): {detail}, accepted {tolerance:.0e}; "
            "choose another -fe_device or update its driver"
        )


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


def check_kernels(operator) -> None:
    """Check the kernels of `operator` that have not been checked on this device yet. Not collective.

    Raises DeviceError naming the kernel and the difference.
    """
    disc = operator.discretization
    if disc.is_condensed:
        _check("condensed", operator)
        operator.stores.share()
        if operator.format is not None:
            _check("trace", operator.format)
        operator.checked = operator.taken
    else:
        for part in operator.members:
            is_penalized = part.discretization.has_penalties
            _check("poly" if disc.is_polytopic else "sipg" if is_penalized else "cg", part)


def _check(scheme: str, operator) -> None:
    getattr(import_module(f"{__package__}.{scheme}.check"), f"check_{scheme}")(operator)
