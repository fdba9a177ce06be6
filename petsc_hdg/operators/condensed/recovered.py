"""Results of a condensed scheme, all of which begin with the recovery of the cells from the trace."""

from __future__ import annotations

from ...device import Kernel
from ..base import DeviceOperator
from .recovery import Recovery


class Recovered(DeviceOperator):
    """A condensed operator as it is asked for results; x is a buffer of owned trace values.

    recovery: Recovery, which computes them.
    """

    recovery: Recovery

    @property
    def norms(self) -> tuple[str, ...]:
        """Norms whose squares are the rows of `errors`."""
        return self.recovery.norms

    def cell_fields(self, x, t: float):
        """The fields in this rank's cells, and what is recovered from them. Collective."""
        return self.recovery.fields(x, t)

    def solution_fields(self, x, t: float):
        """The fields themselves in this rank's cells. Collective."""
        return self.recovery.solution_fields(x, t)

    def trace_fields(self, x, t: float):
        """Cells, local facets and fields of the trace on each facet once. Collective. Raises OptionError."""
        return self.recovery.trace_fields(x, t) if self.discretization.has_jumps else super().trace_fields(x, t)

    def flux(self, label: str, x, t: float, side: str | None = None):
        """Numerical flux through the facets of a named boundary [component], as a region sees it. Collective."""
        return self.recovery.flux(label, x, t, side)

    def errors(self, x, t: float):
        """Squared errors [norm, component] over this rank's cells. Collective."""
        return self.recovery.errors(x, t)

    def integral_kernel(self, objective) -> Kernel:
        """Kernel of an Objective, for `integrals`. Not collective."""
        return self.recovery.integral_kernel(objective)

    def integrals(self, kernel: Kernel, x, t: float):
        """Integrals [component, cell] of a pointwise function over this rank's cells. Collective."""
        return self.recovery.integrals(kernel, x, t)

    def boundary_integrals(self, kernel: Kernel, label: str, x, t: float, side: str | None = None):
        """Integrals [component, facet] over this rank's facets of a named boundary. Collective."""
        return self.recovery.boundary_integrals(kernel, label, x, t, side)
