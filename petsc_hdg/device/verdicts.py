"""Verdicts on kernels, kept beside their binaries: has this kernel been checked on this device and driver?

A verdict names the program that it is of, and says nothing of other bytes in its place.
Ranks may get different answers (one records while another asks), so a check must hold no collective call.
"""

from __future__ import annotations

import time

from petsc_hdg.device.kernel import Kernel

_FILE = "verdicts.json"


def needs_check(kernel: Kernel) -> bool:
    """True if the kernel has not yet been found right; a wrong one is checked again each time."""
    return verdict(kernel).get("ok") is not True


def record(kernel: Kernel, ok: bool, detail: str = "") -> None:
    """Remember whether the kernel gave right results, with a word on the difference."""
    with kernel.entry.locked(timeout=10.0):
        verdicts = kernel.entry.read_json(_FILE)
        when = time.strftime("%Y-%m-%d %H:%M:%S")
        verdicts[kernel.spec.name] = {"ok": bool(ok), "detail": detail, "time": when, "program": kernel.entry.program}
        kernel.entry.write_json(_FILE, verdicts)


def verdict(kernel: Kernel) -> dict:
    """What was recorded for the kernel: {"ok", "detail", "time", "program"}, or {}."""
    found = kernel.entry.read_json(_FILE).get(kernel.spec.name)
    return found if isinstance(found, dict) and found.get("program") == kernel.entry.program else {}
