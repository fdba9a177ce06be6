"""First use of a kernel on a device: compare it with numpy on a few cells, and remember the verdict with the binary."""

from __future__ import annotations

from .cg.check import check_cg
from .condensed.check import check_condensed
from .condensed.operator import CondensedOperator
from .poly.check import check_poly
from .poly.operator import PolytopicOperator
from .sipg.check import check_sipg
from .sipg.operator import SIPGOperator
from .trace.check import check_trace


def check_kernels(operator) -> None:
    """Check the kernels of `operator` that have not been checked on this device yet. Not collective.

    Raises DeviceError naming the kernel and the difference.
    """
    if isinstance(operator, PolytopicOperator):
        check_poly(operator)
    elif isinstance(operator, SIPGOperator):
        check_sipg(operator)
    elif not isinstance(operator, CondensedOperator):
        check_cg(operator)
    else:
        check_condensed(operator)
        operator.stores.share()
        for each in operator.stores.formats:
            check_trace(each)
