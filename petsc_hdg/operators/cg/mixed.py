"""The operator of continuous Galerkin on cells of several shapes."""

from __future__ import annotations

from functools import cached_property

from ...device import Kernel
from .operator import CGOperator
from .parts import OfParts


class MixedOperator(OfParts, CGOperator):
    """Kernels of a MixedGalerkin discretization bound to the buffers they work on."""

    _dofs = None  # those of the parts are
    matrix_kernels: dict[str, Kernel] = {}

    def __init__(self, discretization, arrays, source=None):
        super().__init__(discretization, arrays, source)
        self._make_parts(source)

    def _load_cells(self) -> None:
        """The parts have the cells."""

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`assemble`."""
        return {"assemble": Kernel(self.discretization.assemble_spec(), self.device)}
