"""States in time of a condensed scheme: PETSc's vector [owned trace | cell, dof], the cells' arrays on the device."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...codegen import KernelSpec
from ...device import Kernel
from ..check import judge, random_values, waiting

KERNELS = ("cells_spread", "cells_collect")


class CellStates:
    """Copies between the cells' part of a vector and arrays [row, stride] of an operator.

    interior, rates: rows [dof] of a cell's degrees of freedom in the array of the interior, in that of auxiliary data.
    """

    def __init__(self, operator):
        self.op, self.arrays, self.device = operator, operator.arrays, operator.device
        self.discretization = disc = operator.discretization
        self.count, self.num_dofs = disc.mesh.num_cells, disc.num_eliminated
        dofs = np.arange(self.num_dofs)
        function, component = dofs // disc.components, dofs % disc.components
        first = disc.auxiliary.starts[disc.physics.num_auxiliary]
        self.interior = self.arrays.to_device(dofs, "states")
        self.rates = self.arrays.to_device(first + component * disc.num_interior + function, "states")

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`cells_spread` and `cells_collect`."""
        precision = self.arrays.precision
        return {n: Kernel(KernelSpec(n, ("cells_state.cl",), precision=precision), self.device) for n in KERNELS}

    @property
    def size(self) -> int:
        """Values of this rank's cells in a vector."""
        return self.count * self.num_dofs

    def spread(self, vector, rows, array) -> None:
        """array = the cells' part of a vector, 0 for None."""
        self._launch("cells_spread", rows, vector, array)

    def collect(self, array, vector, other=None) -> None:
        """The cells' part of a vector = array of the interior, less another one."""
        self._launch("cells_collect", self.interior, array, other, vector)

    def _launch(self, name: str, *arguments) -> None:
        disc = self.discretization
        shape = (self.size, self.count, self.num_dofs, self.op.dofmap.num_owned, disc.stride)
        self.kernels[name](self.size, *shape, *arguments)

    def check(self) -> None:
        """Compare kernels with numpy at their first use on a device. Not collective. Raises DeviceError."""
        names, stride, owned = waiting(self, KERNELS), self.discretization.stride, self.op.dofmap.num_owned
        if not names or not self.size:
            return
        given, array = random_values(3, owned + self.size), self.arrays.zeros(self.num_dofs * stride)
        self.spread(self.arrays.to_device(given, "kernel check"), self.interior, array)
        found = self.arrays.to_host(array, (self.num_dofs, stride), name="kernel check")[:, : self.count]
        expected = given[owned:].reshape(self.count, self.num_dofs)
        judge(self.kernels["cells_spread"], found, expected.T, self.arrays.precision)
        vector, half = self.arrays.zeros(owned + self.size), self.arrays.zeros(self.num_dofs * stride)
        self.spread(self.arrays.to_device(given / 2, "kernel check"), self.interior, half)
        self.collect(array, vector, half)
        found = self.arrays.to_host(vector, owned + self.size, name="kernel check")[owned:]
        judge(self.kernels["cells_collect"], found, given[owned:] / 2, self.arrays.precision)

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel of its own."""
        return dict(self.kernels)
