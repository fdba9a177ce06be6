"""Solve a problem in the full setting (`-hdg_setting full`): u, q and the trace at once."""

from __future__ import annotations

from petsc4py import PETSc

from ... import operators
from ...options import database
from ..checks import diagnosis
from ..linear import methods, solvers
from . import joint_newton, monitors


def solve_full(problem, guess: PETSc.Vec | None = None) -> PETSc.Vec:
    """The trace of the solution of all unknowns together, from a guess of the trace; collective.

    `problem.full` keeps (u [cell, dof], q̃ [cell, dim, basis, component]) in the frames of the reference cell. The
    default solver factors the matrix; PETSc's options choose another, GMRES around a -pc_type. Raises OptionError for a
    problem that is too large, SolveError if the solver stops without a solution.
    """
    problem.callbacks  # noqa: B018  complains of data that are missing, and checks the kernels of recovery
    system = operators.FullSystem(problem.operator, problem.access)
    snes = _create_snes(problem, system)
    trace = problem.create_vec() if guess is None else guess.copy()
    x = system.join(trace)
    problem.newton_iterations = problem.linear_iterations = 0
    problem.operator.restart()
    with problem.access.read(trace) as owned:
        problem.operator.begin(owned)
    for _ in range(joint_newton.ROUNDS):
        system.follow()
        snes.solve(None, x)
        problem.newton_iterations += snes.getIterationNumber()
        problem.linear_iterations += snes.getLinearSolveIterations()
        solvers.check_converged(snes)
        *problem.full, trace = system.split(x)
        if problem.physics.is_linear:
            break
        operators.write_interior(problem.operator, problem.full[0].T)
        if monitors.is_settled(problem, trace):
            break
    diagnosis.require_finite(problem, trace)
    for thing in (snes, x, system.matrix):
        thing.destroy()
    return trace


def _create_snes(problem, system: operators.FullSystem) -> PETSc.SNES:
    snes = PETSc.SNES().create(problem.petsc_comm)
    if problem.prefix:
        snes.setOptionsPrefix(problem.prefix)
    snes.setFunction(system.residual, system.create_vec())
    snes.setJacobian(system.linearize, system.matrix, system.matrix)
    if problem.physics.is_linear:
        snes.setType("ksponly")
    is_given = database.is_given(problem.prefix, "pc_type")  # one application of it is no solution
    snes.getKSP().setType("gmres" if is_given else "preonly")
    methods.set_tolerances(problem, snes)
    pc = snes.getKSP().getPC()
    if problem.comm.size == 1:
        pc.setType("lu")
    elif PETSc.Sys.hasExternalPackage("mumps"):
        pc.setType("lu")
        pc.setFactorSolverType("mumps")
    else:
        pc.setType("redundant")
    solvers.set_from_options(snes)
    return snes
