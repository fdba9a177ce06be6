"""Integrals of pointwise functions of a solution, over the mesh or a region of its cells."""

from __future__ import annotations

import numpy as np

from .. import stages
from ..device import Kernel
from ..errors import PhysicsError, collectively
from ..physics.objective import Objective


class Integrals:
    """Kernels of what was integrated, compiled once for each text, for one problem.

    problem: petsc_hdg.Problem.
    """

    def __init__(self, problem):
        self.problem = problem
        self._kernels: dict[str, Kernel] = {}

    def __call__(self, given, u, t: float, label: str | None) -> float | np.ndarray:
        """See Problem.integral."""
        problem = self.problem
        mesh, comm = problem.mesh, problem.comm
        with collectively(comm):
            kernel = self._kernel(given)
        inside = slice(None) if label is None else mesh.cell_mask(label)
        with stages.stage("output"), problem.reading(u, t) as buffer:
            of_cells = problem.operator.integrals(kernel, buffer, t)
        found = comm.allreduce(of_cells[:, inside].sum(axis=1))
        return float(found[0]) if len(found) == 1 else found

    def _kernel(self, given) -> Kernel:
        """The kernel of an integrand, as Objective takes it. Raises PhysicsError."""
        if isinstance(given, str) and given in self._kernels:
            return self._kernels[given]
        problem = self.problem
        objective = Objective(problem.physics, given, problem.mesh.dim)
        missing = problem.missing_auxiliary
        if missing and (objective.reads_auxiliary or problem.is_condensed):
            raise PhysicsError(
                f"auxiliary field '{missing[0]}' has no values yet: call problem.set_auxiliary('{missing[0]}', ...)"
            )
        kernel = problem.operator.integral_kernel(objective)
        if isinstance(given, str):
            self._kernels[given] = kernel
        return kernel
