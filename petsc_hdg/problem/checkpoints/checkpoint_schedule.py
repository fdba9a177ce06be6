"""When checkpoints are written and read: by PETSc's TS, by slabs in space and time, in steps of a load, by Newton."""

from __future__ import annotations

import weakref

from petsc4py import PETSc

from ...errors import CheckpointError, OptionError
from ...value_checks import path as given_path
from ...value_checks import shown
from ..input_data import require_vec
from ..linear.kept_levels import reset_preconditioner
from ..linear.preconditioners import smoothing
from ..results import results
from . import checkpoint, method_history
from .method_history import History

KINDS = {
    "time": "a run in time (TS)",
    "slabs": "slabs in space and time (SpaceTime.march)",
    "loads": "steps of a load (Problem.load_steps)",
    "newton": "a nonlinear solve (Problem.solve)",
    "state": "Problem.checkpoint",
}
HISTORY = "petsc_hdg_history"  # attribute of a TS that was resumed


def is_due(problem, step: int) -> bool:
    """Return True if `-fe_checkpoint` wants the state after so many steps. Collective."""
    options = problem.options
    if not options.checkpoint or step == 0:
        return False
    return step % options.checkpoint_interval == 0 or checkpoint.is_end_asked(problem)


def wanted(problem, *kinds: str, others: bool = False) -> checkpoint.Restart | None:
    """The state of `-fe_restart`, None if it was not given or has been taken. Collective. Raises CheckpointError.

    others: whether a checkpoint of another kind is left to those that want it, else it is an error.
    """
    path = problem.options.restart
    if not path or problem.checkpoints.restarted:
        return None
    if others:
        problem.checkpoints.kind = problem.checkpoints.kind or checkpoint.kind_of(problem, path)
        if problem.checkpoints.kind not in kinds:
            return None
    found = checkpoint.read(problem, path)
    require(path, found, *kinds)
    problem.checkpoints.restarted = True
    return found


def require(path, found: checkpoint.Restart, *kinds: str) -> None:
    """Raise CheckpointError unless a state is of one of some kinds."""
    if found.kind not in kinds:
        raise CheckpointError(
            f"The checkpoint {path} was written by {KINDS.get(found.kind, found.kind)}, and {KINDS[kinds[0]]} was to "
            "go on from it; call Problem.restart in the script to take its state as a first one."
        )


def restart(problem, path, ts, u) -> checkpoint.Restart | None:
    """The state of a checkpoint, put where it is wanted: see Problem.restart. Collective."""
    if path is None or (isinstance(path, str) and not path):
        path = problem.options.restart
        if not path:
            return None
    path = given_path("The checkpoint", path)
    if ts is not None and not (isinstance(ts, PETSc.TS) and ts.handle):
        raise OptionError(f"The state of a run in time goes into a TS, and {shown(ts)} is given; create_ts makes one")
    if u is not None:
        require_vec(problem, u)
    found = checkpoint.read(problem, path)
    problem.checkpoints.restarted = True
    if ts is not None:
        require(path, found, "time")
        take(problem, ts, found.u.duplicate() if u is None else u, found)
    elif u is not None:
        found.u.copy(u)
    return found


# Time stepping -------------------------------------------------------------------------------------------------------


def watch(problem, ts: PETSc.TS) -> None:
    """Let a TS write a series of states, then checkpoints, if `-fe_output` and `-fe_checkpoint` ask for them."""
    results.watch_series(problem, ts)
    if problem.options.checkpoint:
        ts.setMonitor(_TimeMonitor(problem))


class _TimeMonitor:
    """A monitor of TS: writes the state after each interval, and after the last step.

    Steppers that keep more than the state begin anew there, as they will after a restart, so that both go the same way;
    BDF goes on, its history is part of the checkpoint.
    """

    def __init__(self, problem):
        self._problem = weakref.ref(problem)  # which may itself keep the TS
        self._at: int | None = None
        self.history = History()

    def __call__(self, ts, step: int, t: float, u) -> None:
        problem = self._problem()
        if problem is None or step == self._at:  # a TS that continues passes the present state again
            return
        begins = self._at is None or step != self._at + 1
        self._at = step
        if method_history.is_bdf(ts):
            self._keep(ts, t, u, begins)
        reason = ts.getConvergedReason()
        if not begins and (reason > 0 or (reason == 0 and is_due(problem, step))):
            self._write(problem, ts, step, t, u)

    def _keep(self, ts, t: float, u, begins: bool) -> None:
        resumed = ts.getAttr(HISTORY)
        if begins:
            self.history.clear()
        if begins and resumed is not None:
            self.history = resumed
            ts.setAttr(HISTORY, None)
        else:
            self.history.add(ts, t, u)

    def _write(self, problem, ts, step: int, t: float, u) -> None:
        details = {"method": ts.getType(), "dt": ts.getTimeStep()}
        older = self.history.states[:-1] if method_history.is_bdf(ts) else []
        details["history"] = [(time, length) for time, length, _ in older]
        details["started"] = self.history.started
        vectors = {f"u{k - len(older)}": state[2] for k, state in enumerate(older)}
        checkpoint.write(problem, problem.options.checkpoint, u, "time", t, step, vectors=vectors, **details)
        if problem.options.deterministic:
            reset_preconditioner(ts.getSNES().getKSP())
            if not method_history.is_bdf(ts):
                ts.restartStep()
                method_history.seek_slope_from_zero(ts, u)


def resume(problem, ts: PETSc.TS, u: PETSc.Vec) -> bool:
    """Put the state of `-fe_restart` into a TS that is ready to solve, and into u; False without one. Collective.

    Raises CheckpointError on all ranks.
    """
    found = wanted(problem, "time")
    if found is None:
        return False
    with smoothing(problem, ts.getSNES()):  # BDF may solve for its first half step again
        take(problem, ts, u, found)
    return True


def take(problem, ts: PETSc.TS, u: PETSc.Vec, found: checkpoint.Restart) -> None:
    """Put a state that a TS wrote into a TS and into u. Collective. Raises CheckpointError if the TS ends before it."""
    begin, end = ts.getTime(), ts.getMaxTime()
    slack = 1e-10 * max(abs(begin), abs(end))
    if not begin - slack <= found.t <= end + slack:
        raise CheckpointError(
            f"The checkpoint is of t = {found.t:g}, and this run goes from {begin:g} to {end:g}; restart the run that "
            "wrote it, or give a later end."
        )
    found.u.copy(u)
    ts.setStepNumber(found.step)
    if found.details["method"] == ts.getType() and method_history.is_bdf(ts):
        history = _history(found)
        method_history.repeat(ts, history, u)
        ts.setAttr(HISTORY, history)
    ts.setTime(found.t)
    ts.setTimeStep(found.details["dt"])
    method_history.tell_time_of_slope(ts, u)
    method_history.seek_slope_from_zero(ts, u)


def _history(found: checkpoint.Restart) -> History:
    history = History()
    older = found.details["history"]
    history.states = [(*times, found.vectors[f"u{k - len(older)}"]) for k, times in enumerate(older)]
    history.states.append((found.t, found.details["dt"], found.u))
    history.started = found.details["started"]
    return history


# Slabs -----------------------------------------------------------------------------------------------------------


def slabs_done(problem, u0: PETSc.Vec, times: tuple[float, float, int]) -> tuple[int, PETSc.Vec]:
    """Return the number of slabs done of a march from t0 to t1 in so many, and the state after them. Collective.

    Raises CheckpointError on all ranks.
    """
    found = wanted(problem, "slabs")
    if found is None:
        return 0, u0
    theirs = tuple(found.details["times"])
    if theirs != times:
        shown = ["from {:g} to {:g} in {} slabs".format(*each) for each in (theirs, times)]
        raise CheckpointError(
            f"The checkpoint {problem.options.restart} is of a march {shown[0]}, and this one goes {shown[1]}; restart "
            "with the march that it was written with."
        )
    return found.step, found.u


def after_slab(problem, ksp: PETSc.KSP, u: PETSc.Vec, t: float, step: int, times: tuple[float, float, int]) -> None:
    """Write the state after a slab if that is due, or the march ends. Collective."""
    results.write_after_step(problem, u, t, step, ends=step == times[2])
    if is_due(problem, step) or (problem.options.checkpoint and step == times[2]):
        checkpoint.write(problem, problem.options.checkpoint, u, "slabs", t, step, times=times)
        if problem.options.deterministic:
            reset_preconditioner(ksp)
