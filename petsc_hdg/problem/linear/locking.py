"""Nearly incompressible bodies: a warning of locking, of displacements of low degree, and slow iterations."""

from __future__ import annotations

import math

import numpy as np
from mpi4py.MPI import MAX

from ...errors import warn_user
from . import cell_samples

# Of each degree the least ratio of bulk to shear stiffness of a warning (Poisson's ratios 0.49 and 0.4995), and what
# may happen: second degree loses one of its three orders.
LARGE = {1: (40.0, "much too small (locking)"), 2: (1000.0, "less accurate by an order (locking)")}
# The least ratio that makes iterations slow on triangles, on quadrilaterals and in space (benchmarks/defaults.py).
SLOW = {
    "cg_gpu": (40.0, 40.0, 1000.0),
    "hdg_gpu": (40.0, 1000.0, 1000.0),
    "sipg_gpu": (40.0, 40.0, 1000.0),
    "poly_gpu": (40.0, 40.0, math.inf),
}

HARD = 1000.0  # the least ratio that makes them slow with incomplete factors, too


def largest_ratio(problem) -> float:
    """Return the largest ratio of bulk to shear stiffness of a vector field in some cells, 0 without. Collective."""
    fields = [f for f in problem.physics.fields if f.components == problem.mesh.dim > 1]
    if not fields:
        return 0.0
    ratios = [_ratio(g3[f.offset :, f.offset :]) for _, (*_, g3) in cell_samples.blocks(problem) for f in fields]
    return problem.comm.allreduce(max(ratios, default=0.0), MAX)


def warn(problem, ratio: float) -> None:
    """Warn on rank 0, once, and name degrees and schemes that do not lock."""
    degree = max(1, problem.options.degree)
    if problem.options.backend == "hdg_gpu" or degree not in LARGE or "locking" in problem.told:
        return
    least, outcome = LARGE[degree]
    if ratio < least:
        return
    problem.told.add("locking")
    if problem.comm.rank == 0:
        warn_user(
            f"physics '{problem.physics.name}' resists changes of volume about {ratio:.2g} times as much as shear: "
            f"displacements of degree {degree} by {problem.options.backend} may be {outcome}; "
            f"-{problem.prefix}fe_degree {degree + 1} or more, or -{problem.prefix}fe_backend hdg_gpu, do better"
        )


def is_slow(problem, ratio: float) -> bool:
    """Return True if iterations are slow for a ratio of bulk to shear stiffness."""
    mesh = problem.mesh
    return ratio >= SLOW[problem.options.backend][2 if mesh.dim > 2 else int(not mesh.shape.is_simplex)]


def _ratio(g3: np.ndarray) -> float:
    """Return bulk over shear stiffness of g3 [component, component, dim, dim]; 0 without shear stiffness."""
    dim = g3.shape[-1]
    volume, shear = np.eye(dim), np.zeros((dim, dim))
    shear[0, 1] = shear[1, 0] = 1.0
    bulk, slide = (np.einsum("cd,cbde,be->", e, g3[:dim, :dim], e) / np.sum(e * e) for e in (volume, shear))
    return float(bulk / slide) if slide > 0 else 0.0
