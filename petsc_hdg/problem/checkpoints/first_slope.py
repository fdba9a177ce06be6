"""Where ARKIMEX begins, or begins anew: the slope u_t of its first stage, at the right time and from the same guess.

Since PETSc 3.20 an ARKIMEX or DIRK without an explicit part solves F(t, u, u_t) = 0 for u_t first. It evaluates F at
the time of the last stage it knows, which is 0 in a new TS, and begins with the last slope it knows (TSStep_ARKIMEX).
"""

from __future__ import annotations

from petsc4py import PETSc

from .bdf_history import KnownSolutions, by_known_solutions

KINDS = ("arkimex", "dirk")
INSTANT = 1e-200  # length of a step that changes neither time nor state


def is_sought(ts: PETSc.TS) -> bool:
    """Return True if a TS looks for its first slope."""
    return ts.getType() in KINDS and hasattr(PETSc.TS.Type, "DIRK")


def tell_time(ts: PETSc.TS, u: PETSc.Vec) -> None:
    """Let a new TS know at what time the state u is, by a step of no length whose stages are all u. Collective."""
    t, dt, step = ts.getTime(), ts.getTimeStep(), ts.getStepNumber()
    if not is_sought(ts) or t == 0:
        return
    with by_known_solutions(ts, u) as (snes, _):
        snes.setPythonContext(KnownSolutions(u.copy()))
        ts.setTimeStep(INSTANT)
        ts.step()
    ts.setTime(t)
    ts.setTimeStep(dt)
    ts.setStepNumber(step)
    ts.restartStep()


def seek_from_zero(ts: PETSc.TS, u: PETSc.Vec) -> None:
    """Make the next search for a slope at the state u begin with 0, whatever was before. Collective."""
    if is_sought(ts):
        ts.getSNES().setInitialGuess(_Zero(u.copy()))


class _Zero:
    """An initial guess of SNES: 0 at its first call, but for a stage, which begins with the state."""

    def __init__(self, state: PETSc.Vec):
        self._state: PETSc.Vec | None = state

    def __call__(self, snes, x) -> None:
        state, self._state = self._state, None
        if state is not None and not x.equal(state):
            x.set(0.0)
