"""Warning of polytopes on both sides of an interface between materials, which cost the order of convergence."""

from __future__ import annotations

import numpy as np

from ...errors import warn_user
from ...mesh.order import samples
from ...mesh.whole_mesh import centroids
from . import cell_measures

MOST = 128  # polytopes of each rank that are looked at
MOST_CELLS = 8  # cells of each
LARGE = 2.0  # ratio of the diffusion of two of them from which on it is told


def warn(problem) -> None:
    """Warn on rank 0, once, if diffusion differs between the cells of a polytope, by values per cell or because the
    text steps with x. Of nonlinear physics it is that at zero. Collective."""
    physics, polytopes = problem.physics, problem.mesh.polytopes
    steps = problem.discretization.has_steps or any(field.space == "cell" for field in physics.auxiliary)
    if polytopes is None or not steps or "interfaces" in problem.told or problem.missing_auxiliary:
        return
    problem.told.add("interfaces")
    with np.errstate(all="ignore"):
        centres = centroids(problem.mesh)
        ratios = [_ratio(problem, cells, centres[cells]) for cells in _samples(polytopes)]
    ratios = np.concatenate(problem.comm.allgather(ratios))
    large = ratios[ratios >= LARGE]
    if len(large) and problem.comm.rank == 0:
        warn_user(
            f"the diffusion of physics '{physics.name}' differs by factors of up to {large.max():.2g} within "
            f"{len(large)} of {len(ratios)} polytopes that were looked at, which costs the order of convergence; "
            "agglomerate the cells of each material apart, by regions of the mesh or fe.agglomerate(mesh, count, "
            "groups=…)"
        )


def _samples(polytopes):
    """Yield some cells of some of this rank's polytopes."""
    start, order = polytopes.cells
    for k in samples(polytopes.count, MOST):
        cells = order[start[k] : start[k + 1]]
        yield cells[samples(len(cells), MOST_CELLS)]


def _ratio(problem, cells: np.ndarray, centres: np.ndarray) -> float:
    """Return the largest ratio of the diffusion of a component in two of some cells with their centres [cell, dim]; 1
    where it is not positive."""
    physics, dim = problem.physics, problem.mesh.dim
    flat, interpreter, found = np.zeros((physics.num_components, dim)), physics.interpreter(dim), []
    for cell, x in zip(cells, centres, strict=True):
        g3 = interpreter.g_blocks(flat[:, 0], flat[:, 0], flat, *cell_measures.sampled_inputs(problem, cell, x))[3]
        found.append(np.einsum("ccdd->c", g3))
    low, high = np.min(found, axis=0), np.max(found, axis=0)
    suits = (low > 0) & np.isfinite(high)
    return float(np.max(high[suits] / low[suits], initial=1.0))
