"""What preconditioners keep of former matrices, such as the coarse spaces of GAMG, and when they are to forget it."""

from __future__ import annotations

from petsc4py import PETSc

VERSION = "petsc_hdg_version"  # attribute of a SNES: the operator's data in its last solve


def begin_anew(ksp: PETSc.KSP) -> None:
    """Forget what preconditioners keep of former matrices, such as the coarse spaces of GAMG, as a restart does.
    Collective."""
    pc = ksp.getPC()
    kind = pc.getType()
    if kind in (PETSc.PC.Type.GAMG, PETSc.PC.Type.ML, PETSc.PC.Type.HYPRE):
        operators = ksp.getOperators()
        pc.reset()
        ksp.setOperators(*operators)
        if kind != PETSc.PC.Type.HYPRE:
            pc.setMGLevels(1)  # new smoothers: old ones keep their estimates of eigenvalues
    elif kind == PETSc.PC.Type.MG:
        for level in range(pc.getMGLevels()):
            begin_anew(pc.getMGSmoother(level))
    elif kind == PETSc.PC.Type.PYTHON and hasattr(pc.getPythonContext(), "ksp"):  # such as CellElimination
        begin_anew(pc.getPythonContext().ksp)


def follow_data(problem, snes: PETSc.SNES) -> None:
    """Begin anew where constants or auxiliary fields are others than in the solver's last solve. Collective.

    Coarse spaces that suit the data before may not suit these: GAMG kept them and conjugate directions broke down, or
    the preconditioned residual became small and the residual did not.
    """
    before, now = snes.getAttr(VERSION), problem.operator.version
    if before is not None and before != now:
        begin_anew(snes.getKSP())
    snes.setAttr(VERSION, now)
