"""Runs of launches on few rows as one launch each, whose work-groups wait for each other between its steps.

A launch costs the host of a GPU some 8 µs, which is what coarse levels of multigrid take; a step inside of a launch
costs a third of it. The work-groups of such a kernel, called persistent, must all run at the same time, so that there
are no more of them than the device has compute units (Xiao and Feng 2010).
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from ..codegen import KernelSpec
from ..device import Arrays, Device, Kernel
from ..device.verdicts import needs_check, record, verdict
from .sell_matrix import FEW_ROWS, SLICE

GROUP = 256  # work-items of a work-group
MOST = 64  # steps of a launch
BUFFERS = 32  # kernels take a multiple of so many
MOST_ROWS = FEW_ROWS  # of a step: those of more rows are worth their launches
_FIELDS = ("rows", "team", "columns", "narrow", "starts", "indices", "values", "x", "b", "d", "y", "unused")
_BUFFERS = _FIELDS[4:11]


def merged(calls: list, device: Device) -> list:
    """Recorded calls, with launches of a run on few rows replaced by one where the device runs persistent kernels."""
    if not (device.persistent_groups and _is_trusted(device)):
        return calls
    found = []
    for precision, alike in groupby(calls, _precision):
        run = list(alike)
        for part in (run[first : first + MOST] for first in range(0, len(run), MOST)):
            found += [_launch(part, precision, device)] if precision and len(part) > 1 else part
    return found


def _precision(call) -> str:
    """Precision of a recorded launch that can be a step; "" where it can not."""
    spec = call.kernel.spec if hasattr(call, "kernel") else None
    if spec is None or spec.name not in _STEPS or spec.macros.get("GHOSTS") or _rows(call) > MOST_ROWS:
        return ""
    return spec.precision


def _rows(call) -> int:
    return call.items // call.kernel.spec.local_size if call.kernel.spec.name == "dense_product" else call.arguments[0]


def _launch(calls: list, precision: str, device: Device):
    """A function of nothing that launches what recorded launches do."""
    return _bound([{"rows": _rows(call), **_STEPS[call.kernel.spec.name](call)} for call in calls], precision, device)


def _bound(steps: list[dict], precision: str, device: Device):
    buffers: list = []
    fields = np.full((len(steps), len(_FIELDS)), -1, np.int32)
    for row, step in zip(fields, steps, strict=True):
        for name, value in step.items():
            if name in _BUFFERS and value is not None:
                if value not in buffers:
                    buffers.append(value)
                value = buffers.index(value)
            if name in _FIELDS and value is not None:
                row[_FIELDS.index(name)] = value
    names = [f"buffer{k}" for k in range(-(-len(buffers) // BUFFERS) * BUFFERS)]
    macros = {"GROUP": GROUP, "SLICE": SLICE, "MOST": MOST, "BUFFERS": len(names), "PTX": device.ptx}
    macros["GIVEN_BUFFERS"] = ", ".join(f"__global real *{name}" for name in names)
    macros["ALL_BUFFERS"] = ", ".join(names)
    spec = KernelSpec("persistent_steps", ("persistent.cl",), macros, precision=precision, local_size=GROUP)
    arrays = Arrays(device, precision)
    factors = np.array([step["factors"] for step in steps])
    given = arrays.to_device(fields), arrays.to_device(factors), arrays.zeros(1, np.int32)
    padded = buffers + (len(names) - len(buffers)) * buffers[:1]
    return Kernel(spec, device).bound(device.persistent_groups * GROUP, len(steps), *given, *padded)


# Launches as steps: y = keep y + mix x + scale d (b - A x) -------------------------------------------------------


def _sparse(call) -> dict:
    _, _, _, starts, columns, values, x, _, b, d, keep, mix, scale, y = call.arguments
    macros = call.kernel.spec.macros
    narrow = macros["STORED"] == "float" and call.kernel.spec.precision == "double"
    stored = {"starts": starts, "indices": columns, "values": values, "narrow": int(narrow), "team": macros["TEAM"]}
    return {**stored, "x": x, "b": b, "d": d, "y": y, "factors": (keep, mix, scale)}


def _update(call) -> dict:
    _, _, product, _, x, b, d, keep, mix, scale, y = call.arguments
    factors = keep, mix if x is not None else 0.0, scale
    return {"team": 0, "values": product, "x": x, "b": b, "d": d, "y": y, "factors": factors}


def _subtract(call) -> dict:
    _, b, y = call.arguments
    return {"team": 0, "b": b, "y": y, "factors": (-1.0, 0.0, 1.0)}


def _combine(call) -> dict:
    _, mix, x, keep, y = call.arguments
    return {"team": 0, "x": x, "y": y, "factors": (keep, mix, 0.0)}


def _dense(call) -> dict:
    columns, values, x, y = call.arguments
    return {"team": -1, "columns": columns, "values": values, "x": x, "y": y, "factors": (0.0, 0.0, -1.0)}


_STEPS = {
    "sell_step": _sparse,
    "sell_update": _update,
    "krylov_subtract": _subtract,
    "krylov_combine": _combine,
    "dense_product": _dense,
}


# Trust ------------------------------------------------------------------------------------------------------------


def _is_trusted(device: Device) -> bool:
    """True if each step of a persistent kernel reads what other work-groups wrote in the step before: numbers that move
    from group to group arrive where numpy has them. Tried once for each driver and kept with the kernel."""
    precision = "double" if device.has_fp64 else "single"
    arrays, count, shift = Arrays(device, precision), device.persistent_groups * GROUP, 7 * SLICE + 1
    numbers = np.arange(count)
    x, y = arrays.to_device(numbers.astype(arrays.real)), arrays.zeros(count)
    stored = (numbers[:: SLICE], (numbers + shift) % count, np.ones(count))
    starts, columns, values = map(arrays.to_device, (np.append(stored[0], count), *stored[1:]))
    matrix = {"rows": count, "team": 1, "narrow": 0, "starts": starts, "indices": columns, "values": values}
    steps = MOST * [{**matrix, "x": x, "y": y, "factors": (0.0, 0.0, -1.0)}]
    steps[1::2] = MOST // 2 * [{**matrix, "x": y, "y": x, "factors": (0.0, 0.0, -1.0)}]
    launch = _bound(steps, precision, device)
    kernel = launch.kernel
    if needs_check(kernel) and not verdict(kernel):
        launch()
        record(kernel, bool((arrays.to_host(x, count) == np.roll(numbers, -MOST * shift)).all()))
    return verdict(kernel).get("ok") is True
