"""Which preconditioner a problem takes where the user names none."""

from __future__ import annotations

from contextlib import nullcontext

from petsc4py import PETSc

from ..options import defaults_in_database

# Smoothers that see a facet's unknowns together; nonsymmetric systems are smoothed along the flow by incomplete LU.
SYMMETRIC = {"mg_levels_pc_type": "pbjacobi"}
NONSYMMETRIC = {
    "pc_gamg_agg_nsmooths": "0",
    "mg_levels_ksp_type": "richardson",
    "mg_levels_pc_type": "bjacobi",
    "mg_levels_sub_pc_type": "ilu",
}


def set_defaults(problem, snes: PETSc.SNES) -> None:
    """Preconditioner, and for trace systems the Krylov method, before the user's options. Collective.

    GAMG on the assembled matrix; without one Jacobi, or block Jacobi over the facets of a trace. The trace of a linear
    physics whose matrix is symmetric is solved by CG, any other by GMRES.
    """
    pc = snes.getKSP().getPC()
    if problem.callbacks.assembled is not None:
        pc.setType("gamg")
    else:
        _set_jacobi(problem, pc)
    if problem.is_condensed:
        problem.default_krylov = _krylov(is_symmetric(problem))
        snes.getKSP().setType(problem.default_krylov)


def _krylov(symmetric: bool) -> str:
    return "cg" if symmetric else "gmres"


def smoothing(problem, snes: PETSc.SNES):
    """Context manager: options of GAMG for a trace system, while it is set up in a solve. Collective.

    They stand in PETSc's database under the solver's prefix, unless the user gives -pc_type or the option itself. Where
    constants have made the system (un)symmetric since the solver was created, the Krylov method follows.
    """
    if not problem.is_condensed:
        return nullcontext()
    symmetric, ksp = is_symmetric(problem), snes.getKSP()
    if ksp.getType() == problem.default_krylov != _krylov(symmetric):
        problem.default_krylov = _krylov(symmetric)
        with defaults_in_database(problem.prefix, {"ksp_type": _krylov(symmetric)}, unless="ksp_type"):
            ksp.setFromOptions()
    return defaults_in_database(problem.prefix, SYMMETRIC if symmetric else NONSYMMETRIC, unless="pc_type")


def _set_jacobi(problem, pc: PETSc.PC) -> None:
    if problem.is_condensed and problem.discretization.has_jumps:
        pc.setType("python")
        pc.setPythonType("petsc_hdg.FacetBlockJacobi")
    else:
        pc.setType("jacobi")


def is_symmetric(problem) -> bool:
    """Whether a linear physics has a symmetric trace matrix. Collective."""
    if not (problem.is_condensed and problem.physics.is_linear):
        return False
    problem.callbacks  # noqa: B018  auxiliary fields are set, kernels checked
    with problem.access.read(problem.create_vec()) as zero:
        problem.operator.linearize(zero)
    return problem.operator.is_symmetric()
