"""Whether source and fluxes balance where a solution is known up to a constant: else there is none."""

from __future__ import annotations

import warnings

import numpy as np
from mpi4py.MPI import MAX
from petsc4py import PETSc

from ..errors import SolveError

REFUSED = 0.1  # imbalance over the size of the data from which on nothing is solved
WAVES = 2.0  # data are called smooth if quadrature is as good for them as for WAVES radians across the domain


def check(problem, u: PETSc.Vec, ones: PETSc.Vec) -> None:
    """Raise SolveError if source and fluxes do not balance, and warn, on rank 0, of an imbalance that quadrature of
    smooth data does not make: the solver leaves it out of the data. Collective.

    ones: the function 1, to whose direction a constant in u adds nothing.
    """
    imbalance, scale = _imbalance(problem, u, ones)
    if abs(imbalance) > REFUSED * scale:
        raise SolveError(
            f"physics '{problem.physics.name}' has no solution: without essential conditions its source and fluxes "
            f"must balance, and they sum to {imbalance:.3e}; give a Dirichlet or Robin condition, or data "
            "that balance"
        )
    allowed = _of_quadrature(problem)
    if abs(imbalance) > allowed * scale and problem.comm.rank == 0:
        warnings.warn(
            f"source and fluxes of physics '{problem.physics.name}', which without essential conditions must balance, "
            f"sum to {imbalance:.3e}, {100 * abs(imbalance) / scale:.2g} % of their size: the solution is that of data "
            "from which this is taken away; give data that balance, or a Dirichlet or Robin condition",
            stacklevel=2,
        )


def _imbalance(problem, u: PETSc.Vec, ones: PETSc.Vec) -> tuple[float, float]:
    """Sum of the residual at u, and the size of what is summed: there or, if that is larger, at zero. Collective.

    At a solution nothing but the imbalance would be left to compare it with.
    """
    zero = u.duplicate()
    zero.set(0.0)
    found = _sums(problem, zero, ones)
    sizes = [found[1]]
    if u.norm() > 0:
        found = _sums(problem, u, ones)
        sizes.append(found[1])
    zero.destroy()
    return found[0], max((size for size in sizes if np.isfinite(size)), default=0.0)


def _sums(problem, u: PETSc.Vec, ones: PETSc.Vec) -> tuple[float, float]:
    """Sum of the residual at u in the direction of 1, and of its terms' absolute values. Collective."""
    terms = u.duplicate()
    problem.callbacks.residual(None, u, terms)
    terms.pointwiseMult(terms, ones)
    found = terms.sum(), terms.norm(PETSc.NormType.NORM_1)
    terms.destroy()
    return found


def _of_quadrature(problem) -> float:
    """The imbalance, over the size of the data, that rounding or a rule on the largest cells may leave. Collective."""
    rounding = float(np.sqrt(np.finfo(problem.arrays.real).eps))
    order = problem.discretization.quadrature_degree + 1
    return max(rounding, min(REFUSED, (WAVES * _largest_cell(problem.mesh)) ** order))


def _largest_cell(mesh) -> float:
    """Extent of the largest cell over that of the domain. Collective."""
    nodes = mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells]]
    extents = np.ptp(nodes, axis=1).max(initial=0.0)
    low, high = nodes.min(axis=(0, 1), initial=np.inf), nodes.max(axis=(0, 1), initial=-np.inf)
    found = mesh.comm.allreduce(np.concatenate([[extents], -low, high]), MAX)
    return float(found[0] / (found[1 : 1 + mesh.dim] + found[1 + mesh.dim :]).max())
