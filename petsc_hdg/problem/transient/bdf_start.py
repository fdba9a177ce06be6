"""First steps of BDF of order 3 and more with fixed steps: states of enough order in the place of PETSc's.

TSBDF begins with orders 1, 2, …, whose errors, of order dt², remain where u_tt(0) ≠ 0. Here each of the first steps is
made by backward Euler in 1, 2, … parts, extrapolated to parts of no length (Hairer, Wanner 1996, section IV.9), too. It
asks nothing of the state but u where u has time derivatives, as BDF. TSBDF takes the state that it finds after a step
into its history.
"""

from __future__ import annotations

import weakref

from petsc4py import PETSc

from ...petsc import stepping
from ..checkpoints.bdf_history import is_bdf


class Start:
    """Hooks before and after each step of a TS; `form` gives a TS the problem's system."""

    def __init__(self, problem, form):
        self._problem, self._form = weakref.ref(problem), form  # the problem may itself keep the TS
        self._state: PETSc.Vec | None = None

    def before(self, ts) -> None:
        """Find the state after the step that begins. Collective."""
        problem, self._state = self._problem(), None
        if problem is None or not is_bdf(ts) or stepping.adapt_type(ts) != b"none":
            return
        order = stepping.bdf_order(ts)
        if order > 2 and ts.getStepNumber() < order:
            self._state = _extrapolated(self._form(problem), ts, order - 1)

    def after(self, ts) -> None:
        """Put the state that was found into the TS, which must not begin anew there. Collective."""
        state, self._state = self._state, None
        if state is not None:
            u = ts.getSolution()
            version = u.stateGet()
            state.copy(u)
            u.stateSet(version)
            state.destroy()


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
