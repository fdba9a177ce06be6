"""Solvers of the user's own: what `Problem.attach` gives a SNES or a TS, and what it leaves."""

from __future__ import annotations

from petsc4py import PETSc

from ..database import given_text
from ..options import ATTACHED
from . import cells_in_time, input_data
from .assembled_fallback import needs_matrix
from .linear import methods, preconditioners
from .transient import explicit

ASK_FOR_AMAT = ("gamg", "ml")  # PCs that begin with products of the Jacobian on their finest level
PETSC_RTOL = 1e-5  # what a KSP has that nobody told another


def attach(problem, solver) -> None:
    """Set residual, Jacobian and matrices, and defaults of KSP and PC where the user has chosen none. Collective."""
    input_data.solver(solver)
    problem.settle_pmat(ATTACHED)
    problem.connect(solver)
    ts = solver if isinstance(solver, PETSc.TS) else None
    if ts and explicit.is_explicit(ts):
        return
    snes = ts.getSNES() if ts else solver
    ksp = snes.getKSP()
    if ksp.getTolerances()[0] == PETSC_RTOL:
        methods.set_tolerances(problem, snes, ts)
    _set_solver(problem, ksp)


def _set_solver(problem, ksp: PETSc.KSP) -> None:
    """Defaults where the user has chosen no type, or a PC for which there is no matrix. Collective."""
    pc, method = ksp.getPC(), ksp.getType()
    lacks = problem.callbacks.assembled is None and needs_matrix(pc)
    if pc.getType() is None or lacks or problem.has_cell_states:
        preconditioners.set_defaults(problem, ksp, attached=True)
        if method and not problem.has_cell_states:
            ksp.setType(method)
    inner = cells_in_time.trace_solver(problem, ksp)
    asked = given_text(inner.getOptionsPrefix() or "", "pc_type", "")
    if asked in ASK_FOR_AMAT:  # now, so that options read later leave it as it is
        inner.getPC().setType(asked)
    preconditioners.smooth_by_pmat(problem, inner.getPC())
