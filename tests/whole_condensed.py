"""Trace and cells of `hdg_gpu` as one system, in numpy on one rank: condensation has the same solution."""

from __future__ import annotations

import numpy as np

from petsc_hdg.discretizations.condensed.oracle import CondensedOracle


def whole_solution(problem, trace, inside, steps: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Trace [unknown] and interior [cell, dof] at which all equations hold, by Newton's method from given ones."""
    disc, operator, oracle = problem.discretization, problem.operator, CondensedOracle(problem.discretization)
    cells, inner, free = disc.mesh.num_cells, disc.num_eliminated, disc.dofmap.num_owned
    columns = disc.dofmap.compact[disc.dofmap.cell_dofs]
    own = np.arange(cells * inner).reshape(cells, inner)
    numbers = np.concatenate([own, np.where(columns < free, cells * inner + columns, -1)], axis=1)
    values = operator.values(operator.arrays.zeros(free), 0.0)  # essential ones
    x = np.concatenate([np.ravel(inside), trace])
    for _ in range(steps):
        values[:free] = x[cells * inner :]
        vector, matrix = np.zeros(len(x) + 1), np.zeros((len(x) + 1, len(x) + 1))
        for cell, rows in enumerate(numbers):
            given = (
                np.concatenate([x[own[cell]], values[columns[cell]]]),
                operator.aux_rows[:, cell],
                operator.constants,
            )
            vector[rows] += oracle.vector(cell, *given)
            matrix[np.ix_(rows, rows)] += oracle.derivative(cell, *given)
        step = np.linalg.solve(matrix[:-1, :-1], vector[:-1])
        x -= step
        if np.abs(step).max() <= 1e-13 * np.abs(x).max():
            break
    return x[cells * inner :], x[: cells * inner].reshape(cells, inner)
