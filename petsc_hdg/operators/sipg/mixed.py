"""The operator of interior penalty on cells of several shapes, prisms and pyramids."""

from __future__ import annotations

import numpy as np

from ...device import Kernel
from ..base import DeviceOperator
from ..cg.mixed import OfParts
from .operator import SIPGOperator


class MixedPenaltyOperator(OfParts, SIPGOperator):
    """Kernels of a MixedPenalty discretization bound to the buffers they work on: the parts have the terms of cells,
    and those of facets are this one's, in the first of the element vectors."""

    def __init__(self, discretization, arrays, source=None):
        super().__init__(discretization, arrays, source)
        self._make_parts(source)
        size = discretization.num_dofs * discretization.stride * arrays.real.itemsize
        self._of_facets = self._element.get_sub_region(0, size)

    @property
    def members(self) -> tuple:
        return (*self.parts, self)

    def all_kernels(self) -> dict[str, Kernel]:
        return super().all_kernels() | SIPGOperator.all_kernels(self)

    def set_auxiliary(self, name: str, *values: np.ndarray) -> None:
        """Replace an auxiliary field by values [cell, row, component] of owned cells of each part. Collective."""
        rows = max(of.shape[1] for of in values)
        wide = [np.pad(np.asarray(of, float), ((0, 0), (0, rows - of.shape[1]), (0, 0))) for of in values]
        self.load_auxiliary(name, self.discretization.neighbours.extended(np.concatenate(wide)))
        DeviceOperator.set_auxiliary(self, name, *values)
        self.restart()

    def fill_elements(self, what: str, part: int | None = None, **where) -> None:
        """Element vectors of cells, and zeros where those of facets come."""
        self.arrays.fill(self._of_facets)
        super().fill_elements(what, part, **where)

    def make_ready(self) -> None:
        """Nothing: cells of several shapes have no kernels of blocks."""

    @property
    def cell_blocks(self):
        raise AttributeError("the blocks of cells of several shapes differ in size")

    def _blocks_of_cells(self):
        """Blocks [test dof, trial dof, stride] of the terms of facets."""
        disc = self.discretization
        blocks = self._matrix_buffer("cells", disc.num_dofs**2 * disc.stride)
        self.arrays.fill(blocks)
        self.run_around(self.matrix_kernels["sipg_facet_matrix"], blocks)
        return blocks

    def matrices(self) -> np.ndarray:
        return np.concatenate([super().matrices(), SIPGOperator.matrices(self)])
