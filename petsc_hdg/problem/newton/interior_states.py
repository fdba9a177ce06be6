"""The interior of cells that a nonlinear condensed problem keeps from one residual to the next."""

from __future__ import annotations

import weakref

import numpy as np

from ...discretizations.canonical import cell_keys, inside_space
from ...mesh.global_order import GlobalOrder
from ...operators import read_interior, write_interior


class Interiors:
    """Where local Newton iterations begin, in the order that is the same for every partition. Making one is collective.

    order: GlobalOrder of the eliminated unknowns of this rank's cells, [cell, dof] flat.
    """

    def __init__(self, problem):
        self._problem, disc = weakref.ref(problem), problem.discretization  # which keeps this
        cells = problem.checkpoints.unknowns.cells
        keys = cell_keys(disc, cells, [inside_space(disc)])
        bound = max(1, cells.total * keys.shape[1])
        # Functions of the trace, where the element has them, stand before those that are eliminated.
        self.order = GlobalOrder.of_keys(problem.comm, keys[:, keys.shape[1] - disc.num_eliminated :].ravel(), bound)

    @staticmethod
    def are_kept(problem) -> bool:
        """Return True if results depend on where local iterations begin, in their last bits."""
        disc = problem.discretization
        return (
            problem.is_condensed and not problem.has_cell_states and not problem.physics.is_linear
            and disc.num_eliminated > 0
        )  # fmt: skip

    def collect(self) -> np.ndarray:
        """This rank's block [count] of the interiors of all cells. Collective."""
        operator = self._problem().operator
        return self.order.collect(read_interior(operator, operator.interior).T.ravel())

    def take(self, block: np.ndarray, u) -> None:
        """Let local iterations at a trace u begin at interiors from the blocks [count] of all ranks. Collective."""
        problem = self._problem()
        shape = problem.mesh.num_cells, problem.discretization.num_eliminated
        write_interior(problem.operator, self.order.deal(block).reshape(shape).T)
        with problem.access.read(u) as x:
            problem.operator.note_solved(x)
