"""Reset of what preconditioners keep of former matrices, such as coarse spaces of multigrid."""

from __future__ import annotations

from contextlib import contextmanager

from petsc4py import PETSc

from . import convection

COEFFICIENTS = "petsc_hdg_coefficients"  # attribute of a SNES: the data that its matrices read in its last solve


@contextmanager
def watched(problem):
    """Context manager around changes of data: what tells of matrices is asked anew where these read them, but not the
    symmetry of one that was symmetric as its text is for any data."""
    before = problem.operator.coefficients
    yield
    if problem.operator.coefficients != before:
        problem.samples = None
        problem.symmetric = problem.symmetric and problem.derivative == "symmetric" or None


def reset_preconditioner(ksp: PETSc.KSP, all_of_it: bool = True) -> None:
    """Forget what preconditioners keep of former matrices, such as the coarse spaces of multigrid, as a restart does;
    unless `all_of_it`, AMG, which measures whether its aggregates serve other values, keeps them. Collective."""
    pc = ksp.getPC()
    kind = pc.getType()
    context = pc.getPythonContext() if kind == PETSc.PC.Type.PYTHON else None
    if kind in (PETSc.PC.Type.GAMG, PETSc.PC.Type.ML, PETSc.PC.Type.HYPRE) or all_of_it and _is_amg(context):
        operators = ksp.getOperators()
        if _is_amg(context):
            context.forget(pc)
        pc.reset()
        ksp.setOperators(*operators)
        if kind in (PETSc.PC.Type.GAMG, PETSc.PC.Type.ML):
            pc.setMGLevels(1)  # new smoothers: old ones keep their estimates of eigenvalues
    elif kind == PETSc.PC.Type.MG:
        for level in range(pc.getMGLevels()):
            reset_preconditioner(pc.getMGSmoother(level), all_of_it)
    elif hasattr(context, "ksp"):  # such as CellElimination
        reset_preconditioner(context.ksp, all_of_it)


def _is_amg(context) -> bool:
    from ...krylov import AMG

    return isinstance(context, AMG)


def follow_data(problem, snes: PETSc.SNES) -> None:
    """Begin anew where constants or auxiliary fields that matrices read are others than in the solver's last solve;
    other loads leave the preconditioner as it is. Collective.

    Coarse spaces that suit the data before may not suit these: GAMG kept them and conjugate directions broke down, or
    the preconditioned residual became small and the residual did not.
    """
    before, now = snes.getAttr(COEFFICIENTS), problem.operator.coefficients
    if before is not None and before != now:
        if not problem.has_cell_states and convection.is_large_on_traces(problem):
            problem.settle_pmat()
        reset_preconditioner(snes.getKSP(), all_of_it=False)
        problem.callbacks.kept_levels.forget()
    snes.setAttr(COEFFICIENTS, now)
