"""The states that PETSc's BDF keeps of former steps: watched from outside, and put back by repeating its last steps.

TSBDF hands its history to nobody. A stand-in for its SNES, which answers with states that are known, makes it go
through these steps again: the history is then what it was, to the last bit.
"""

from __future__ import annotations

from petsc4py import PETSc

from ..mesh import petsc_time


def is_bdf(ts: PETSc.TS) -> bool:
    return ts.getType() == PETSc.TS.Type.BDF


def depth(ts: PETSc.TS) -> int:
    """Former states that the next steps of a BDF of its order read, with the estimate of their errors."""
    order = petsc_time.bdf_order(ts)
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


class _StandIn:
    """A SNES (-snes_type python) whose solutions are given; the first is found by the true one if `first` is that."""

    def __init__(self, first: PETSc.SNES | None, answer: PETSc.Vec):
        self.first, self.answer = first, answer

    def solve(self, snes, b, x) -> None:
        reason = PETSc.SNES.ConvergedReason.CONVERGED_ITS
        if self.first is not None:
            self.first.solve(b, x)
            reason, self.first = self.first.getConvergedReason(), None
        else:
            self.answer.copy(x)
        snes.setConvergedReason(reason)


def repeat(ts: PETSc.TS, history: History, u: PETSc.Vec) -> None:
    """Take a new BDF through the steps of a history; u becomes the last state. Collective."""
    if len(history.states) < 2:
        return
    history.states[0][2].copy(u)
    ts.setSolution(u)
    ts.setUp()
    true = ts.getSNES()
    stand_in = PETSc.SNES().create(ts.comm)
    stand_in.setDM(ts.getDM())
    stand_in.setType(PETSc.SNES.Type.PYTHON)
    first_step = ts.getStepNumber() - len(history.states) + 1
    ts.setStepNumber(first_step)
    petsc_time.set_snes(ts, stand_in)
    try:
        with petsc_time.fixed_steps(ts):
            for (t, length, _), (_, _, after) in zip(history.states, history.states[1:], strict=False):
                begins = history.started and ts.getStepNumber() == first_step
                stand_in.setPythonContext(_StandIn(true if begins else None, after))
                ts.setTime(t)
                ts.setTimeStep(length)
                ts.step()
    finally:
        petsc_time.set_snes(ts, true)
        stand_in.destroy()
