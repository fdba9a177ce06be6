"""Newton's method for a scheme that follows the state: penalties of interior penalty that nonlinear physics needs."""

from __future__ import annotations

import weakref
from contextlib import contextmanager

from petsc4py import PETSc

from ..errors import SolveError
from ..options import is_given

STALLS = 2  # linear solvers that stall on the way, from which on it is given up
PATIENCE = 1000  # iterations of a linear solver while penalties may be too small, where the user gives no number
GROWTHS = 3  # solutions that ask for larger penalties, from which on they are none

RUNAWAY = (
    "the penalties of interior penalty do not settle: the states that Newton's method comes to ask for larger ones "
    "each time, or linear solvers stall; -{prefix}sipg_theta 0 needs no adjoint term that may do so, a nearer first "
    "guess (smaller load steps, problem.interpolate) or -{prefix}fe_backend cg_gpu may help"
)


class Watch:
    """A monitor of SNES that stops it, while `solve` runs it, where the penalties do not suffice at the state that a
    step led to: they have grown there, so that the next linearization is definite and has a residual of its own.

    stopped: whether the last run was.
    """

    def __init__(self, problem):
        self._problem = weakref.ref(problem)  # which keeps the SNES
        self.is_on = self.stopped = False

    def __call__(self, snes, step: int, norm: float) -> None:
        if self.is_on and step and not snes.getConvergedReason():
            self.stopped = not is_settled(self._problem(), snes.getSolution())
            if self.stopped:
                snes.setConvergedReason(PETSc.SNES.ConvergedReason.DIVERGED_FUNCTION_COUNT)
                snes.setMaxFunctionEvaluations(1)  # where PETSc tests for convergence after its monitors

    def attach(self, snes: PETSc.SNES) -> None:
        """Watch a SNES, if its problem has penalties that follow the state."""
        problem = self._problem()
        if problem.operator.follows_solution and not problem.is_condensed:
            snes.setMonitor(self)

    @contextmanager
    def on(self, snes: PETSc.SNES):
        """A block in which it may stop SNES."""
        most = snes.getMaxFunctionEvaluations()
        self.is_on, self.stopped = True, False
        try:
            yield
        finally:
            self.is_on = False
            snes.setMaxFunctionEvaluations(most)


def solve(problem, u: PETSc.Vec) -> None:
    """Let SNES work on u, by penalties that follow where they do not suit the state before a step, until they suit the
    solution; every run aims at a part of the residual of the first state. Collective.

    By penalties of a state before, the matrix may be indefinite: linear solvers stall, and Newton's method stands
    still. A solution by penalties that are too small for it may be none: then the energy of the scheme falls without
    end where a jump meets a large flux, and it sits on the way there. Raises SolveError where penalties grow on and on.
    """
    if not problem.operator.follows_solution:
        problem.solve_from(u)
        return
    snes, stalls, growths, steps = problem.snes, 0, 0, 0
    rtol, atol, stol, most = snes.getTolerances()
    begin, f = u.copy(), u.duplicate()
    try:
        while True:
            with _impatient(problem), problem.watch.on(snes):
                problem.solve_from(u)
            stalls = _with_last(problem, stalls)
            grown = problem.watch.stopped or not is_settled(problem, u)
            growths += grown and snes.getConvergedReason() > 0
            steps += max(1, snes.getIterationNumber())
            if growths >= GROWTHS or (grown and steps >= most and not is_given(problem.prefix, "snes_max_it")):
                raise _runaway(problem)
            if not grown or steps >= most:
                break
            problem.callbacks.residual(None, begin, f)  # by the penalties that the next run has
            snes.setTolerances(atol=max(atol, rtol * f.norm()), max_it=most - steps)
        if grown:
            snes.setConvergedReason(PETSc.SNES.ConvergedReason.DIVERGED_MAX_IT)
        elif _stalled(problem) and steps < most:
            problem.solve_from(u)
    finally:
        snes.setTolerances(rtol=rtol, atol=atol, stol=stol, max_it=most)
        begin.destroy()
        f.destroy()


def _with_last(problem, stalls: int) -> int:
    """How many linear solvers stalled, with the last one. Raises SolveError for too many."""
    stalls += _stalled(problem)
    if stalls >= STALLS:
        raise _runaway(problem)
    return stalls


def is_settled(problem, u: PETSc.Vec) -> bool:
    """Return True if the penalties suit u; otherwise update them. Collective."""
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
