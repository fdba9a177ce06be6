"""What PETSc's methods in time keep of former steps, put back at a restart: the states of BDF, the slope of ARKIMEX.

TSBDF hands its history to nobody. A stand-in for its SNES, which answers with states that are known, makes it go
through these steps again: the history is then what it was, to the last bit.

Since PETSc 3.20 an ARKIMEX or DIRK without an explicit part solves F(t, u, u_t) = 0 for u_t first. It evaluates F at
the time of the last stage it knows, which is 0 in a new TS, and begins with the last slope it knows (TSStep_ARKIMEX).
"""

from __future__ import annotations

from contextlib import contextmanager

from petsc4py import PETSc

from ...petsc import c_library
from ...petsc.lifetimes import Context

KINDS = ("arkimex", "dirk")
INSTANT = 1e-200  # length of a step that changes neither time nor state


class KnownSolutions(Context):
    """A SNES (-snes_type python) whose solutions are given; the first is found by the true one if `first` is that."""

    def __init__(self, answer: PETSc.Vec, first: PETSc.SNES | None = None):
        self.first, self.answer = first, answer

    def solve(self, snes, b, x) -> None:
        reason = PETSc.SNES.ConvergedReason.CONVERGED_ITS
        if self.first is not None:
            self.first.solve(b, x)
            reason, self.first = self.first.getConvergedReason(), None
        else:
            self.answer.copy(x)
        snes.setConvergedReason(reason)


@contextmanager
def by_known_solutions(ts: PETSc.TS, u: PETSc.Vec):
    """A block in which a TS with the state u makes fixed steps by a SNES that takes KnownSolutions. Collective.

    Gives that SNES and the true one.
    """
    ts.setSolution(u)
    ts.setUp()
    true = ts.getSNES()
    snes = PETSc.SNES().create(ts.comm)
    snes.setDM(ts.getDM())
    snes.setType(PETSc.SNES.Type.PYTHON)
    c_library.set_snes(ts, snes)
    try:
        with c_library.fixed_steps(ts):
            yield snes, true
    finally:
        c_library.set_snes(ts, true)
        snes.destroy()


def is_bdf(ts: PETSc.TS) -> bool:
    return ts.getType() == PETSc.TS.Type.BDF


def depth(ts: PETSc.TS) -> int:
    """Former states that the next steps of a BDF of its order read, with the estimate of their errors."""
    return c_library.bdf_order(ts) + 1


class History:
    """The last states of a TS and the steps that followed them.

    states [number] oldest first: (time, length of the step that follows, Vec); the last one is the present state.
    started: whether the oldest is where the TS began, so that it made a half step first.
    """

    def __init__(self):
        self.states: list[tuple[float, float, PETSc.Vec]] = []
        self.started = True

    def add(self, ts: PETSc.TS, t: float, u: PETSc.Vec) -> None:
        """Take the state u at time t, where a TS stands. Collective."""
        kept = self.states.pop(0)[2] if len(self.states) > depth(ts) else None
        if kept is None:
            kept = u.duplicate()
        else:
            self.started = False
        u.copy(kept)
        self.states.append((t, ts.getTimeStep(), kept))

    def clear(self) -> None:
        """Forget all states. Collective."""
        for _, _, vector in self.states:
            vector.destroy()
        self.states, self.started = [], True


def repeat(ts: PETSc.TS, history: History, u: PETSc.Vec) -> None:
    """Take a new BDF through the steps of a history; u becomes the last state. Collective."""
    if len(history.states) < 2:
        return
    history.states[0][2].copy(u)
    with by_known_solutions(ts, u) as (snes, true):
        first_step = ts.getStepNumber() - len(history.states) + 1
        ts.setStepNumber(first_step)
        for (t, length, _), (_, _, after) in zip(history.states, history.states[1:], strict=False):
            begins = history.started and ts.getStepNumber() == first_step
            snes.setPythonContext(KnownSolutions(after, true if begins else None))
            ts.setTime(t)
            ts.setTimeStep(length)
            ts.step()


def seeks_slope(ts: PETSc.TS) -> bool:
    """Return True if a TS looks for its first slope."""
    return ts.getType() in KINDS and hasattr(PETSc.TS.Type, "DIRK")


def tell_time_of_slope(ts: PETSc.TS, u: PETSc.Vec) -> None:
    """Let a new TS know at what time the state u is, by a step of no length whose stages are all u. Collective."""
    t, dt, step = ts.getTime(), ts.getTimeStep(), ts.getStepNumber()
    if not seeks_slope(ts) or t == 0:
        return
    with by_known_solutions(ts, u) as (snes, _):
        snes.setPythonContext(KnownSolutions(u.copy()))
        ts.setTimeStep(INSTANT)
        ts.step()
    ts.setTime(t)
    ts.setTimeStep(dt)
    ts.setStepNumber(step)
    ts.restartStep()


def seek_slope_from_zero(ts: PETSc.TS, u: PETSc.Vec) -> None:
    """Make the next search for a slope at the state u begin with 0, whatever was before. Collective."""
    states = [u.copy()] if seeks_slope(ts) else []

    def guess(snes, x) -> None:
        """0 at the first call, but for a stage, which begins with the state."""
        if states and not x.equal(states.pop()):
            x.set(0.0)

    if states:
        ts.getSNES().setInitialGuess(guess)
