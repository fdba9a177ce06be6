"""Newton's method watched: state-dependent penalties of interior penalty, and steps that gain nothing."""

from __future__ import annotations

import weakref
from contextlib import contextmanager

from petsc4py import PETSc

from ...database import is_given
from ...errors import SolveError

STALLS = 2  # linear solvers that stall on the way, from which on it is given up
PATIENCE = 1000  # iterations of a linear solver while penalties may be too small, where the user gives no number
GROWTHS = 3  # solutions that ask for larger penalties, from which on they are none
RESTARTS = 15  # runs by new penalties, from which on the next try is made if there is one
FRUITLESS, GAIN, LAST = 10, 0.2, 0.05  # steps that gain less than GAIN of the residual, the last one less than LAST

RUNAWAY = (
    "the penalties of interior penalty do not settle: the states that Newton's method comes to ask for larger ones "
    "each time, or linear solvers stall; -{prefix}sipg_theta 0 needs no adjoint term that may do so, a nearer first "
    "guess (smaller load steps, problem.interpolate) or -{prefix}fe_backend cg_gpu may help"
)


class Watch:
    """A monitor that stops SNES while `solve` runs it, for one of two reasons.

    stopped     the last run: the penalties do not suffice at the state that a step led to. They are larger now, so that
                the next linearization is definite and has a residual of its own
    fruitless   the last run: FRUITLESS steps reduced the residual by less than GAIN, the last one by less than LAST
    has_another True if something else is tried where a run fails; only then fruitless steps stop it
    """

    def __init__(self, problem):
        self._problem = weakref.ref(problem)  # which keeps the SNES
        self.is_on = self.stopped = self.fruitless = self.has_another = False
        self._norms: list[float] = []

    def __call__(self, snes, step: int, norm: float) -> None:
        if not self.is_on:
            return
        self._norms.append(norm)
        problem, norms = self._problem(), self._norms
        snes = problem.snes  # that of another try calls the monitors of the first
        if step and not snes.getConvergedReason():
            follows = problem.operator.follows_solution and not problem.is_condensed
            self.stopped = follows and not is_settled(problem, snes.getSolution())
            self.fruitless = self.is_fruitless(norms)
            if self.stopped or self.fruitless:
                snes.setConvergedReason(PETSc.SNES.ConvergedReason.DIVERGED_FUNCTION_COUNT)
                snes.setMaxFunctionEvaluations(1)  # where PETSc tests for convergence after its monitors

    def is_fruitless(self, norms: list[float]) -> bool:
        """Return True if something else is better tried than another step, after steps with these norms."""
        gains = len(norms) <= FRUITLESS or norms[-1] < (1 - GAIN) * norms[-1 - FRUITLESS]
        return self.has_another and not (gains or norms[-1] < (1 - LAST) * norms[-2])

    def attach(self, snes: PETSc.SNES) -> None:
        """Watch the SNES of a nonlinear problem."""
        if not self._problem().physics.is_linear:
            snes.setMonitor(self)

    @contextmanager
    def on(self, snes: PETSc.SNES):
        """A block in which it may stop SNES."""
        most = snes.getMaxFunctionEvaluations()
        self.is_on, self.stopped, self.fruitless, self._norms = True, False, False, []
        try:
            yield
        finally:
            self.is_on = False
            snes.setMaxFunctionEvaluations(most)
            if self.fruitless and not self.stopped:
                snes.setConvergedReason(PETSc.SNES.ConvergedReason.DIVERGED_LOCAL_MIN)


def solve(problem, u: PETSc.Vec) -> None:
    """Let SNES work on u, by penalties that follow where they do not suit the state before a step, until they suit the
    solution; every run aims at a part of the residual of the first state. Collective.

    By penalties of a state before, the matrix may be indefinite: linear solvers stall, and Newton's method stands
    still. A solution by penalties that are too small for it may be none: then the energy of the scheme falls without
    end where a jump meets a large flux, and it sits on the way there. Raises SolveError where penalties grow on and on.
    """
    if not problem.operator.follows_solution:
        with problem.watch.on(problem.snes):
            problem.solve_from(u)
        return
    snes, stalls, growths, steps, runs = problem.snes, 0, 0, 0, 0
    rtol, atol, stol, most = snes.getTolerances()
    begin, f = u.copy(), u.duplicate()
    try:
        while True:
            with _impatient(problem), problem.watch.on(snes):
                problem.solve_from(u)
            stalls += _stalled(problem)
            if stalls >= STALLS:
                raise _runaway(problem)
            grown = problem.watch.stopped or not is_settled(problem, u)
            growths += grown and snes.getConvergedReason() > 0
            steps += max(1, snes.getIterationNumber())
            runs += 1
            is_last = problem.watch.has_another and runs >= RESTARTS
            is_last |= steps >= most and not is_given(problem.prefix, "snes_max_it")
            if growths >= GROWTHS or (grown and is_last):
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


def is_settled(problem, u: PETSc.Vec) -> bool:
    """Return True if the penalties suit u; otherwise update them. Collective."""
    with problem.access.read(u) as buffer:
        return problem.operator.suits(buffer)


def _stalled(problem) -> bool:
    """Return True if the linear solver went on to its last iteration."""
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
