"""Integrals of pointwise functions of a solution, over the mesh, a region of its cells or a named boundary."""

from __future__ import annotations

import numpy as np

from ... import stages
from ...device import Kernel
from ...errors import OptionError, PhysicsError, collectively
from ...physics.objective import Objective
from ...value_checks import shown, text


def require_auxiliary(problem) -> None:
    """Raise PhysicsError if an auxiliary field has no values yet."""
    for name in problem.missing_auxiliary:
        raise PhysicsError(f"auxiliary field '{name}' has no values yet: call problem.set_auxiliary('{name}', ...)")


class Integrals:
    """Kernels of what was integrated, compiled once for each text, for one problem.

    problem: petsc_hdg.Problem.
    """

    def __init__(self, problem):
        self.problem = problem
        self._kernels: dict[tuple, Kernel] = {}

    def __call__(self, given, u, t: float, label: str | None, over: str | None, side: str | None) -> float | np.ndarray:
        """See Problem.integral."""
        problem = self.problem
        mesh, comm = problem.mesh, problem.comm
        with collectively(comm):
            if label is not None and over is not None:
                raise OptionError(
                    f"An integral over the cells of {shown(label)} and over the boundary {shown(over)} was asked for; "
                    "give label= or over=, and add what both give."
                )
            if text("The side of an integral", side) and over is None:
                raise OptionError(
                    f"An integral as the side {shown(side)} sees it was asked for, of no boundary; give that by "
                    "over=, or label= for the cells of a region."
                )
            kernel = self._kernel(given, over)
        inside = slice(None) if label is None else mesh.cell_mask(label)
        with stages.stage("output"), problem.reading(u, t) as buffer:
            if over is None:
                parts = problem.operator.integrals(kernel, buffer, t)[:, inside]
            else:
                parts = problem.operator.boundary_integrals(kernel, over, buffer, t, side)
        found = comm.allreduce(parts.sum(axis=1))
        return float(found[0]) if len(found) == 1 else found

    def _kernel(self, given, over: str | None) -> Kernel:
        """The kernel of an integrand, as Objective takes it. Raises PhysicsError."""
        problem = self.problem
        key = problem.physics.text_key(given, over)
        if key in self._kernels:
            return self._kernels[key]
        objective = Objective(problem.physics, given, problem.mesh.dim, over)
        if objective.reads_auxiliary or problem.is_condensed:
            require_auxiliary(problem)
        kernel = problem.operator.integral_kernel(objective)
        if key:
            self._kernels[key] = kernel
        return kernel
