"""Nonlinear condensed problems whose local problems have no solution on the way: Newton's method on trace and cells.

SNES sees the trace alone and each residual solves the local problems, which is robust only near the solution: with a
trace that is far off a cell may have no solution, however short the steps of the trace. Where SNES fails, damped steps
change trace and interior together, as in any other scheme, and SNES goes on from what they find.
"""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ..operators import JointState
from ..operators.condensed.joint import read_interior, write_interior
from . import assembled_instead, direct, following, preconditioners
from .interiors import Interiors

PATIENCE = 8  # residuals in which local problems fail before the solver of the trace is left
DECREASE = 1e-4  # of the norm by a full step, that a shorter one is to reach in proportion
LEAST_DAMPING = 1e-8
ENOUGH = 1e-4  # of the norm at first, from which on SNES may go on where rounding lets it fall no more
SHORTER = 0.1, 0.5  # bounds of a step that is tried next, relative to the last


def solve(problem, u: PETSc.Vec) -> None:
    """Let SNES work on u, from u on; where it fails, a nonlinear condensed problem takes trace and cells together.

    Collective.
    """
    if not Interiors.are_kept(problem):
        following.solve(problem, u)
        return
    operator, snes, guess, interior = problem.operator, problem.snes, u.copy(), _kept_interior(problem, u)
    operator.patience = PATIENCE
    try:
        problem.solve_from(u)
    finally:
        operator.patience = None
    if snes.getConvergedReason() < 0:
        failure = operator.failure
        joint = JointNewton(problem, guess, read_interior(operator, interior))
        if joint.reach():
            guess.copy(u)
            joint.finish(u)
        else:
            operator.failure = failure
    guess.destroy()


def _kept_interior(problem, u: PETSc.Vec):
    """Buffer of the interior that goes with a guess u: that of the last solve, or zero with zero. Collective."""
    arrays, operator, disc = problem.arrays, problem.operator, problem.discretization
    count = max(1, disc.num_eliminated * disc.stride)
    kept = arrays.zeros(count)
    if u.norm() > 0:
        arrays.copy(operator.interior, kept, count)
    return kept


class JointNewton:
    """Newton's method with backtracking from a trace u, which it changes in place, and an interior [dof, cell]."""

    def __init__(self, problem, u: PETSc.Vec, interior: np.ndarray):
        self.problem, self.u = problem, u
        self.joint = JointState(problem.operator)
        self.joint.interior = interior
        self.step, self.work = u.duplicate(), u.duplicate()
        self.first = self.norm = self._norm(u, interior)

    def reach(self) -> bool:
        """Whether the norm of the residual falls as SNES is asked to make it fall, or nearly. Collective."""
        rtol, atol, _, most = self.problem.snes.getTolerances()
        for step in range(most):
            self._monitor(step)
            if self._is_reached(rtol, atol):
                break
            if not np.isfinite(self.norm) or not self._advance():
                return self._is_reached(ENOUGH, atol)
            self.problem.newton_iterations += 1
        return self._is_reached(rtol, atol)

    def _monitor(self, step: int) -> None:
        if self.problem.checkpoints.monitor is None:  # which would write the iterate of SNES
            self.problem.snes.monitor(step, self.norm)

    def _is_reached(self, rtol: float, atol: float) -> bool:
        return self.norm <= max(atol, rtol * self.first)

    def finish(self, u: PETSc.Vec) -> None:
        """Let SNES say that u, where the interior is that of `reach`, is a solution, or make it one. Collective."""
        snes = self.problem.snes
        rtol, atol, stol, most = snes.getTolerances()
        write_interior(self.problem.operator, self.joint.interior)
        snes.setTolerances(atol=max(atol, rtol * self.first))
        try:
            self.problem.solve_from(u)
        finally:
            snes.setTolerances(rtol=rtol, atol=atol, stol=stol, max_it=most)

    def _norm(self, u: PETSc.Vec, interior: np.ndarray) -> float:
        """Norm of the residual of trace and interior. Collective."""
        access = self.problem.access
        with access.read(u) as x, access.write(self.work) as out:
            inner = self.joint.residual(x, interior, out)
        found = np.sqrt(self.work.norm() ** 2 + self.problem.comm.allreduce(inner))
        return float(found) if np.isfinite(found) else np.inf

    def _advance(self) -> bool:
        """One step, as long as lets the norm fall; False where none does, or the linear solver fails. Collective."""
        if not self._solve_linear():
            return False
        trial = self.u.duplicate()
        self.step.scale(-1.0)
        with self.problem.access.read(self.step) as minus_w:
            change = self.joint.target(minus_w) - self.joint.interior
        damping, before = 1.0, self.joint.interior
        while damping >= LEAST_DAMPING:
            trial.waxpy(damping, self.step, self.u)
            interior = before + damping * change
            norm = self._norm(trial, interior)
            if norm <= (1 - DECREASE * damping) * self.norm:
                trial.copy(self.u)
                self.joint.interior, self.norm = interior, norm
                break
            damping = _shorter(damping, self.norm, norm)
        trial.destroy()
        return damping >= LEAST_DAMPING

    def _solve_linear(self) -> bool:
        """`step` = the trace's part of Newton's step. Collective."""
        problem, snes = self.problem, self.problem.snes
        for _ in range(3):
            with preconditioners.smoothing(problem, snes), direct.impatient(problem, snes):
                self._solve_once(snes.getKSP())
            problem.linear_iterations += snes.getKSP().getIterationNumber()
            if not assembled_instead.changes_course(problem, snes):
                break
        return snes.getKSP().getConvergedReason() >= 0

    def _solve_once(self, ksp: PETSc.KSP) -> None:
        calls = self.problem.callbacks
        with self.joint.held():
            calls.linearize(None, self.u, calls.jacobian, calls.preconditioning)
        with self.problem.access.write(self.work) as out:
            self.joint.condensed(out)
        ksp.setOperators(calls.jacobian, calls.preconditioning)
        ksp.solve(self.work, self.step)


def _shorter(damping: float, before: float, norm: float) -> float:
    """The damping to try next: where the parabola through the squares, whose slope is known, is least."""
    square, least = before**2, SHORTER[0] * damping
    bend = norm**2 - square + 2 * damping * square
    return float(np.clip(damping**2 * square / bend if np.isfinite(bend) else least, least, SHORTER[1] * damping))
