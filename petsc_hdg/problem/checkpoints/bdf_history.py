"""The states that PETSc's BDF keeps of former steps: watched from outside, and put back by repeating its last steps.

TSBDF hands its history to nobody. A stand-in for its SNES, which answers with states that are known, makes it go
through these steps again: the history is then what it was, to the last bit.
"""

from __future__ import annotations

from contextlib import contextmanager

from petsc4py import PETSc

from ...petsc import stepping
from ...petsc.lifetimes import Context


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
    stepping.set_snes(ts, snes)
    try:
        with stepping.fixed_steps(ts):
            yield snes, true
    finally:
        stepping.set_snes(ts, true)
        snes.destroy()


def is_bdf(ts: PETSc.TS) -> bool:
    return ts.getType() == PETSc.TS.Type.BDF


def depth(ts: PETSc.TS) -> int:
    """Former states that the next steps of a BDF of its order read, with the estimate of their errors."""
    order = stepping.bdf_order(ts)
    return order + 1


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
