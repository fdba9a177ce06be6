"""Nonlinear condensed problems whose local problems have no solution on the way: Newton's method on trace and cells.

SNES sees the trace alone and each residual solves the local problems, which is robust only near the solution: with a
trace that is far off a cell may have no solution, however short the steps of the trace. Where SNES fails, damped steps
change trace and interior together, as in any other scheme, and SNES goes on from what they find.
"""

from __future__ import annotations

import weakref

import numpy as np
from petsc4py import PETSc

from ... import operators
from ...database import is_given
from ...discretizations.canonical import cell_keys, inside_space
from ...errors import LeftSolverError, SolveError
from ...mesh.canonical import GlobalOrder
from ...operators import read_interior, write_interior
from .. import assembled_fallback, solution_checks
from ..linear import direct_solvers, preconditioners, solvers
from . import first_guess, monitors

APPROACH = 10  # steps of Newton's method by themselves, at most, while the stabilization follows the state
PATIENCE = 4  # residuals in which local problems fail before the solver of the trace is left
DECREASE = 1e-4  # of the norm by a full step, that a shorter one is to reach in proportion
LEAST_DAMPING = 1e-12  # as in SNESLINESEARCHBT
RAISE = 30.0  # of a stabilization that follows the state, where local problems fail: it ties cells to their trace
ROUNDS = 5  # solves with a stabilization that the solution of the last one asks for
ENOUGH = 1e-4  # of the norm at first, from which on SNES may go on where rounding lets it fall no more
SHORTER = 0.1, 0.5  # bounds of a step that is tried next, relative to the last


def solve(problem, u: PETSc.Vec, goes_on: bool = False, is_open: bool = False) -> None:
    """Solve from u by SNES; if that fails, a nonlinear condensed problem solves for trace and interior together.

    If that fails too, or cells do not hold to their trace, it is solved again from the guess moved with the data
    (first_guess), and from the solution of continuous elements. With `is_open`, or where constants have changed since
    the last solution, as a load does, it begins at the moved guess, and the second try at the guess.
    goes_on: u is an iterate of a solve whose first steps are done.
    is_open: the user gives no guess. Collective.
    """
    if not Interiors.are_kept(problem):
        first_guess.solve(problem, u, is_open)
        return
    snes, guess, problem.tried, moved = problem.snes, u.copy(), [], None
    if is_open or (first_guess.are_constants_new(problem) and not goes_on):
        moved = first_guess.moved_with_data(problem, guess)
        if first_guess.take(moved, u) and not is_open:
            problem.operator.forget_interior()
    first_guess.note(problem, f"Newton's method from {first_guess.MOVED if moved is not None else 'the guess'}")
    problem.watch.has_another = in_time = first_guess.may_take_pseudo_time(problem) and not goes_on
    _solve_condensed(problem, u, goes_on)
    problem.watch.has_another = False
    others = [
        lambda: guess if moved is not None else first_guess.moved_with_data(problem, guess),
        lambda: first_guess.by_pseudo_time(problem, guess) if in_time else None,
        lambda: first_guess.by_continuous_elements(problem, guess),
    ]
    while others and not (goes_on or (snes.getConvergedReason() >= 0 and solution_checks.is_trace_sound(problem, u))):
        found = _Solution(problem, u) if snes.getConvergedReason() >= 0 else None
        if first_guess.take(others.pop(0)(), u):
            problem.operator.forget_interior()
            _solve_condensed(problem, u)
            if found is not None and snes.getConvergedReason() < 0:
                found.put_back(u)
    guess.destroy()


class _Solution:
    """A solution of trace and cells, with its stabilization."""

    def __init__(self, problem, u: PETSc.Vec):
        operator = problem.operator
        self.problem, self.trace, self.interior = problem, u.copy(), operators.kept_interior(operator)
        self.tau = operator.stabilization.values() if operator.follows_solution else None

    def put_back(self, u: PETSc.Vec) -> None:
        """Have it as the solution u again. Collective."""
        operator = self.problem.operator
        self.trace.copy(u)
        operators.restore_interior(operator, self.interior)
        if self.tau is not None:
            operator.stabilization.write(self.tau)
        self.problem.solve_from(u)


def _solve_condensed(problem, u: PETSc.Vec, goes_on: bool = False) -> None:
    """Solve from u by SNES, or for trace and interior together. Collective.

    A state-dependent stabilization is recomputed after each of Newton's first steps, and after each solve until it
    suits the solution. If the first steps fail, a larger stabilization is used until there is a solution; if what
    follows them fails, one that is larger than that of the guess, from there.
    """
    operator, snes, guess = problem.operator, problem.snes, u.copy()
    begin = _Begin(snes)
    _begin_local(problem, u)
    with solvers.own_tolerances(snes):
        may_rise, factor = operator.follows_solution and not goes_on, RAISE
        if may_rise and not _approach(problem, u, begin):
            operator.stabilization.scale(RAISE)
            factor = RAISE**2
        _solve_once(problem, u, begin)
        if snes.getConvergedReason() < 0 and may_rise and not is_given(problem.prefix, "snes_max_it"):
            guess.copy(u)
            operator.forget_interior()
            _begin_local(problem, u)
            operator.stabilization.scale(factor)
            begin.steps = 0
            begin.allow(begin.left)
            _solve_once(problem, u, begin)
        for _ in range(ROUNDS):
            begin.note()
            if snes.getConvergedReason() < 0 or not operator.follows_solution or not _follow(problem, u, begin):
                break
    guess.destroy()


def _begin_local(problem, u: PETSc.Vec) -> None:
    """Let local problems begin at u. Collective."""
    with problem.access.read(u) as x:
        problem.operator.begin(x)


def _follow(problem, u: PETSc.Vec, begin: _Begin) -> bool:
    """From a solution u solve with the stabilization that belongs to it, unless the one there is suits; where that
    fails leave the solution as it was. Whether there is a new one. Collective.
    """
    operator, snes, solution = problem.operator, problem.snes, _Solution(problem, u)
    changed = not monitors.is_settled(problem, u)
    if changed:
        operator.patience = PATIENCE  # there is a solution already
        try:
            _run(problem, u, begin)
        finally:
            operator.patience = None
        changed = snes.getConvergedReason() >= 0
        if not changed:
            solution.put_back(u)
    return changed


class _Begin:
    """Where several runs of a SNES begin: the norm of the residual there, to which the relative tolerance belongs."""

    def __init__(self, snes: PETSc.SNES):
        self.snes, self.norm, self.steps = snes, None, 0
        self.rtol, self.atol, _, self.most = snes.getTolerances()

    def note(self) -> None:
        """A run has ended; the next one is to reach what the first one was to reach, in the steps that are left."""
        if self.norm is None:
            history = self.snes.getConvergenceHistory()[0]
            self.norm = float(history[0]) if len(history) and np.isfinite(history[0]) else 0.0
        self.steps += self.snes.getIterationNumber()
        self.allow(self.left)

    @property
    def left(self) -> int:
        return max(self.most - self.steps, 0)

    def allow(self, steps: int) -> None:
        """Let the next run make so many steps."""
        self.snes.setTolerances(atol=max(self.atol, self.rtol * (self.norm or 0.0)), max_it=steps)


def _approach(problem, u: PETSc.Vec, begin: _Begin) -> bool:
    """Newton's steps one by one, each with the stabilization of the state before, until that of a state suits the next;
    where one fails, u stays where the last one led. Whether all went well. Collective.
    """
    operator, snes, reached = problem.operator, problem.snes, u.copy()
    for _ in range(min(APPROACH, begin.left)):
        interior = operators.kept_interior(operator)
        begin.allow(1)
        operator.patience = PATIENCE
        problem.solve_from(u)
        operator.patience = None
        reason = snes.getConvergedReason()
        if reason < 0 and reason != PETSc.SNES.ConvergedReason.DIVERGED_MAX_IT:
            reached.copy(u)
            operators.restore_interior(operator, interior)
            break
        reason = max(reason, 0)
        begin.note()
        u.copy(reached)
        if reason > 0 or not operator.stabilization.is_known or monitors.is_settled(problem, u):
            break  # what is not known belongs to a checkpoint, from which on a restart makes no first steps
    begin.allow(begin.left)
    reached.destroy()
    return reason >= 0


def _solve_once(problem, u: PETSc.Vec, begin: _Begin) -> None:
    """Let SNES work on u, or where it fails Newton's method on trace and cells and SNES after it. Collective."""
    operator, snes, guess = problem.operator, problem.snes, u.copy()
    interior = operators.kept_interior(operator)
    operator.patience = PATIENCE
    try:
        _run(problem, u, begin)
    finally:
        operator.patience = None
    if snes.getConvergedReason() < 0:
        failure = operator.failure
        joint = JointNewton(problem, guess, operators.read_interior(operator, interior))
        if joint.reach():
            guess.copy(u)
            joint.finish(u)
        else:
            operator.failure = failure
    guess.destroy()


def _run(problem, u: PETSc.Vec, begin: _Begin) -> None:
    """Let SNES work on u; step by step where a checkpoint within may find the stabilization anew, as a restart does.
    Collective."""
    stops = problem.checkpoints.monitor is not None and problem.options.deterministic
    while stops and problem.operator.follows_solution and begin.left > 1:
        begin.allow(1)
        problem.solve_from(u)
        if problem.snes.getConvergedReason() != PETSc.SNES.ConvergedReason.DIVERGED_MAX_IT:
            return
        begin.note()
    with problem.watch.on(problem.snes):
        problem.solve_from(u)


class JointNewton:
    """Newton's method with backtracking from a trace u, which it changes in place, and an interior [dof, cell]."""

    def __init__(self, problem, u: PETSc.Vec, interior: np.ndarray):
        self.problem, self.u = problem, u
        self.joint = operators.JointState(problem.operator)
        self.joint.interior = interior
        self.step, self.work = u.duplicate(), u.duplicate()
        self.first = self.norm = self._norm(u, interior)

    def reach(self) -> bool:
        """Return True if the norm of the residual falls as SNES is asked to make it fall, or nearly. Collective."""
        (rtol, atol, _, most), norms = self.problem.snes.getTolerances(), []
        for step in range(most):
            self._monitor(step)
            norms.append(self.norm)
            if self._is_reached(rtol, atol):
                break
            if not np.isfinite(self.norm) or self.problem.watch.is_fruitless(norms) or not self._advance():
                return self._is_reached(ENOUGH, atol)
            self.problem.newton_iterations += 1
            operators.write_interior(self.problem.operator, self.joint.interior)
            if not monitors.is_settled(self.problem, self.u):  # the stabilization has changed
                self.norm = self._norm(self.u, self.joint.interior)
        return self._is_reached(rtol, atol)

    def _monitor(self, step: int) -> None:
        if self.problem.checkpoints.monitor is None:  # which would write the iterate of SNES
            self.problem.snes.monitor(step, self.norm)

    def _is_reached(self, rtol: float, atol: float) -> bool:
        return bool(np.isfinite(self.norm)) and self.norm <= max(atol, rtol * self.first)

    def finish(self, u: PETSc.Vec) -> None:
        """Let SNES say that u, where the interior is that of `reach`, is a solution, or make it one. Collective."""
        snes = self.problem.snes
        operators.write_interior(self.problem.operator, self.joint.interior)
        with solvers.own_tolerances(snes) as (rtol, atol, *_):
            snes.setTolerances(atol=max(atol, rtol * self.first))
            self.problem.solve_from(u)

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
            try:
                with preconditioners.smoothing(problem, snes), direct_solvers.impatient(problem, snes):
                    self._solve_once(snes.getKSP())
            except LeftSolverError:
                raise
            except SolveError:  # of a local problem that is singular
                return False
            problem.linear_iterations += snes.getKSP().getIterationNumber()
            if not assembled_fallback.changes_course(problem, snes):
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


class Interiors:
    """Where local Newton iterations begin, in the order that is the same for every partition. Making one is collective.

    order: GlobalOrder of the eliminated unknowns of this rank's cells, [cell, dof] flat.
    """

    def __init__(self, problem):
        self._problem, disc = weakref.ref(problem), problem.discretization  # which keeps this
        cells = problem.checkpoints.unknowns.cells
        keys = cell_keys(cells, [inside_space(disc)])
        bound = max(1, cells.total * keys.shape[1])
        # Functions of the trace, where the element has them, stand before those that are eliminated.
        self.order = GlobalOrder.of_keys(problem.comm, keys[:, keys.shape[1] - disc.num_eliminated :].ravel(), bound)

    @staticmethod
    def are_kept(problem) -> bool:
        """Return True if results depend on where local iterations begin, in their last bits."""
        disc = problem.discretization
        return (
            problem.is_condensed and not problem.has_cell_states and not problem.physics.is_linear
            and disc.num_eliminated > 0
        )  # fmt: skip

    def collect(self) -> np.ndarray:
        """This rank's block [count] of the interiors of all cells. Collective."""
        operator = self._problem().operator
        return self.order.collect(read_interior(operator, operator.interior).T.ravel())

    def take(self, block: np.ndarray, u) -> None:
        """Let local iterations at a trace u begin at interiors from the blocks [count] of all ranks. Collective."""
        problem = self._problem()
        shape = problem.mesh.num_cells, problem.discretization.num_eliminated
        write_interior(problem.operator, self.order.deal(block).reshape(shape).T)
        with problem.access.read(u) as x:
            problem.operator.note_solved(x)
