"""The fastest of a few launch shapes of a kernel, measured at first use on a GPU and remembered beside the programs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence

from petsc_hdg.device.build import build_programs, program_digest
from petsc_hdg.device.cache import Entry
from petsc_hdg.device.kernel import Kernel, unrecorded
from petsc_hdg.errors import DeviceError

_FILE = "shape.json"
LEAST_SECONDS = 2e-5  # a launch that takes less tells of the launch, not of the shape
SPAN = 2e-3  # seconds of launches that make a measurement
ROUNDS = 3


def fastest(specs: Sequence, device, launch: Callable[[Kernel], None] | None) -> Kernel:
    """The kernel of `specs` whose `launch(kernel)` takes least time; on a CPU that of the first, unmeasured.

    Without launch it is the one found before, else the first.

    The specs are one kernel in several launch shapes with the same results, the best guess first; shapes that the
    device cannot run are left out. launch must give a kernel the arguments of real work, and may be called often.
    The choice is remembered for the texts of the kernels, the device and its driver, unless the work was too little
    to tell. Processes that want the same choice take turns. Not collective. Raises DeviceError if no shape can run.
    """
    if len(specs) == 1 or not device.is_gpu:
        return Kernel(specs[0], device)
    entry = Entry(_digest(specs, device))
    chosen = _remembered(entry, specs) or (specs[0] if launch is None else None)
    if chosen is None:
        with entry.locked():
            chosen = _remembered(entry, specs)
            if chosen is None:
                with unrecorded(device):
                    return _measured(specs, device, launch, entry)
    return Kernel(chosen, device)


def _digest(specs, device) -> str:
    parts = [f"{program_digest(device, s)} {s.name} {s.local_size} {s.local_bytes}" for s in specs]
    return "tuned-" + hashlib.sha256("\n".join(parts).encode()).hexdigest()[:40]


def _remembered(entry: Entry, specs):
    number = entry.read_json(_FILE).get("fastest")
    return specs[number] if isinstance(number, int) and 0 <= number < len(specs) else None


def _measured(specs, device, launch, entry: Entry) -> Kernel:
    kernels, failure = {}, None
    build_programs(device, specs)
    for number, spec in enumerate(specs):
        try:
            kernels[number] = Kernel(spec, device)
        except DeviceError as error:
            failure = failure or error
    if not kernels:
        raise failure
    if len(kernels) == 1:
        return next(iter(kernels.values()))
    seconds = _seconds(kernels, device, launch)
    best = min(seconds, key=seconds.get)
    if seconds[best] >= LEAST_SECONDS:
        sizes = {str(number): specs[number].local_size for number in seconds}
        found = {"fastest": best, "seconds": {str(k): s for k, s in seconds.items()}, "local_size": sizes}
        entry.write_json(_FILE, found | {"kernel": specs[best].name})
    return kernels[best]


def _seconds(kernels: dict, device, launch) -> dict[int, float]:
    """Least seconds of a launch of each kernel; they take turns, so that a slow moment of the device hits all alike."""
    repeats = {number: _repeats(kernel, device, launch) for number, kernel in kernels.items()}
    least = dict.fromkeys(kernels, float("inf"))
    for _ in range(ROUNDS):
        for number, kernel in kernels.items():
            least[number] = min(least[number], _span(kernel, device, launch, repeats[number]) / repeats[number])
    return least


def _repeats(kernel, device, launch) -> int:
    """Launches that take some SPAN seconds; the kernel has run before they are counted."""
    _span(kernel, device, launch, 1)
    return int(min(max(SPAN / max(_span(kernel, device, launch, 1), 1e-6), 1), 50))


def _span(kernel, device, launch, repeats: int) -> float:
    device.finish()
    start = time.perf_counter()
    for _ in range(repeats):
        launch(kernel)
    device.finish()
    return time.perf_counter() - start
