"""The operator of continuous Galerkin on cells of several shapes: vectors and sums of all, element vectors of each."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...device import Kernel
from .operator import CGOperator

SHARED = ("time", "shift", "rate", "constants", "_constants")  # what changes with a linearization, and with data


class MixedOperator(CGOperator):
    """Kernels of a MixedGalerkin discretization bound to the buffers they work on.

    parts: a CGOperator for the cells of each shape, with the vectors of this one and a piece of its element vectors.
    """

    _dofs = None  # those of the parts are

    def __init__(self, discretization, arrays, source=None):
        super().__init__(discretization, arrays, source)
        self._element = arrays.empty(self.num_entries + self.fuses * self.halo.plan.send_points.size)
        sources = [None] * len(discretization.parts) if source is None else source.parts
        parts = zip(discretization.parts, discretization.starts, sources, strict=True)
        self._parts = tuple(self._part(*part) for part in parts)

    def _load_cells(self) -> None:
        """The parts have the cells."""

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
        return self.discretization.num_entries

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`assemble`."""
        return {"assemble": Kernel(self.discretization.assemble_spec(), self.device)}

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel compiled so far, by name and shape of the cells."""
        of_parts = [(part.discretization.mesh.cell, part.all_kernels()) for part in self.parts]
        return {f"{name}_{cell}": kernel for cell, kernels in of_parts for name, kernel in kernels.items()}

    def compile(self, matrices: bool = False, products: bool = True) -> None:
        """Compile what the parts need. Not collective."""
        for part in self.parts:
            part.compile(matrices, products)
        self.kernels  # noqa: B018

    @property
    def main_kernel(self) -> Kernel:
        return self.parts[0].main_kernel

    def fill_elements(self, what: str, part: int | None = None, **where) -> None:
        for each in self.parts:
            each.fill_elements(what, part, **where)

    @cached_property
    def error_kernel(self) -> tuple:
        return tuple(part.error_kernel for part in self.parts)

    def integral_kernel(self, objective) -> tuple:
        """Kernels of an Objective on the parts, for `integrals` and `boundary_integrals`. Not collective."""
        return tuple(part.integral_kernel(objective) for part in self.parts)

    def integrals(self, kernel: tuple, u, t: float) -> np.ndarray:
        of_parts = zip(self.parts, kernel, strict=True)
        return np.concatenate([part.integrals(own, u, t) for part, own in of_parts], axis=1)

    def over_sides(self, kernel: tuple, cells: np.ndarray, local: np.ndarray, u, t: float) -> np.ndarray:
        found = []
        for part, own in zip(self.parts, kernel, strict=True):
            mine = part.discretization.mesh.cells
            here = (cells >= mine.start) & (cells < mine.stop)
            found.append(part.over_sides(own, cells[here] - mine.start, local[here], u, t))
        return np.concatenate(found, axis=1)

    def matrices(self) -> np.ndarray:
        return np.concatenate([part.matrices() for part in self.parts])
