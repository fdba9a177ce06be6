"""Check that the penalty of interior penalty suffices (`-sipg_check_coercivity`)."""

from __future__ import annotations

import weakref
from functools import partial

from petsc4py import PETSc

from ...errors import warn_user
from ...operators.spectrum import TOLERANCE, asymmetry, extreme_eigenvalues


def check_of(problem):
    """Return `check`, which callbacks call after the first linearization, or None unless the user asks for it."""
    wanted = problem.options.sipg_check_coercivity and problem.discretization.has_penalties
    return partial(check, weakref.proxy(problem)) if wanted else None


def check(problem, calls) -> None:
    """Estimate the extreme eigenvalues of the Jacobian at hand, and warn on rank 0 if the smallest is negative.

    `problem.eigenvalues` keeps the estimates. Collective.
    """
    options, tolerance = problem.options, TOLERANCE[problem.options.precision]
    symmetric = asymmetry(calls.jacobian) < tolerance
    problem.eigenvalues = low, high = extreme_eigenvalues(calls.jacobian, symmetric)
    if options.view:
        PETSc.Sys.Print(describe(problem.eigenvalues), comm=problem.petsc_comm)
    if low < -tolerance * high and problem.comm.rank == 0:
        warn_user(
            f"-{problem.prefix}sipg_penalty_scale {options.sipg_penalty_scale:g} is too small for the penalty "
            f"{options.sipg_penalty}: the smallest eigenvalue of the scaled Jacobian is {low:.2e} or less; raise "
            "the scale, unless the physics itself has directions of negative energy"
        )


def describe(eigenvalues: tuple[float, float]) -> str:
    """A line for `-fe_view`."""
    low, high = eigenvalues
    return f"  coercivity: eigenvalues of the Jacobian over its diagonal from {low:.3e} to {high:.3e} (estimates)"
