"""The verdict on a kernel that was compared with numpy, remembered with its binary; the fastest of several."""

from __future__ import annotations

import numpy as np

from ..device import Kernel, fastest, verdicts
from ..errors import DeviceError
from .vectors import TailedVector

SAMPLES = 2  # cells compared; a miscompiled kernel is wrong on most of them
TOLERANCE = {"double": 1e-10, "single": 2e-4}


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
                judge(operator.all_kernels()[name], *checks[name](sample), operator.arrays.precision)


def sampled(count: int) -> np.ndarray:
    """Some of `count` items, the first and the last among them."""
    return np.unique(np.linspace(0, max(count - 1, 0), SAMPLES).astype(int))


def fetched(operator, buffer, *shape: int) -> np.ndarray:
    """Values of a buffer on the host [*shape]."""
    return operator.arrays.to_host(buffer, shape, name="kernel check").astype(float)


def random_values(seed: int, count: int) -> np.ndarray:
    """Values between 0.2 and 1, at which most physics is finite."""
    return np.random.default_rng(seed).uniform(0.2, 1.0, count)


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


def fastest_on_ones(operator, specs, run) -> Kernel:
    """The kernel among specs of one in several launch shapes that suits the operator's device (see device.fastest).

    run(kernel, out, state=, rate=, du=, t=) launches one of them over all cells; out: a buffer of owned values.
    """
    where = {}

    def launch(kernel):
        if not where:  # vectors are made where there is something to measure
            vector = vector_of(operator, np.ones(operator.dofmap.num_owned + operator.dofmap.num_tail))
            where.update(state=vector, rate=vector, du=vector, t=0.0)
            where["out"] = operator.arrays.zeros(max(1, operator.dofmap.num_owned))
        run(kernel, **where)

    return fastest(specs, operator.device, launch)
