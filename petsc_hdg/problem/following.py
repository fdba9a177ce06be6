"""Newton's method for a scheme that follows the state: penalties of interior penalty that nonlinear physics needs."""

from __future__ import annotations

from contextlib import contextmanager

from petsc4py import PETSc

from ..errors import SolveError
from ..options import is_given

APPROACH = 10  # steps of Newton's method by themselves, at most, while the scheme follows the state
STALLS = 2  # linear solvers that stall on the way, from which on it is given up
PATIENCE = 1000  # iterations of a linear solver while penalties may be too small, where the user gives no number
GROWTHS = 3  # solutions that ask for larger penalties, from which on they are none

RUNAWAY = (
    "the penalties of interior penalty do not settle: the states that Newton's method comes to ask for larger ones "
    "each time, or linear solvers stall; -{prefix}sipg_theta 0 needs no adjoint term that may do so, a nearer first "
    "guess (smaller load steps, problem.interpolate) or -{prefix}fe_backend cg_gpu may help"
)


def approach(problem, u: PETSc.Vec, stalls: int = 0) -> int:
    """Newton steps one by one, until the scheme suits the state u that they lead to; how many linear solvers stalled,
    with those before. Collective.

    By penalties of the state before, the matrix at a new state may be indefinite, and linear solvers stall. Raises
    SolveError if they do so again and again.
    """
    most = problem.snes.getTolerances()[3]
    problem.snes.setTolerances(max_it=min(1, most))
    try:
        for _ in range(APPROACH):
            with _impatient(problem):
                problem.solve_from(u)
            stalls = _with_last(problem, stalls)
            if is_settled(problem, u):
                break
    finally:
        problem.snes.setTolerances(max_it=most)
    return stalls


def solve(problem, u: PETSc.Vec) -> None:
    """Approach a solution and let SNES work on u, until the scheme suits it; where SNES fails while the scheme does not
    suit the state that it came to, on from there.

    Newton's method may stand still where penalties of states before leave the matrix indefinite. A solution by
    penalties that are too small for it may be none: then the energy of the scheme falls without end where a jump meets
    a large flux, and it sits on the way there. Collective. Raises SolveError where penalties grow on and on.
    """
    if not problem.operator.follows_solution:
        problem.solve_from(u)
        return
    stalls, growths = approach(problem, u), 0
    for _ in range(APPROACH):
        with _impatient(problem):
            problem.solve_from(u)
        stalls = _with_last(problem, stalls)
        if is_settled(problem, u):
            if _stalled(problem):
                problem.solve_from(u)
            return
        if problem.snes.getConvergedReason() < 0:
            stalls = approach(problem, u, stalls)
            continue
        growths += 1
        if growths >= GROWTHS:
            raise _runaway(problem)
    if problem.snes.getConvergedReason() < 0:
        raise _runaway(problem)


def _with_last(problem, stalls: int) -> int:
    """How many linear solvers stalled, with the last one. Raises SolveError for too many."""
    stalls += _stalled(problem)
    if stalls >= STALLS:
        raise _runaway(problem)
    return stalls


def is_settled(problem, u: PETSc.Vec) -> bool:
    """Whether the penalties suffice at u; else they grow. Collective."""
    with problem.access.read(u) as buffer:
        return problem.operator.settled(buffer)


def _stalled(problem) -> bool:
    """Whether the linear solver went on to its last iteration."""
    return problem.snes.getKSP().getConvergedReason() == PETSc.KSP.ConvergedReason.DIVERGED_MAX_IT


def _runaway(problem) -> SolveError:
    return SolveError(RUNAWAY.format(prefix=problem.prefix))


@contextmanager
def _impatient(problem):
    """A block in which linear solvers give up early, unless the user says when: those that stall do it to the end."""
    ksp = problem.snes.getKSP()
    most = ksp.getTolerances()[3]
    if not is_given(problem.prefix, "ksp_max_it"):
        ksp.setTolerances(max_it=min(most, PATIENCE))
    try:
        yield
    finally:
        ksp.setTolerances(max_it=most)
