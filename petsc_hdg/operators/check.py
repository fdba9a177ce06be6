"""First use of a kernel on a device: compare it with numpy on a few cells, and remember the verdict with the binary."""

from __future__ import annotations

from importlib import import_module


def check_kernels(operator) -> None:
    """Check the kernels of `operator` that have not been checked on this device yet. Not collective.

    Raises DeviceError naming the kernel and the difference.
    """
    disc = operator.discretization
    if disc.is_condensed:
        _check("condensed", operator)
        operator.stores.share()
        for each in operator.stores.formats:
            _check("trace", each)
    else:
        _check("poly" if disc.is_polytopic else "sipg" if disc.has_penalties else "cg", operator)


def _check(scheme: str, operator) -> None:
    getattr(import_module(f"{__package__}.{scheme}.check"), f"check_{scheme}")(operator)
