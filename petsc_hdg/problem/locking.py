"""Warning of locking: displacements of low degree in nearly incompressible bodies."""

from __future__ import annotations

import warnings

import numpy as np
from mpi4py.MPI import MAX

from .convection import blocks

# Of each degree the least ratio of bulk to shear stiffness of a warning (Poisson's ratios 0.49 and 0.4995), and what
# may happen: second degree loses one of its three orders.
LARGE = {1: (40.0, "much too small (locking)"), 2: (1000.0, "less accurate by an order (locking)")}


def warn(problem) -> None:
    """Warn on rank 0, once, and name degrees and schemes that do not lock. Collective."""
    degree = max(1, problem.options.degree)
    if problem.options.backend == "hdg_gpu" or degree not in LARGE or "locking" in problem.told:
        return
    fields = [f for f in problem.physics.fields if f.components == problem.mesh.dim > 1]
    if not fields or problem.missing_auxiliary:
        return
    with np.errstate(all="ignore"):
        ratios = [_ratio(g3[f.offset :, f.offset :]) for _, (*_, g3) in blocks(problem) for f in fields]
    problem.told.add("locking")
    largest = problem.comm.allreduce(max(ratios, default=0.0), MAX)
    least, outcome = LARGE[degree]
    if largest >= least and problem.comm.rank == 0:
        warnings.warn(
            f"physics '{problem.physics.name}' resists changes of volume about {largest:.2g} times as much as shear: "
            f"displacements of degree {degree} by {problem.options.backend} may be {outcome}; "
            f"-{problem.prefix}fe_degree {degree + 1} or more, or -{problem.prefix}fe_backend hdg_gpu, do better",
            stacklevel=2,
        )


def _ratio(g3: np.ndarray) -> float:
    """Return bulk over shear stiffness of g3 [component, component, dim, dim]; 0 without shear stiffness."""
    dim = g3.shape[-1]
    volume, shear = np.eye(dim), np.zeros((dim, dim))
    shear[0, 1] = shear[1, 0] = 1.0
    bulk, slide = (np.einsum("cd,cbde,be->", e, g3[:dim, :dim], e) / np.sum(e * e) for e in (volume, shear))
    return float(bulk / slide) if np.isfinite(bulk) and slide > 0 else 0.0
