"""Checkpoints within a nonlinear solve, and between the steps of a load."""

from __future__ import annotations

import weakref
from contextlib import contextmanager

import numpy as np
from petsc4py import PETSc

from ...errors import CheckpointError, OptionError
from ...progress import PROGRESS
from ...value_checks import plural, shown
from ..input_data import require_vec
from ..linear.kept_levels import reset_preconditioner
from ..linear.solvers import own_tolerances
from ..results import results
from . import checkpoint
from .checkpoint_schedule import is_due, wanted


class NewtonMonitor:
    """A monitor of SNES that writes Newton's iterate after each interval.

    before  steps of Newton's method that the solve had done when it was interrupted
    norm    of the residual where the solve began, to which its relative tolerance belongs
    """

    def __init__(self, problem):
        self._problem = weakref.ref(problem)  # which keeps the SNES
        self.before, self.norm, self.written = 0, None, 0

    def __call__(self, snes, step: int, norm: float) -> None:
        problem = self._problem()
        if problem is None:
            return
        if step == 0 and self.norm is None:
            self.norm = norm
        done = self.before + problem.newton_iterations + step  # with those of the runs of SNES before this one
        if step and is_due(problem, done):
            self.write(problem, snes, snes.getSolution(), done, within=True)

    def write(self, problem, snes, u, step: int, within: bool = False) -> None:
        """Write u after so many steps of Newton's method; within: there are more to come. Collective."""
        details = {"newton": step, "norm": self.norm}
        checkpoint.write(
            problem, problem.options.checkpoint, u, "newton", 0.0, problem.checkpoints.loads or 0, **details
        )
        self.written = step
        if problem.options.deterministic:
            reset_preconditioner(snes.getKSP())
            if within and problem.is_condensed and problem.operator.follows_solution:
                problem.operator.restart()  # as a restart does; SNES makes single steps, see joint_newton
            elif problem.checkpoints.interiors is not None:  # a restart begins with a residual, which changes them
                snes.computeFunction(u, snes.getFunction()[0])


def watch(problem, snes: PETSc.SNES) -> NewtonMonitor | None:
    """Let a SNES write checkpoints, if `-fe_checkpoint` asks for them and there is something to iterate."""
    if not problem.options.checkpoint or problem.physics.is_linear:
        return None
    monitor = NewtonMonitor(problem)
    snes.setMonitor(monitor)
    return monitor


@contextmanager
def resumed(problem, u: PETSc.Vec):
    """A solve with `problem.snes` from u, or from the iterate of `-fe_restart`, to the tolerances that it began with.

    Gives whether it goes on from such an iterate.
    After the block the solution is a checkpoint. Collective. Raises CheckpointError on all ranks.
    """
    details = _iterate(problem, u)
    if problem.physics.is_linear:
        yield False
        return
    snes, monitor = problem.snes, problem.checkpoints.monitor
    before = details.get("newton", 0)
    if monitor is not None:
        monitor.before, monitor.norm, monitor.written = before, details.get("norm"), before
    with own_tolerances(snes) as (rtol, atol, _, most), checkpoint.deferred_signals(problem):
        if details and (problem.is_condensed or not problem.operator.follows_solution):
            snes.setTolerances(atol=max(atol, rtol * details["norm"]), max_it=max(most - before, 1))
        yield bool(details)
    problem.newton_iterations += before
    if monitor is not None and problem.checkpoints.loads is None and problem.newton_iterations > monitor.written:
        monitor.write(problem, snes, u, problem.newton_iterations)


def _iterate(problem, u: PETSc.Vec) -> dict:
    """Details of the iterate that the solve goes on from, put into u; nothing if it begins. Collective."""
    if problem.checkpoints.interrupted is None and problem.checkpoints.loads is None:
        found = wanted(problem, "newton", others=True)
        if found is not None:
            found.u.copy(u)
            return found.details
    details, problem.checkpoints.interrupted = problem.checkpoints.interrupted or {}, None
    return details


def load_steps(problem, values, u: PETSc.Vec):
    """See Problem.load_steps."""
    require_vec(problem, u)
    if isinstance(values, str | PETSc.Vec) or not np.iterable(values):
        raise OptionError(f"The steps of a load are given as {shown(values)}; give a list of its values.")
    values, done = list(values), 0
    found = wanted(problem, "loads", "newton")
    if found is not None:
        done = found.step
        found.u.copy(u)
        problem.checkpoints.interrupted = found.details if found.kind == "newton" else None
        if done > len(values):
            raise CheckpointError(
                f"The checkpoint {problem.options.restart} has {plural(done, 'step')} of a load behind it, and this "
                f"run has {len(values)}; restart with the steps that it was written with."
            )
    try:
        with PROGRESS.task("load"):
            for number in range(done, len(values)):
                problem.checkpoints.loads = number
                PROGRESS.count("load step", number, len(values))
                yield values[number]
                results.write_after_step(problem, u, 0.0, number + 1, ends=number + 1 == len(values), time=number + 1)
                if is_due(problem, number + 1) or (problem.options.checkpoint and number + 1 == len(values)):
                    checkpoint.write(problem, problem.options.checkpoint, u, "loads", 0.0, number + 1)
                    if problem.options.deterministic:
                        reset_preconditioner(problem.snes.getKSP())
    finally:
        problem.checkpoints.loads = None
