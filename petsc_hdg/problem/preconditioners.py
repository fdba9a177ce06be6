"""Which preconditioner a problem takes where the user names none."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext

from petsc4py import PETSc

from ..discretizations import PolytopicDG
from ..operators.advice import INDEFINITE
from ..operators.spectrum import TOLERANCE, asymmetry
from ..options import defaults_in_database, is_given
from . import agglomerate_levels, anew, cells_in_time, methods, two_level

# Smoothers that see a facet's unknowns together; nonsymmetric systems are smoothed along the flow by incomplete LU.
SYMMETRIC = {"mg_levels_pc_type": "pbjacobi"}
NONSYMMETRIC = {
    "pc_gamg_agg_nsmooths": "0",
    "mg_levels_ksp_type": "richardson",
    "mg_levels_pc_type": "bjacobi",
    "mg_levels_sub_pc_type": "ilu",
}
# Pᵀ A P. PETSc's own choice of several ranks sums what comes from others in the order in which it arrives; that of one
# rank takes longer than two products.
SAME_BITS = {"matptap_via": "allatonce"}
TWO_PRODUCTS = {"matptap_via": "rap"}


def set_defaults(problem, ksp: PETSc.KSP) -> None:
    """Preconditioner, and Krylov method where the scheme has one of its own, before the user's options. Collective.

    Agglomerates for polytopic ones (see agglomerate_levels), two levels where `conforming` was chosen (see
    two_level); GAMG on the assembled matrix, incomplete LU if it is of polytopes; without one Jacobi, or block Jacobi
    over the facets of a trace. Trace systems and discontinuous schemes of linear physics whose matrix
    is symmetric are solved by CG, others by GMRES.
    """
    ksp = cells_in_time.trace_solver(problem, ksp)
    calls, pc = problem.callbacks, ksp.getPC()
    levels = _levels(problem)
    if levels is not None:
        levels.create(problem, ksp, is_symmetric(problem))
    elif calls.assembled is not None and isinstance(problem.discretization, PolytopicDG):
        pc.setType("bjacobi")  # incomplete LU of each rank's part
    elif calls.assembled is not None:
        pc.setType("gamg")
    else:
        _set_jacobi(problem, pc)
    if problem.follows_symmetry:
        problem.default_krylov = _krylov(problem, is_symmetric(problem))
        methods.take(problem, ksp, problem.default_krylov)
    calls.forget()


def _levels(problem):
    """The module of the levels that the problem has, or None."""
    calls = problem.callbacks
    return agglomerate_levels if calls.levels is not None else two_level if calls.conforming is not None else None


def _krylov(problem, symmetric: bool) -> str:
    levels = _levels(problem)
    if levels is not None:
        return levels.krylov(problem, symmetric)
    return "cg" if symmetric else "gmres"


@contextmanager
def smoothing(problem, snes: PETSc.SNES):
    """Context manager: options of GAMG while it is set up in a solve. Collective.

    Those of systems that follow symmetry stand in PETSc's database under the solver's prefix, unless the user gives
    -pc_type or the option itself. Where constants have made the system (un)symmetric since the solver was created, the
    Krylov method follows. Where matrices read those that changed, preconditioners forget what they keep of former ones.
    """
    anew.follow_data(problem, snes)
    with defaults_in_database("", _coarse_products(problem), unless="matptap_via"), _smoothing(problem, snes):
        yield


def _coarse_products(problem) -> dict[str, str]:
    """How PETSc multiplies the matrices of coarse levels."""
    if problem.comm.size == 1:
        return TWO_PRODUCTS
    return SAME_BITS if problem.options.deterministic and problem.comm.size > 2 else {}


def _smoothing(problem, snes: PETSc.SNES):
    if not problem.follows_symmetry:
        return nullcontext()
    symmetric = is_symmetric(problem)
    _follow(problem, cells_in_time.trace_solver(problem, snes.getKSP()), symmetric)
    levels = _levels(problem)
    if levels is not None:
        return levels.setting_up(problem, symmetric)
    if problem.is_condensed:  # indefinite ones are smoothed as they were before CG found that out
        symmetric = symmetric or (problem.physics.is_linear and problem.derivative == "symmetric")
        return defaults_in_database(problem.prefix, SYMMETRIC if symmetric else NONSYMMETRIC, unless="pc_type")
    return nullcontext()


def _follow(problem, ksp: PETSc.KSP, symmetric: bool) -> None:
    wanted, before = _krylov(problem, symmetric), problem.default_krylov
    if before == wanted:
        return
    problem.default_krylov = wanted
    problem.callbacks.forget()  # other smoothers are set up when the matrix comes anew
    levels = _levels(problem)
    if levels is not None:
        levels.change(problem, ksp, symmetric)
    elif methods.has_taken(ksp, before):
        methods.change(problem, ksp, wanted)


def _set_jacobi(problem, pc: PETSc.PC) -> None:
    if problem.is_condensed and problem.discretization.has_jumps:
        pc.setType("python")
        pc.setPythonType("petsc_hdg.FacetBlockJacobi")
    else:
        pc.setType("jacobi")


def is_symmetric(problem) -> bool:
    """Whether the matrix is symmetric, in schemes that follow that, and CG has not met directions in which it is
    indefinite: of a linear physics by its values, of a nonlinear one with two levels on a trace by its derivative, of
    others it is not asked. Collective.

    It is asked at each solve, and found anew when constants or auxiliary fields that matrices read have changed.
    """
    linear = problem.physics.is_linear
    if not problem.follows_symmetry or not (linear or (problem.pmat == "conforming" and problem.is_condensed)):
        return False
    calls = problem.callbacks  # auxiliary fields are set, kernels checked
    if problem.symmetric is None:
        problem.symmetric = _found_symmetric(problem, calls) if linear else problem.derivative == "symmetric"
    return problem.symmetric


def met_indefinite(problem, snes: PETSc.SNES) -> bool:
    """Whether conjugate gradients, unless the user chose them, gave up a symmetric matrix as indefinite, and left the
    state as it was. The next solve takes the method and the smoothers of nonsymmetric matrices. Collective."""
    ksp, chosen = cells_in_time.trace_solver(problem, snes.getKSP()), is_given(problem.prefix, "ksp_type")
    met = problem.symmetric and not chosen and methods.has_taken(ksp, "cg") and ksp.getConvergedReason() in INDEFINITE
    if met:
        problem.symmetric = False
    return bool(met)


def _found_symmetric(problem, calls) -> bool:
    with problem.access.read(problem.create_vec()) as zero:
        problem.operator.linearize(zero)
    if problem.is_condensed:
        return problem.operator.is_symmetric()
    if calls.assembled is not None and calls.jacobian == calls.assembled.mat:
        calls.assembled.update_ahead()
    return asymmetry(calls.jacobian) < TOLERANCE[problem.options.precision]
