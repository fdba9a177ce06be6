"""Operators on meshes of several cell shapes: vectors and sums of all cells, element vectors of those of each shape."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...device import Kernel
from .operator import CGOperator

SHARED = ("time", "shift", "rate", "constants", "_constants")  # what changes with a linearization, and with data


class OfParts:
    """An operator of a discretization with parts, whose kernels are bound to pieces of its element vectors.

    parts: a CGOperator for the cells of each shape, with the vectors of this one.
    """

    discretization: Any
    arrays: Any
    _element: Any

    def _make_parts(self, source) -> None:
        """Make the parts. source: of this operator, or None."""
        disc: Any = self.discretization
        self._element = self.arrays.empty(self.num_entries + self.fuses * self.halo.plan.send_points.size)
        sources = [None] * len(disc.parts) if source is None else source.parts
        self._parts = tuple(map(self._part, disc.parts, disc.starts, sources))

    def _part(self, discretization, start: int, source) -> CGOperator:
        part, size = CGOperator.__new__(CGOperator), self.arrays.real.itemsize
        own = {"discretization": discretization, "dofmap": discretization.dofmap, "source": source}
        own |= {"_matrix_buffers": {}, "update_essential": self.update_essential}  # which is of all cells
        vars(part).update(vars(self) | own)
        part._element = self._element.get_sub_region(start * size, part.num_entries * size)
        part._load_cells()
        return part

    @property
    def parts(self) -> tuple[CGOperator, ...]:
        """The operators of the parts, at the linearization and the data of this one."""
        for part in self._parts:
            vars(part).update((name, vars(self)[name]) for name in SHARED)
        return self._parts

    @property
    def num_entries(self) -> int:
        """Numbers in the element vectors."""
        return self.discretization.num_entries

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel compiled so far, by name, those of parts with the shape of their cells."""
        of_parts = [(part.discretization.mesh.cell, part.all_kernels()) for part in self.parts]
        return {f"{name}_{cell}": kernel for cell, kernels in of_parts for name, kernel in kernels.items()}

    def compile(self, matrices: bool = False, products: bool = True) -> None:
        """Compile what the parts need, and kernels of all cells. Not collective."""
        for part in self.parts:
            part.compile(matrices, products)
        self.kernels, matrices and self.matrix_kernels  # noqa: B018

    @property
    def main_kernel(self) -> Kernel:
        """The kernel of the first part that tells most."""
        return self.parts[0].main_kernel

    def fill_elements(self, what: str, part: int | None = None, **where) -> None:
        """Element vectors of the parts, see CGOperator."""
        for each in self.parts:
            each.fill_elements(what, part, **where)

    def matrices(self) -> np.ndarray:
        """As in PrimalOperator."""
        return np.concatenate([part.matrices() for part in self.parts])


class MixedOperator(OfParts, CGOperator):
    """Kernels of a MixedGalerkin discretization bound to the buffers they work on."""

    _dofs = None  # those of the parts are
    matrix_kernels: dict[str, Kernel] = {}

    def __init__(self, discretization, arrays, source=None):
        super().__init__(discretization, arrays, source)
        self._make_parts(source)

    def _load_cells(self) -> None:
        """Load nothing: the parts have the data of cells."""

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`assemble`."""
        return {"assemble": Kernel(self.discretization.assemble_spec(), self.device)}
