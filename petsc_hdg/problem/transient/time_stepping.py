"""PETSc's TS over a problem: any implicit method in time, with the residual F(t, u, u_t) and its Jacobian."""

from __future__ import annotations

import weakref
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from petsc4py import PETSc

from ... import log, stages
from ...database import defaults_in_database, given_text, is_given
from ...errors import OptionError, SolveError, warn_user
from ...options import ASSEMBLED, ATTACHED, loses_levels
from ...petsc import c_library
from ...progress import PROGRESS
from ...value_checks import function, number, plural
from .. import assembled_fallback, cells_in_time, input_data, memory_traffic, solution_checks
from ..checkpoints import checkpoint, checkpoint_schedule, method_history
from ..checkpoints.method_history import is_bdf
from ..linear import boundary_flow, direct_solvers, methods, preconditioners, solvers
from ..newton.first_guess import SECANTS
from ..results import viewers
from . import explicit

MOST_STEPS = 2**31 - 2  # the end time ends a run, not PETSc's 5000 steps
# The step is the one that is asked for, unless the user wants another controller; where it fails, it is tried again.
FIXED = {"ts_adapt_type": "none", "ts_adapt_scale_solve_failed": "1"}
TRIES = 4  # of a step whose penalties may be too small for the states of Newton's method
PSEUDO_TRIES = 8  # of a step of pseudo-transient continuation, each a quarter as long
PSEUDO_STEPS = 5  # of Newton's method in one that is not too long
PART_OF_STEP = 1e-7  # of the first step, in which a trace comes to fit the cells
PSEUDO_RTOL = 0.1  # of its Newton's method: most steps take one, and those that a line search shortens some more


def prepare(problem, ts: PETSc.TS) -> None:
    """Give a TS the problem's system in the form that its method takes, and make it call `after_step` and write what
    options ask for. Collective. Raises PhysicsError or OptionError for what the method does not take."""
    explicit.check(problem, ts)
    if problem.explicit is not None:
        explicit.check_split(problem, ts)
    if explicit.is_explicit(ts):
        ts.setRHSFunction(explicit.RightHandSide(problem), problem.create_vec())
    else:
        _give_system(problem, ts)
        if problem.explicit is not None:
            _give_explicit_part(problem, ts)
    if ts.getPostStep() is None:
        start = Start(problem)
        ts.setPostStep(start.after)
        if ts.getPreStep() is None:
            ts.setPreStep(start.before)
    viewers.follow(problem, ts)
    checkpoint_schedule.watch(problem, ts)


def _give_system(problem, ts: PETSc.TS) -> None:
    """Give an implicit TS F(t, u, u_t) and its Jacobian. Collective."""
    calls = problem.callbacks
    ts.setEquationType(PETSc.TS.EquationType.IMPLICIT)  # else ARKIMEX takes the identity for the mass matrix
    ts.setIFunction(calls.ifunction, problem.create_vec())
    ts.setIJacobian(calls.ijacobian, *problem.solver_matrices)


def _give_explicit_part(problem, ts: PETSc.TS) -> None:
    """Give ARKIMEX the rates of `problem.explicit`. Collective."""
    ts.setEquationType(PETSc.TS.EquationType.UNSPECIFIED)  # ARKIMEX leaves out the explicit part of an implicit system
    other = problem.explicit
    rates = explicit.CellRates(problem, _euler(other)) if problem.is_condensed else explicit.RightHandSide(other)
    ts.setRHSFunction(rates, problem.create_vec())


def _euler(problem) -> PETSc.TS:
    """Backward Euler with the problem's system and solvers, and without hooks. Collective."""
    ts = PETSc.TS().create(problem.petsc_comm)
    ts.setType("beuler")
    ts.setExactFinalTime(PETSc.TS.ExactFinalTime.STEPOVER)
    ts.setMaxTime(1e300)
    ts.setErrorIfStepFails(False)
    _give_system(problem, ts)
    snes = ts.getSNES()
    if problem.prefix:
        snes.setOptionsPrefix(problem.prefix)
    _set_defaults(problem, ts)
    preconditioners.set_from_options(problem, snes)
    return ts


def create_ts(problem) -> PETSc.TS:
    """A TS with residual and Jacobian attached, our defaults, and the user's options on top. Collective.

    Defaults: BDF of second order with fixed steps that end at the end time; the solvers of `Problem.create_snes`.
    """
    viewers.require_dm(problem)
    ts = PETSc.TS().create(problem.petsc_comm)
    if problem.prefix:
        ts.setOptionsPrefix(problem.prefix)
    ts.setType("bdf")
    if problem.explicit is not None:
        ts.setType("arkimex")
        ts.setARKIMEXType(explicit.SPLIT[0])
    ts.setMaxSteps(MOST_STEPS)
    ts.setExactFinalTime(PETSc.TS.ExactFinalTime.MATCHSTEP)
    ts.setErrorIfStepFails(False)  # the reason is told by a SolveError instead
    loses = loses_levels(problem.prefix)
    if loses:
        ts.setDM(_without_entries(problem))
    problem.settle_pmat(ATTACHED if loses else ASSEMBLED)
    if not explicit.is_explicit(ts):  # LU for a small problem whose steps cost less so
        fixed = given_text(problem.prefix, "ts_adapt_type", "none") == "none"
        problem.direct = problem.direct or direct_solvers.reason_in_time(problem, fixed)
        if problem.direct:
            assembled_fallback.take_matrix(problem)
    problem.connect(ts)
    if not explicit.is_explicit(ts):
        _set_defaults(problem, ts)
    set_from_options(problem, ts)
    if not explicit.is_explicit(ts):
        PROGRESS.watch(ts.getSNES(), cells_in_time.trace_solver(problem, ts.getSNES().getKSP()))
    PROGRESS.watch_time(ts)
    return ts


def _without_entries(problem) -> PETSc.DM:
    """A DM that creates an empty matrix where a method loses those that it was given: without one PETSc makes a dense
    one, of n² numbers. Collective."""
    mat = PETSc.Mat().createAIJ(problem.create_vec().getSizes(), nnz=0, comm=problem.petsc_comm)
    mat.assemble()
    dm = PETSc.DMShell().create(problem.petsc_comm)
    dm.setMatrix(mat)
    return dm


def _set_defaults(problem, ts: PETSc.TS) -> None:
    snes = ts.getSNES()
    if problem.physics.is_linear:
        snes.setType("ksponly")
    elif not is_given(problem.prefix, "ts_max_snes_failures"):
        _try_again(problem, ts)
    methods.set_tolerances(problem, snes, ts)
    if _is_pseudo(problem, ts) and not problem.physics.is_linear:
        snes.setType("newtonls")  # without a line search steps lead to a gas without pressure
        snes.setTolerances(rtol=PSEUDO_RTOL, max_it=PSEUDO_STEPS)
    preconditioners.set_defaults(problem, snes.getKSP())


def _try_again(problem, ts: PETSc.TS) -> None:
    """Have a step whose nonlinear solver fails be tried again, with the last state as its guess: what BDF extrapolates
    after an impulsive start may be outside the domain of the physics, as a gas without pressure. A step of fixed length
    has one more try, by secants (`first_guess`). Schemes with penalties try those again, larger ones, by secants.
    """
    pseudo, has_penalties = _is_pseudo(problem, ts), problem.operator.follows_solution and not problem.is_condensed
    may_search = not pseudo and not is_given(problem.prefix, "snes_linesearch_type")
    tries = PSEUDO_TRIES if pseudo else 1 + may_search
    found, before, searches = weakref.ref(ts), {}, []  # step → failures before it, seen; the line search before secants
    if has_penalties:
        ts.setMaxSNESFailures(TRIES)

    def guess(snes, x) -> None:
        alive = found()
        if alive is None:
            return
        step, failures = alive.getStepNumber(), alive.getSNESFailures()
        if step not in before:
            before.clear()
            before[step] = [failures, failures]
            if not has_penalties:
                alive.setMaxSNESFailures(failures + tries + 1)
            if searches:
                c_library.set_line_search(snes, searches.pop())
            return
        (first, seen), before[step][1] = before[step], failures
        has_failed = failures > seen
        searching = may_search and failures >= first + (1 if has_penalties else tries)
        if not has_penalties and (has_failed or (failures > first and not searching)):  # else a stage after another
            alive.getSolution().copy(x)
        if has_failed and searching and not searches and snes.getType() == "newtonls":
            searches.append(c_library.set_line_search(snes, SECANTS))

    ts.getSNES().setInitialGuess(guess)


def _is_pseudo(problem, ts: PETSc.TS) -> bool:
    """Return True if steps are those of pseudo-transient continuation."""
    return given_text(problem.prefix, "ts_type", ts.getType() or "") == "pseudo"


def set_from_options(problem, ts: PETSc.TS) -> None:
    """Apply PETSc's options to a TS whose steps are fixed by default. Collective. Raises OptionError.

    Steps of TSPSEUDO grow; in new PETSc its TSAdapt does that, which must not be another one."""
    with defaults_in_database(problem.prefix, {} if _is_pseudo(problem, ts) else FIXED, unless="ts_adapt_type"):
        preconditioners.set_from_options(problem, ts)


def solve_in_time(problem, u0: PETSc.Vec, t1: float, dt: float, t0: float = 0.0, monitor=None) -> PETSc.Vec:
    """The state at t1 from the state u0 at t0, see Problem.solve_in_time. Collective."""
    _check_times(t0, t1, dt)
    function("The monitor of a run in time", monitor)
    boundary_flow.warn(problem, t1 - t0)
    begin = _Begin(u0, t0, dt)
    while (u := _run(problem, begin, t1, monitor)) is None:
        pass  # conjugate gradients, then GMRES, then LU
    return u


@dataclass
class _Begin:
    """Where a run begins: the given state, or that of the last step whose solver did not fail."""

    state: PETSc.Vec
    time: float
    dt: float
    step: int = 0

    def note(self, ts) -> None:
        """Take the state after a step."""
        self.state = ts.getSolution().copy(self.state if self.step else None)
        self.time, self.dt, self.step = ts.getTime(), ts.getTimeStep(), ts.getStepNumber()


def _run(problem, begin: _Begin, t1: float, monitor) -> PETSc.Vec | None:
    """The state at t1; None where a step found that the default Krylov method does not fit the matrix, and the next run
    takes another one from there. Collective."""
    u, ts = input_data.copied(problem, begin.state), create_ts(problem)
    try:
        ts.setTime(begin.time)
        ts.setTimeStep(min(begin.dt, t1 - begin.time))
        ts.setMaxTime(t1)
        set_from_options(problem, ts)
        ts.setStepNumber(begin.step)
        resumed = begin.step == 0 and checkpoint_schedule.resume(problem, ts, u)
        if not resumed:
            if problem.has_cell_states and method_history.seeks_slope(ts):
                _fit_trace(problem, ts, u)
            method_history.tell_time_of_slope(ts, u)
        first = ts.getStepNumber()
        try:
            with _impatient(problem, ts, begin):
                advance(problem, ts, u, monitor)
        except SolveError:
            if explicit.is_explicit(ts) or not _has_another_solver(problem, ts.getSNES()):
                raise
            problem.checkpoints.restarted &= not resumed or begin.step > first  # or the next run takes it again
            return None
    finally:
        ts.destroy()
    return input_data.made_at(u, problem.time)


def _fit_trace(problem, ts: PETSc.TS, u: PETSc.Vec) -> None:
    """Give a start the trace that belongs to its cells, by an instant of backward Euler: an interpolated one does not
    satisfy the trace equation, and the first slope of methods with an explicit stage would make them of first order.
    Collective. Nothing happens where the solver fails."""
    euler, start = _euler(problem), u.copy()
    try:
        euler.setTime(ts.getTime())
        euler.setTimeStep(PART_OF_STEP * ts.getTimeStep())
        euler.setMaxSteps(1)
        euler.solve(u)
        if euler.getConvergedReason() < 0:
            start.copy(u)
    finally:
        start.destroy()
        euler.destroy()


@contextmanager
def _impatient(problem, ts: PETSc.TS, begin: _Begin):
    """A block in which linear solves stop where others take their place, with facet blocks those of the first step, and
    `begin` follows the steps. Collective."""
    if explicit.is_explicit(ts):
        yield
        return
    ksp = cells_in_time.trace_solver(problem, ts.getSNES().getKSP())
    most, calls = ksp.getTolerances()[3], [begin.note]
    if assembled_fallback.has_blocks(problem):
        ksp.setTolerances(max_it=min(most, assembled_fallback.most_with_blocks(problem)))
        calls += [lambda ts: assembled_fallback.follow_steps(problem, ts), lambda ts: ksp.setTolerances(max_it=most)]
    elif direct_solvers.may_change(problem, ksp):
        ksp.setTolerances(max_it=min(most, direct_solvers.IN_NEWTON))
    problem.after_step[:0] = calls
    try:
        yield
    finally:
        ksp.setTolerances(max_it=most)
        for call in calls:
            problem.after_step.remove(call)


def _has_another_solver(problem, snes: PETSc.SNES) -> bool:
    """Return True if the next run takes another linear solver than the one that failed. Collective."""
    changed = assembled_fallback.takes_double(problem, snes) or preconditioners.met_indefinite(problem, snes)
    changed = changed or assembled_fallback.leaves_levels(problem, snes)
    return changed or assembled_fallback.takes_factors(problem, snes)


def _check_times(t0: float, t1: float, dt: float) -> None:
    """Raise OptionError for times that are none, or that do not ascend."""
    for name, given in (("t0", t0), ("t1", t1), ("The time step dt", dt)):
        number(name, given)
    if not t1 > t0:
        raise OptionError(f"a run from t = {t0:g} to {t1:g} was asked for; times ascend")
    if not dt > 0:
        raise OptionError(f"a time step of {dt:g} was asked for; give one above 0")
    if (t1 - t0) / dt > MOST_STEPS:
        raise OptionError(f"{(t1 - t0) / dt:.3g} time steps were asked for; PETSc counts {MOST_STEPS:.3g} at most")


def advance(problem, ts: PETSc.TS, u: PETSc.Vec, monitor=None) -> None:
    """Let a TS of `create_ts` work on u to its end time. Collective. Raises SolveError if a step fails."""

    def tell(ts) -> None:
        monitor(ts.getTime(), input_data.made_at(ts.getSolution(), ts.getTime()))

    calls = [] if monitor is None else [tell]
    problem.after_step[:0] = calls
    try:
        with solvers.agreed(problem.comm, ts), stages.stage("solve"), memory_traffic.counted(problem):
            problem.operator.restart()
            is_explicit = explicit.is_explicit(ts)
            smoothing = nullcontext() if is_explicit else preconditioners.smoothing(problem, ts.getSNES())
            with smoothing, checkpoint.deferred_signals(problem):
                ts.solve(u)
    finally:
        problem.operator.strengthen(1.0)
        for call in calls:
            problem.after_step.remove(call)
    problem.newton_iterations, problem.linear_iterations = ts.getSNESIterations(), _linear_iterations(problem, ts)
    problem.time_steps, problem.time = ts.getStepNumber(), ts.getTime()
    steps = plural(problem.time_steps, "step")
    log.info("made %s to t = %.6g, with %s", steps, problem.time, solution_checks.iterations(problem))
    _check_converged(problem, ts)
    ends_early = ts.getConvergedReason() == PETSc.TS.ConvergedReason.CONVERGED_ITS
    if ends_early and _is_pseudo(problem, ts) and problem.comm.rank == 0:
        warn_user(
            f"{steps} of pseudo time, as many as -{problem.prefix}ts_max_steps allows, did not come to a steady state; "
            "allow more, or begin with a longer one"
        )
    solution_checks.require_finite(problem, u, t=ts.getTime())
    solution_checks.check_meaning(problem, u, ts.getTime())


def _linear_iterations(problem, ts: PETSc.TS) -> int:
    """Iterations of linear solvers in a run: of steps, or of the mass matrix of explicit ones."""
    if explicit.is_explicit(ts):
        return ts.getRHSFunction()[1][0].iterations
    return cells_in_time.iterations(problem, ts.getSNES().getKSP(), ts.getKSPIterations())


def _check_converged(problem, ts: PETSc.TS) -> None:
    if ts.getConvergedReason() >= 0:
        return
    snes = ts.getSNES()
    no_residual = snes.getIterationNumber() == 0 and solution_checks.met_no_number(snes)  # where the step begins
    length = "" if no_residual else f" of length {ts.getTimeStep():g}"  # TSPSEUDO finds it from the residual
    where = f"the step from t = {ts.getTime():g}{length} failed"
    try:
        state = ts.getSolution(), ts.getTime()
        explain = lambda: solution_checks.of_solve(problem, snes, *state)  # noqa: E731
        solvers.check_converged(snes, problem.operator.failure, explain)
    except SolveError as error:
        may_help = snes.getKSP().getConvergedReason() >= 0 and not no_residual
        raise SolveError(f"{where}: {error}{'; shorter steps may help' * may_help}") from None
    raise SolveError(
        f"{where}: the step controller rejected it too often; a smaller first step, or -ts_adapt_dt_min, may help"
    )


class Start:
    """Hooks before and after each step of a TS: first states of BDF, and functions of the problem's `after_step`."""

    def __init__(self, problem):
        self._problem = weakref.ref(problem)  # which may itself keep the TS
        self._state: PETSc.Vec | None = None

    def before(self, ts) -> None:
        """Find the state after the step that begins. Collective."""
        problem, self._state = self._problem(), None
        if problem is None or not is_bdf(ts) or c_library.adapt_type(ts) != b"none":
            return
        order = c_library.bdf_order(ts)
        if order > 2 and ts.getStepNumber() < order:
            self._state = _extrapolated(_euler(problem), ts, order - 1)

    def after(self, ts) -> None:
        """Replace the TS's state by the one that `before` found, without a restart of its method, and call the
        functions. Collective."""
        if ts.getConvergedReason() < 0:  # PETSc calls this after a step that failed, too
            return
        problem, state, self._state = self._problem(), self._state, None
        if state is not None:
            u = ts.getSolution()
            version = u.stateGet()
            state.copy(u)
            u.stateSet(version)
            state.destroy()
        for call in problem.after_step if problem is not None else ():
            call(ts)


def _extrapolated(euler: PETSc.TS, ts: PETSc.TS, count: int) -> PETSc.Vec | None:
    """The state of a TS after its next step, from backward Euler in 1 … count parts; None if a solver fails."""
    row: list[PETSc.Vec] = []
    try:
        for parts in range(1, count + 1):
            row.append(ts.getSolution().copy())
            euler.setTime(ts.getTime())
            euler.setTimeStep(ts.getTimeStep() / parts)
            euler.setStepNumber(0)
            euler.setMaxSteps(parts)
            euler.solve(row[-1])
            if euler.getConvergedReason() < 0:
                return None
            for k in range(1, parts):  # Neville's scheme, towards the first of the row
                value, other = row[parts - k], row[parts - k - 1]
                other.aypx(-1.0, value)
                other.aypx((parts - k) / k, value)
        return row[0].copy()
    finally:
        for vector in row:
            vector.destroy()
        euler.destroy()
