"""A SNES whose answers are known, in the place of that of a TS: steps that cost nothing, and leave it a past."""

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
