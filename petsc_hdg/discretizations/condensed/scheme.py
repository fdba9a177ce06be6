"""Schemes that eliminate the interior of each cell: what hybridizable DG and statically condensed CG have in common."""

from __future__ import annotations

import numpy as np

from ...errors import PhysicsError
from ...physics import Auxiliary
from ...reference import ReferenceElement
from ..base import Discretization, cell_fastest
from ..congruence import Shapes, congruent_cells
from ..dofmap import AuxiliaryRows, FieldSpace
from ..strong_conditions import StrongConditions
from ..transposition import DeviceLimits
from .specs import CondensedSpecs

RATES = "u_t"  # behind the user's auxiliary fields: rates of the interior, where the physics has them
MOST_CONDITIONS = 31  # bits of the mask that tells which natural conditions hold on a facet


class CondensedDiscretization(CondensedSpecs, StrongConditions, Discretization):
    """A cell has scalar interior functions, which are eliminated, and trace functions, which are PETSc's unknowns.

    All fields share these functions; degree of freedom = function * components + component, interior functions first.
    Subclasses give cell_element, the trace space, `operator_table` and `facet_tables`.

    limits: what kernels may take of the device they are meant for.
    """

    is_condensed = True

    def __init__(self, mesh, physics, options, limits: DeviceLimits | None = None):
        super().__init__(mesh, physics, options)
        self._check_physics()
        self.limits = limits or DeviceLimits()
        self.cell_element = ReferenceElement(mesh.cell, options.degree)
        name = ",".join(f.name for f in physics.fields)
        self.spaces = (FieldSpace(name, self.trace_element, physics.num_components, 0, 0, 0),)
        rates = (Auxiliary(physics.num_components, "nodal", RATES),) if self.in_time else ()
        self.auxiliary = AuxiliaryRows((*physics.auxiliary, *rates), self.cell_element)

    def _check_physics(self) -> None:
        """Raise PhysicsError for a physics that a trace system cannot hold."""
        if len(self.physics.natural) > MOST_CONDITIONS:
            raise PhysicsError(
                f"physics '{self.physics.name}' has {len(self.physics.natural)} natural conditions; {self.name} takes "
                f"{MOST_CONDITIONS}: join boundaries under one name"
            )

    @property
    def in_time(self) -> bool:
        """True if cells keep their interior between steps, so that PETSc's vectors hold it behind the trace."""
        return self.physics.uses_time_derivative

    # Sizes ---------------------------------------------------------------------------------------------------------

    @property
    def components(self) -> int:
        return self.physics.num_components

    @property
    def num_trace(self) -> int:
        """Scalar trace functions of a cell."""
        return self.spaces[0].element.num_basis

    @property
    def num_functions(self) -> int:
        """Scalar functions of a cell."""
        return self.num_interior + self.num_trace

    @property
    def num_eliminated(self) -> int:
        """Interior degrees of freedom of a cell."""
        return self.num_interior * self.components

    @property
    def num_trace_dofs(self) -> int:
        """Trace degrees of freedom of a cell."""
        return self.num_trace * self.components

    @property
    def quadrature_degree(self) -> int:
        """Degree the rule integrates exactly: what the user gives, else that of products of gradients."""
        chosen = self.options.quadrature_degree
        return chosen if chosen >= 0 else max(1, 2 * self.product_degree)

    # Arrays, cell fastest ------------------------------------------------------------------------------------------

    def cell_dofs(self) -> np.ndarray:
        """Compact numbers [trace dof, stride] of each cell's trace."""
        return cell_fastest(self.dofmap.cell_numbers, self.stride)

    def facet_conditions(self) -> np.ndarray:
        """Natural conditions on each facet of each cell [facet, stride]: bit k is set where condition k holds."""
        masks = np.zeros((self.mesh.num_cells, self.num_facets_of_cell), dtype=np.int32)
        cells, facets, condition = self.natural_facets
        np.bitwise_or.at(masks, (cells, facets), np.left_shift(1, condition))
        return cell_fastest(masks, self.stride)

    def congruence(self, aux_rows: np.ndarray, most: int) -> Shapes | None:
        """Shapes of cells whose trace matrices are the same, for auxiliary data [row, stride]; None: none, or more
        than `most`.
        """
        return congruent_cells(self, aux_rows, most)

    def element_numbers(self, numbers: np.ndarray | None = None) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """As in PrimalDiscretization: numbers [trace dof, cell] of the unknowns of cells."""
        numbers = self.dofmap.global_numbers if numbers is None else numbers
        return (parts := [numbers[self.dofmap.cell_numbers].T]), parts

    @property
    def matrix_layout(self) -> tuple[int, int, int, int]:
        """Unknowns of a cell's trace, and distances of cells, rows and columns in their matrices."""
        return self.num_trace_dofs, self.num_trace_dofs, 1, self.mesh.num_cells * self.num_trace_dofs

    def matrix_numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """PETSc row and column of each entry of the cells' trace matrices [column, cell, row]; -1: dropped."""
        numbers = self.element_numbers()[0][0].T
        shape = (self.num_trace_dofs, *numbers.shape)
        rows = np.broadcast_to(numbers[None], shape).ravel()
        columns = np.broadcast_to(numbers.T[:, :, None], shape).ravel()
        return rows, columns

    @property
    def cell_costs(self) -> np.ndarray:
        """As in Discretization: the square of the number of unknowns of a cell's trace, essential ones left out."""
        dofmap = self.dofmap
        free = dofmap.compact[dofmap.cell_dofs] < dofmap.num_owned + dofmap.num_ghosts
        return (free.sum(axis=1) / self.components).astype(float) ** 2
