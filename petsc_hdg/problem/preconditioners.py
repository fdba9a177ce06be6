"""Which preconditioner a problem takes where the user names none."""

from __future__ import annotations

from petsc4py import PETSc

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
    physics whose matrix is symmetric is solved by CG with smoothed aggregation, any other by GMRES with plain
    aggregation. Options of GAMG are put into PETSc's database, under the solver's prefix, unless the user gives
    -pc_type or the option itself.
    """
    ksp = snes.getKSP()
    pc = ksp.getPC()
    if problem.callbacks.assembled is None:
        _set_jacobi(problem, pc)
        return
    pc.setType("gamg")
    if not problem.is_condensed:
        return
    symmetric = problem.physics.is_linear and _is_symmetric(problem)
    if symmetric:
        ksp.setType("cg")
    _add_options(snes.getOptionsPrefix() or "", SYMMETRIC if symmetric else NONSYMMETRIC)


def _set_jacobi(problem, pc: PETSc.PC) -> None:
    if problem.is_condensed and problem.discretization.has_jumps:
        pc.setType("python")
        pc.setPythonType("petsc_hdg.FacetBlockJacobi")
    else:
        pc.setType("jacobi")


def _is_symmetric(problem) -> bool:
    """Whether the trace matrix of a linear physics is symmetric. Collective."""
    zero = problem.create_vec()
    calls = problem.callbacks
    calls.linearize(None, zero, calls.jacobian, calls.jacobian if calls.assembled is None else calls.assembled.mat)
    return problem.operator.is_symmetric()


def _add_options(prefix: str, options: dict[str, str]) -> None:
    database = PETSc.Options(prefix)
    if database.hasName("pc_type"):
        return
    for name, value in options.items():
        if not database.hasName(name):
            database[name] = value
