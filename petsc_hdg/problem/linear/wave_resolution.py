"""Warning of waves that the cells are too large for."""

from __future__ import annotations

import math

import numpy as np
from mpi4py.MPI import MAX

from ...errors import warn_user
from . import cell_samples

LARGE = {"hdg_gpu": 10.0}  # least pollution number of a warning; that of the other schemes is 1


def warn(problem) -> None:
    """Warn on rank 0, once, if the pollution number of a steady linear physics is large. Collective.

    That is k L (k h / 2p)^(2p), the phase error of waves of wave number k along the extent L of the mesh by cells of
    size h and degree p (Ihlenburg and Babuška 1997).
    """
    physics, options = problem.physics, problem.options
    if not physics.is_linear or physics.uses_time_derivative or "waves" in problem.told or problem.missing_auxiliary:
        return
    problem.told.add("waves")
    length = float(np.ptp(problem.mesh.corners, axis=0).max())
    samples = cell_samples.blocks(problem)
    numbers = [(_wave_number(g0, g3), np.ptp(cell, axis=0).max()) for cell, (g0, _, _, g3) in samples]
    found = [(k * size, k) for k, size in numbers]
    angle, k = problem.comm.allreduce(max(found, default=(0.0, 0.0)), MAX)
    if problem.comm.rank == 0 and _pollution(k * length, angle, options.degree) >= LARGE.get(options.backend, 1.0):
        warn_user(
            f"the waves of physics '{physics.name}' have the length {2 * math.pi / k:.2g}, that is "
            f"{2 * math.pi / angle:.2g} cells of degree {options.degree}: phase errors may be as large as the "
            f"solution; take {_remedy(problem, k * length, angle)}"
        )


def _pollution(waves: float, angle: float, degree: int) -> float:
    """Return the pollution number; `angle` is k h, `waves` k L."""
    return waves * (angle / (2 * max(degree, 0.5))) ** (2 * max(degree, 0.5))


def _remedy(problem, waves: float, angle: float) -> str:
    found = problem.discretization
    _, most = found.degrees_accepted if found.is_polytopic else found.degrees
    higher = range(problem.options.degree + 1, most + 1)
    enough = next((degree for degree in higher if _pollution(waves, angle, degree) < 0.1), None)
    return (f"-{problem.prefix}fe_degree {enough} or " if enough else "") + "smaller cells"


def _wave_number(g0: np.ndarray, g3: np.ndarray) -> float:
    """Return the largest √(-∂f0/∂u / κ) of a component, κ the least eigenvalue of its diffusion; 0 without waves."""
    found = 0.0
    for c in range(len(g0)):
        least = np.linalg.eigvalsh((g3[c, c] + g3[c, c].T) / 2)[0]
        if least > 0 and -math.inf < g0[c, c] < 0:
            found = max(found, math.sqrt(-g0[c, c] / least))
    return found
