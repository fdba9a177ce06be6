"""Base of the schemes whose unknowns are nodal values of the fields in cells: continuous Galerkin, interior penalty."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from ..reference import facet_quadrature
from .auxiliary import AuxiliaryRows
from .base import Discretization
from .dofmap import field_spaces
from .primal_specs import PrimalSpecs
from .transposition import DeviceLimits

OF_PRECISION = ("_plain_tables",)  # cached properties that depend on it


class PrimalDiscretization(PrimalSpecs, Discretization):
    """Spaces, element vectors and (from PrimalSpecs) kernel specs; pure data, no device. Subclasses give `dofmap`.

    limits: what kernels may take of the device they are meant for.
    spaces: of the fields.   auxiliary: rows of auxiliary data.
    """

    def __init__(self, mesh, physics, options, limits: DeviceLimits | None = None):
        super().__init__(mesh, physics, options)
        self.limits = limits or DeviceLimits()
        self.spaces = field_spaces(mesh.cell, physics.fields, options.degree)
        self.auxiliary = AuxiliaryRows(physics.auxiliary, self.spaces[0].element)

    def in_precision(self, precision: str) -> PrimalDiscretization:
        """The same discretization for kernels of another precision."""
        other = copy(self)
        other.options = replace(self.options, precision=precision)
        for name in OF_PRECISION:
            vars(other).pop(name, None)
        return other

    @property
    def num_dofs(self) -> int:
        """Degrees of freedom of a cell, all fields."""
        return sum(s.num_dofs for s in self.spaces)

    @property
    def quadrature_degree(self) -> int:
        """Degree the rule integrates exactly: what the user gives, else twice the degree of the fields."""
        chosen = self.options.quadrature_degree
        return chosen if chosen >= 0 else 2 * max(s.element.degree for s in self.spaces)

    # Arrays, cell fastest ------------------------------------------------------------------------------------------

    def entries(self, dofs, cells):
        """Places of degrees of freedom of cells in element vectors: [cell, dof] if `cell_by_cell`, else
        [dof, stride]."""
        return cells * self.num_dofs + dofs if self.cell_by_cell else dofs * self.stride + cells

    def of_cells(self, vectors: np.ndarray) -> np.ndarray:
        """Element vectors [cell, dof] from the entries of a buffer."""
        dofs, cells = np.arange(self.num_dofs), np.arange(self.mesh.num_cells)
        return vectors.ravel()[self.entries(dofs, cells[:, None])]

    def element_numbers(self, numbers: np.ndarray | None = None) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Rows and columns of element matrices, numbers [dof, element] of cells, then of other items; -1: none. Both
        are one list where the matrices couple unknowns with themselves.

        numbers: of compact numbers [unknown], PETSc's by default.
        """
        numbers = self.dofmap.global_numbers if numbers is None else numbers
        found = np.full((self.num_dofs, self.stride), -1, dtype=numbers.dtype)
        found[:, : self.mesh.num_cells] = numbers[self.dofmap.cell_numbers].T
        return (parts := [found]), parts

    def matrix_numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """PETSc row and column of each entry of the element matrices [dof, dof, stride]; -1: dropped."""
        rows, columns = self.element_numbers()
        return (
            np.concatenate([np.repeat(part[:, None, :], self.num_dofs, axis=1).ravel() for part in rows]),
            np.concatenate([np.repeat(part[None], self.num_dofs, axis=0).ravel() for part in columns]),
        )

    @property
    def matrix_layout(self) -> tuple[int, int, int, int]:
        """Unknowns of a cell, and distances of cells, rows and columns in their matrices."""
        return self.num_dofs, 1, self.num_dofs * self.stride, self.stride

    # Costs ---------------------------------------------------------------------------------------------------------

    @property
    def cell_costs(self) -> np.ndarray:
        """As in Discretization: tables at quadrature points, inside and on facets that have terms. Curved cells cost
        what straight ones do beside them: the cells of a rank share a kernel."""
        inside, on_facet = self._point_costs
        return inside + on_facet * self.facet_sides().sum(axis=1)

    @property
    def _point_costs(self) -> tuple[float, float]:
        """Multiplications inside a cell, and for one side of one of its facets."""
        width = 2 * (1 + self.dim) * sum(space.element.num_basis for space in self.spaces)
        rule = facet_quadrature(self.mesh.cell, self.quadrature_degree)[0][0]
        return float(width * self.quadrature.num_points), float(width * rule.num_points)
