"""The derivatives of a physics in some cells, which tell what its matrix is like before there is one."""

from __future__ import annotations

import numpy as np

MOST = 32  # cells of each rank that are looked at


def blocks(problem) -> list[tuple]:
    """Nodes [node, dim] of some of this rank's cells, and the physics' g0 … g3 there at zero, without time; none while
    auxiliary fields have no values, or where one is not finite. They are kept until data that matrices read change."""
    if problem.missing_auxiliary:
        return []
    if problem.samples is None:
        with np.errstate(all="ignore"):  # a physics may be singular at zero
            found = list(_evaluated(problem))
        problem.samples = [one for one in found if all(np.isfinite(block).all() for block in one[1])]
    return problem.samples


def _evaluated(problem):
    mesh, physics = problem.mesh, problem.physics
    interpreter, dim = physics.interpreter(mesh.dim), mesh.dim
    flat = np.zeros((physics.num_components, dim))
    cells = np.unique(np.linspace(0, mesh.num_cells - 1, min(MOST, mesh.num_cells)).astype(int))
    for cell in cells:
        nodes = mesh.geometry.nodes[mesh.geometry.cell_nodes[cell]]
        rest = inputs(problem, cell, nodes.mean(axis=0))
        yield nodes, interpreter.g_blocks(flat[:, 0], flat[:, 0], flat, *rest)


def inputs(problem, cell: int, x: np.ndarray) -> tuple:
    """Arguments of `Interpreter.g_blocks` after the state, at x [dim] in a cell: a, a_x (zero), t, the shift of u_t, x,
    constants."""
    operator, count = problem.operator, problem.physics.num_auxiliary
    starts = problem.discretization.auxiliary.starts[: count + 1]  # without rates of hdg_gpu
    a = np.array([operator.aux_rows[i:j, cell].mean() for i, j in zip(starts[:-1], starts[1:], strict=True)])
    return a, np.zeros((count, len(x))), 0.0, 0.0, x, operator.constants


def median(problem, values: list[float]) -> float:
    """Median of the values of all ranks' cells, 0 of none. Collective."""
    found = np.concatenate(problem.comm.allgather(np.array(values)))
    return float(np.median(found)) if len(found) else 0.0
