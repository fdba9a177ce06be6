"""Steady conservation laws that Newton's method does not solve from a guess: pseudo-transient continuation."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ... import log, operators
from ...database import any_given, defaults_in_database
from ...errors import SolveError
from ...mesh.order import samples
from ...value_checks import plural
from ..linear import cell_measures, solvers
from . import first_guess

NAME = "steps of pseudo time"
MOST = 100  # steps, after which there is no steady state
SETTINGS = {"ts_type": "pseudo", "ts_pseudo_increment": "1.5", "ts_max_steps": f"{MOST}"}
LONG = 1e9  # first steps, after which an end time is no matter


def is_open(problem) -> bool:
    """True if steps of pseudo time are worth trying: of a conservation law by traces with solvers and steps that are
    not the user's."""
    if problem.derivative != "flow" or problem.physics.has_jacobian or not first_guess.is_default(problem):
        return False
    return not any_given(f"{problem.prefix}ts_", "")


def solve(problem, u: PETSc.Vec) -> None:
    """Solve from u by Newton's method, and where that fails from what steps of pseudo time lead to. Collective."""
    problem.tried, begin = [], u.copy()
    problem.watch.has_another = True
    failure = first_guess.attempt(problem, u, "Newton's method from the guess")
    problem.watch.has_another = False
    if failure is not None and first_guess.take(steady(problem, begin), u):
        failure = first_guess.attempt(problem, u, f"Newton's method from the state of {NAME}")
    begin.destroy()
    if isinstance(failure, SolveError):
        raise SolveError(f"{failure}{solvers.told(problem.tried)}")


def steady(problem, guess: PETSc.Vec) -> PETSc.Vec | None:
    """Return the steady state that steps of pseudo time lead to from a guess; None if they do not. Collective."""
    start, count, physics = _with_cells(problem, guess), problem.discretization.dofmap.num_owned, problem.given_physics
    dt = _first_step(problem, start[count:])
    if not (np.isfinite(dt) and dt > 0):
        return None

    def solve(other) -> PETSc.Vec:
        u = other.create_vec()
        u.setArray(start)
        return other.solve_in_time(u, LONG * dt, dt)

    with defaults_in_database(problem.prefix, SETTINGS, unless="ts_type"):
        rates = physics if physics.uses_time_derivative else physics.with_rates()
        solved = first_guess.solved_by(problem, NAME, solve, physics=rates)
    if solved is None or solved[0].time_steps >= MOST:
        return None
    other, found = solved
    steps = plural(other.time_steps, "step")
    line = f"steady solver: {steps} of pseudo time, because Newton's method came to no solution"
    log.info("%s", line)
    if problem.options.view:
        PETSc.Sys.Print(f"  {line}", comm=problem.petsc_comm)
    u = problem.create_vec()
    u.setArray(found.getArray(readonly=True)[: u.getLocalSize()])
    return u


def _with_cells(problem, guess: PETSc.Vec) -> np.ndarray:
    """Values [owned] of trace and cells at a guess, those of cells from the trace unless it has them. Collective."""
    values = guess.getArray(readonly=True).copy()
    if problem.has_cell_states:
        return values
    operator = problem.operator
    operator.forget_interior()
    with problem.access.read(guess) as x:
        operator.begin(x)
    return np.concatenate([values, operators.read_interior(operator, operator.interior).T.ravel()])


def _first_step(problem, cells: np.ndarray) -> float:
    """Median of the time [1] that the fastest wave takes through a cell, at the cells' mean states. Collective."""
    mesh, dim, components, times = problem.mesh, problem.mesh.dim, problem.physics.num_components, []
    states, interpreter = cells.reshape(mesh.num_cells, -1, components).mean(axis=1), problem.physics.interpreter(dim)
    flat = np.zeros((components, dim))
    for cell in samples(mesh.num_cells, cell_measures.SAMPLES):
        nodes = mesh.geometry.nodes[mesh.geometry.cell_nodes[cell]]
        inputs = cell_measures.sampled_inputs(problem, cell, nodes.mean(axis=0))
        with np.errstate(all="ignore"):
            slopes = interpreter.g_blocks(states[cell], flat[:, 0], flat, *inputs)[2]
        if np.isfinite(slopes).all():
            speed = max(np.abs(np.linalg.eigvals(slopes[:, :, d])).max() for d in range(dim))
            times.append(np.ptp(nodes, axis=0).min() / speed if speed > 0 else np.inf)
    return cell_measures.median(problem, times)
