"""The assembled matrix in the place of levels: for solvers of the user's own and PCs that need one, and where two
levels turn out not to suit a trace."""

from __future__ import annotations

from petsc4py import PETSc

from ..database import is_given
from ..errors import collectively
from ..operators.callbacks import INDEFINITE
from ..options import MATRIX_FREE_PCS
from . import cells_in_time, matrices
from .linear import direct_solvers, preconditioners, solvers, two_level

_REASON = PETSc.KSP.ConvergedReason
# What numbers beyond the range of floats lead to.
BEYOND_RANGE = (
    _REASON.DIVERGED_NANORINF,
    _REASON.DIVERGED_PCSETUP_FAILED,
    _REASON.DIVERGED_BREAKDOWN,
    _REASON.DIVERGED_DTOL,
)
# An indefinite matrix, as of Helmholtz' equation, and methods that its levels mislead.
WITHOUT_MATRIX = "conforming", "none"  # defaults of traces
# Iterations with facet blocks that cost as much as a matrix and its incomplete factors, which are the host's.
MOST_WITH_BLOCKS, MOST_ON_DEVICE = 150, 1000
FAILURES = (*INDEFINITE, _REASON.DIVERGED_DTOL, _REASON.DIVERGED_BREAKDOWN, _REASON.DIVERGED_BREAKDOWN_BICG)


def changes_course(problem, snes: PETSc.SNES) -> bool:
    """Return True if the linear solver failed and the next solve uses another one: levels in double precision, LU for a
    small problem, else a method for indefinite matrices. Collective."""
    if takes_double(problem, snes):
        return True
    indefinite = preconditioners.met_indefinite(problem, snes)
    if indefinite and (two_level.takes_factors(problem, False) or takes_factors(problem, snes)):
        return True
    return leaves_levels(problem, snes) or indefinite or takes_factors(problem, snes)


def takes_double(problem, snes: PETSc.SNES) -> bool:
    """Return True if levels have double precision from now on, because those in single precision failed. Collective."""
    calls = problem.callbacks
    context = None if calls.rough is None else calls.rough.getPythonContext()
    if context is None or not context.is_copy or snes.getKSP().getConvergedReason() not in BEYOND_RANGE:
        return False
    context.drop_copy()
    calls.forget()
    return True


def takes_factors(problem, snes: PETSc.SNES) -> bool:
    """Return True if LU takes the place of a default solver that failed on a small problem. Collective."""
    reason = direct_solvers.reason_of_solve(problem, snes)
    if reason:
        take_matrix(problem)
        ksp = cells_in_time.trace_solver(problem, snes.getKSP())
        direct_solvers.take(problem, ksp, reason)
        solvers.set_from_options(ksp)
    return bool(reason)


def has_blocks(problem) -> bool:
    """Return True if facet blocks without a matrix are the default of a trace."""
    return problem.derivative == "flow" and problem.options.pmat == "auto" and problem.pmat == "none"


def most_with_blocks(problem) -> int:
    """Iterations of a solver with facet blocks from which on the matrix takes less time."""
    return MOST_ON_DEVICE if problem.device.has_solvers else MOST_WITH_BLOCKS


def follow_steps(problem, ts: PETSc.TS) -> None:
    """Assemble the trace matrix for later steps if the last one took too many iterations without it. Collective."""
    ksp = cells_in_time.trace_solver(problem, ts.getSNES().getKSP())
    if not has_blocks(problem) or ksp.getIterationNumber() < most_with_blocks(problem):
        return
    take_matrix(problem)
    ksp.getPC().reset()
    ksp.setOperators(problem.callbacks.system.trace, problem.callbacks.system.rough)
    preconditioners.set_defaults(problem, ts.getSNES().getKSP())
    solvers.set_from_options(ksp)


def needs_matrix(pc: PETSc.PC) -> bool:
    """Return True if a PC has a type that works on no shell matrix."""
    return pc.getType() not in (None, "mg", *MATRIX_FREE_PCS)


def take_matrix(problem) -> None:
    """Have the assembled matrix in the place of levels, from now on and in all solvers of the problem. Collective."""
    if problem.pmat == "aij" or (problem.assembles and "callbacks" in vars(problem)):
        return
    problem.pmat = "aij"
    with collectively(problem.comm):
        problem.operator.compile(matrices=True)
    if "callbacks" not in vars(problem):
        return
    calls, sizes = problem.callbacks, (problem.discretization.dofmap.num_owned, problem.num_unknowns)
    calls.assemble(calls.assembled or calls.stored or matrices.assembled_matrix(problem, sizes))
    if "snes" in vars(problem):
        _follow(problem, problem.snes)


def _follow(problem, snes: PETSc.SNES) -> None:
    """Give a solver of the problem the matrix, and another PC in the place of levels, with the user's options on top.
    Collective."""
    calls, ksp = problem.callbacks, snes.getKSP()
    snes.setJacobian(calls.linearize, *problem.solver_matrices)
    if ksp.getPC().getType() == "mg":
        ksp.getPC().reset()
        ksp.setOperators(calls.jacobian, calls.preconditioning)
        preconditioners.set_defaults(problem, ksp)
        preconditioners.set_from_options(problem, ksp)
    preconditioners.smooth_by_pmat(problem, ksp.getPC())


def leaves_levels(problem, snes: PETSc.SNES) -> bool:
    """Assemble the trace matrix if the linear solver failed with what `-fe_pmat auto` chose for a trace: two levels, or
    facet blocks of a conservation law in time. Solves from now on take it, with the solvers that go with it.
    Collective."""
    is_open = problem.discretization.has_jumps and problem.options.pmat == "auto" and problem.pmat in WITHOUT_MATRIX
    reason = cells_in_time.trace_solver(problem, snes.getKSP()).getConvergedReason()
    fails = reason in FAILURES or (problem.pmat == "none" and reason == _REASON.DIVERGED_MAX_IT)
    if not (is_open and fails) or is_given(problem.prefix, "pc_type"):
        return False
    take_matrix(problem)
    return True
