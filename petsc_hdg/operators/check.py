"""First use of a kernel on a device: compare it with numpy on a few cells, and remember the verdict with the binary."""

from __future__ import annotations

from .cg.check import check_cg
from .condensed.check import check_condensed
from .poly.check import check_poly
from .sipg.check import check_sipg
from .trace.check import check_trace


def check_kernels(operator) -> None:
    """Check the kernels of `operator` that have not been checked on this device yet. Not collective.

    Raises DeviceError naming the kernel and the difference.
    """
    disc = operator.discretization
    if disc.is_condensed:
        check_condensed(operator)
        operator.stores.share()
        for each in operator.stores.formats:
            check_trace(each)
    else:
        check = check_poly if disc.is_polytopic else check_sipg if disc.has_penalties else check_cg
        check(operator)
