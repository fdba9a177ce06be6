"""Size of convection in the cells: what continuous elements, and the levels of their preconditioners, are not made
for."""

from __future__ import annotations

import numpy as np

from ...errors import warn_user
from . import cell_samples

LARGE = 10.0  # cell Péclet number from which on convection is told


def large_peclet(problem) -> float:
    """The median cell Péclet number of a steady physics by cg_gpu where it is LARGE, else 0. Collective."""
    if problem.options.backend != "cg_gpu" or problem.physics.uses_time_derivative:
        return 0.0
    typical = _peclet(problem)
    return typical if typical >= LARGE else 0.0


def is_large_on_traces(problem) -> bool:
    """Return True if incomplete LU along the flow suits a trace better than two levels, which are there by default.
    Collective."""
    is_open = problem.pmat == "conforming" and problem.options.pmat == "auto" and problem.derivative == "convective"
    is_large = is_open and problem.is_condensed and _peclet(problem) >= LARGE
    if is_large:
        problem.told.add("traces")
    return is_large


def _peclet(problem) -> float:
    """The median cell Péclet number |b| h / (2 k κ) of a physics. Collective.

    b is the derivative of f0 by ∇u, or of f1 by u, of a component, κ the least eigenvalue of its diffusion, h the
    cell's extent along b and k the degree. Of nonlinear physics it is that of the state zero.
    """
    found = [
        max(_number(g1[c, c], g2[c, c], g3[c, c], nodes) for c in range(len(g3)))
        for nodes, (_, g1, g2, g3) in cell_samples.blocks(problem)
    ]
    return cell_samples.median(problem, found) / max(problem.options.degree, 1)


def warn(problem, peclet: float) -> None:
    """Tell the user, on rank 0 and once, of schemes for convection."""
    upwinds = problem.options.cg_stabilization == "supg"
    if peclet and not upwinds and problem.comm.rank == 0 and "convection" not in problem.told:
        warn_user(
            f"the cell Péclet number |b| h / (2 k κ) of physics '{problem.physics.name}' is about {peclet:.2g}: by "
            f"cg_gpu the solution may oscillate; -{problem.prefix}cg_stabilization supg, or "
            f"-{problem.prefix}fe_backend sipg_gpu or hdg_gpu, suit convection"
        )
    if peclet:
        problem.told.add("convection")


def _number(by_gradient: np.ndarray, of_flux: np.ndarray, diffusion: np.ndarray, nodes: np.ndarray) -> float:
    """|b| h / (2 κ) of a component in a cell with these nodes [node, dim]; zero without diffusion, as of a pressure."""
    wind = max(by_gradient, of_flux, key=np.linalg.norm)
    least = np.linalg.eigvalsh((diffusion + diffusion.T) / 2)[0]
    return float(np.ptp(nodes @ wind) / (2 * least)) if least > 0 else 0.0
