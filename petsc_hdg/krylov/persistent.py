"""Persistent kernels: consecutive launches on few rows as one launch, whose work-groups wait for each other.

A launch costs the host of a GPU some 8 µs, which is what coarse levels of multigrid take; a step inside of a launch
costs a third of it. All work-groups of such a kernel must run at the same time, so there are no more of them than the
compute units of the device have room for (Xiao and Feng 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from ..codegen import KernelSpec
from ..device import Arrays, Device, Kernel
from ..device.verdicts import needs_check, record, verdict
from ..errors import DeviceError
from .sell_matrix import FEW_ROWS, SLICE

GROUP = 256  # work-items of a work-group
MOST = 64  # steps of a launch
BUFFERS = 32  # kernels take a multiple of so many
MOST_ROWS = FEW_ROWS  # of a step: those of more rows are worth their launches
_FIELDS = ("rows", "team", "columns", "starts", "indices", "values", "x", "b", "d", "y")
_BUFFERS = _FIELDS[3:]


def merged(calls: list, device: Device) -> list:
    """Recorded calls, in which one launch replaces consecutive launches on few rows if the device runs persistent
    kernels."""
    if not device.persistent_groups:
        return calls
    if device.opened.waits_for_groups is None:
        device.opened.waits_for_groups = _is_trusted(device)
    if not device.opened.waits_for_groups:
        return calls
    found = []
    pairs = ((call, _step(call)) for call in calls)
    for precision, alike in groupby(pairs, lambda pair: pair[0].kernel.spec.precision if pair[1] else ""):
        run = list(alike)
        for part in (run[first : first + MOST] for first in range(0, len(run), MOST)):
            launches, steps = zip(*part, strict=True)
            found += [_bound(steps, precision, device)] if precision and len(part) > 1 else launches
    return found


def _bound(steps: Sequence[dict], precision: str, device: Device):
    """A function of nothing that launches the steps."""
    numbers: dict = {}  # of buffers
    fields = [[_field(name, step.get(name), numbers) for name in _FIELDS] for step in steps]
    arrays, buffers = Arrays(device, precision), list(numbers)
    most = -(-len(buffers) // BUFFERS) * BUFFERS
    factors = np.array([step["factors"] for step in steps])
    given = arrays.to_device(np.array(fields)), arrays.to_device(factors), arrays.zeros(2, np.int32)
    padded = buffers + (most - len(buffers)) * buffers[:1]
    return Kernel(steps_spec(arrays, most), device).bound(device.persistent_groups * GROUP, len(steps), *given, *padded)


def _field(name: str, value, numbers: dict) -> int:
    if value is None:
        return -1
    return numbers.setdefault(value, len(numbers)) if name in _BUFFERS else value


def steps_spec(arrays: Arrays, most: int = BUFFERS) -> KernelSpec:
    """Spec of a persistent kernel for so many buffers."""
    names = [f"buffer{k}" for k in range(most)]
    macros = {"GROUP": GROUP, "SLICE": SLICE, "MOST": MOST, "BUFFERS": most, "PTX": arrays.device.ptx}
    macros |= {"FIELDS": len(_FIELDS), **{name.upper(): place for place, name in enumerate(_FIELDS)}}
    macros["GIVEN_BUFFERS"] = ", ".join(f"__global real *{name}" for name in names)
    macros["ALL_BUFFERS"] = ", ".join(names)
    sources = "sell.clh", "dense.clh", "persistent.cl"
    return KernelSpec("persistent_steps", sources, macros, precision=arrays.precision, local_size=GROUP)


# Launches as steps: y = keep y + mix x + scale d (b - A x) -------------------------------------------------------


def _step(call) -> dict | None:
    """The step that a recorded launch is, None where it can be none."""
    read = _STEPS.get(call.kernel.spec.name) if hasattr(call, "kernel") else None
    step = read(call, *call.arguments) if read else None
    return step if step and step["rows"] <= MOST_ROWS else None


def _sparse(
    _, slices, rows, num_owned, team, listed, order, starts, columns, values, x, tail, b, d, *last
) -> dict | None:
    if tail is not None or order is not None:  # ghosts, or rows by their lengths
        return None
    stored = {"rows": rows, "starts": starts, "indices": columns, "values": values, "team": team}
    return {**stored, "x": x, "b": b, "d": d, "y": last[-1], "factors": last[:-1]}


def _dense(call, columns, values, x, y) -> dict:
    rows = call.items // call.kernel.spec.local_size
    return {"rows": rows, "team": -1, "columns": columns, "values": values, "x": x, "y": y, "factors": (0.0, 0.0, 0.0)}


def _update(rows, factors, y, values=None, x=None, b=None, d=None) -> dict:
    return {"rows": rows, "team": 0, "factors": factors, "y": y, "values": values, "x": x, "b": b, "d": d}


_STEPS = {
    "sell_step": _sparse,
    "sell_update": lambda _, rows, product, x, b, d, *last: _update(rows, last[:-1], last[-1], product, x, b, d),
    "krylov_subtract": lambda _, rows, b, y: _update(rows, (-1.0, 0.0, 1.0), y, b=b),
    "krylov_combine": lambda _, rows, mix, x, keep, y: _update(rows, (keep, mix, 0.0), y, x=x),
    "dense_product": _dense,
}


# Trust ------------------------------------------------------------------------------------------------------------


def _is_trusted(device: Device) -> bool:
    """Return True if each step reads what other work-groups wrote in the step before. The test shifts numbers across
    work-groups and compares them with numpy, once per driver; the verdict is kept with the kernel. False also where the
    kernel does not compile or needs more registers than a work-group can have."""
    precision = "double" if device.has_fp64 else "single"
    arrays, count, shift = Arrays(device, precision), device.persistent_groups * GROUP, 7 * SLICE + 1
    numbers = np.arange(count)
    x, y = arrays.to_device(numbers.astype(arrays.real)), arrays.zeros(count)
    stored = (numbers[::SLICE], (numbers + shift) % count, np.ones(count))
    starts, columns, values = map(arrays.to_device, (np.append(stored[0], count), *stored[1:]))
    matrix = {"rows": count, "team": 1, "starts": starts, "indices": columns, "values": values}
    steps = MOST * [{**matrix, "x": x, "y": y, "factors": (0.0, 0.0, -1.0)}]
    steps[1::2] = MOST // 2 * [{**matrix, "x": y, "y": x, "factors": (0.0, 0.0, -1.0)}]
    try:
        launch = _bound(steps, precision, device)
    except DeviceError:
        return False
    kernel = launch.kernel
    if needs_check(kernel) and not verdict(kernel):
        launch()
        record(kernel, bool((arrays.to_host(x, count) == np.roll(numbers, -MOST * shift)).all()))
    return verdict(kernel).get("ok") is True
