"""The assembled trace matrix in the place of two levels that turn out not to suit it."""

from __future__ import annotations

from petsc4py import PETSc

from ..discretizations import HybridizedDG
from ..errors import collectively
from ..operators.advice import INDEFINITE
from ..options import is_given
from . import matrices, preconditioners, solvers

# An indefinite matrix, as of Helmholtz' equation, and methods that its levels mislead.
_REASON = PETSc.KSP.ConvergedReason
FAILURES = (*INDEFINITE, _REASON.DIVERGED_DTOL, _REASON.DIVERGED_BREAKDOWN, _REASON.DIVERGED_BREAKDOWN_BICG)


def changes_course(problem, snes: PETSc.SNES) -> bool:
    """Whether the linear solver failed in a way for which there is another, which the next solve takes. Collective."""
    indefinite = preconditioners.met_indefinite(problem, snes)
    return _take(problem, snes) or indefinite


def _take(problem, snes: PETSc.SNES) -> bool:
    """Assemble the trace matrix if the linear solver failed with two levels that the user did not ask for; solves from
    now on take it, with the solvers that go with it. Collective."""
    chosen = problem.options.pmat == "auto" and problem.pmat == "conforming" and not is_given(problem.prefix, "pc_type")
    if not (chosen and isinstance(problem.discretization, HybridizedDG)):
        return False
    if snes.getKSP().getConvergedReason() not in FAILURES:
        return False
    problem.pmat = "aij"
    with collectively(problem.comm):
        problem.operator.compile(matrices=True)
    calls, sizes = problem.callbacks, (problem.discretization.dofmap.num_owned, problem.num_unknowns)
    calls.assemble(matrices.assembled_matrix(problem, sizes))
    solvers.share_constants(calls)
    _set_solver(problem, snes)
    return True


def _set_solver(problem, snes: PETSc.SNES) -> None:
    """The solver of assembled trace matrices, and the user's options on top. Collective."""
    calls, ksp = problem.callbacks, snes.getKSP()
    snes.setJacobian(calls.linearize, calls.jacobian, calls.preconditioning)
    ksp.getPC().reset()
    ksp.setOperators(calls.jacobian, calls.preconditioning)
    preconditioners.set_defaults(problem, ksp)
    solvers.set_from_options(ksp)
