"""Default preconditioners."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext

from petsc4py import PETSc

from ...database import any_given, defaults_in_database, is_given
from ...discretizations.symmetry import NEARLY, fields_without_own_terms
from ...operators.callbacks import INDEFINITE
from ...operators.spectrum import TOLERANCE, asymmetry
from ...options import loses_levels
from .. import cells_in_time
from . import (
    agglomerate_levels,
    cell_measures,
    coarse_solvers,
    direct_solvers,
    factor_levels,
    field_splits,
    kept_levels,
    methods,
    solvers,
    two_level,
)

# Incomplete LU of traces of conservation laws, whose levels would hide residuals.
FLOW, FLOW_RESTART = {"sub_pc_factor_mat_ordering_type": "rcm"}, 100
SYMMETRIC = {"mg_levels_pc_type": "pbjacobi"}  # which sees a facet's unknowns together
MOST_ITERATIONS = 10_000  # of a KSP to which nobody gave another number


def set_defaults(problem, ksp: PETSc.KSP, attached: bool = False) -> None:
    """Preconditioner, and Krylov method where the scheme has one of its own, before the user's options. Collective.

    Agglomerates for polytopic ones (see agglomerate_levels), two levels where `conforming` was chosen (see
    two_level); LU for a small saddle point (see direct_solvers), blocks for a large one (see saddle_splits), but not in
    solvers of the user's own (`attached`); multigrid on the assembled matrix, a direct solver if it is tiny, ILU if it
    is of polytopes or a conservation law; without one Jacobi, or facet blocks of a trace. Trace systems and
    discontinuous schemes of linear physics whose matrix is symmetric are solved by CG, others by GMRES.
    """
    ksp = cells_in_time.trace_solver(problem, ksp)
    calls, pc = problem.callbacks, ksp.getPC()
    problem.factors = {}
    reason = problem.direct or direct_solvers.reason_of_text(problem)
    if reason:
        direct_solvers.take(problem, ksp, reason)
        return
    names = [] if attached else field_splits.constraints_of(problem)
    if names:
        field_splits.take_saddle(problem, ksp, names)
        return
    levels = _levels(problem)
    if levels is not None:
        levels.create(problem, ksp, is_symmetric(problem))
    elif calls.assembled is not None and problem.discretization.is_polytopic:
        pc.setType("bjacobi")  # incomplete LU of each rank's part
    elif calls.assembled is not None and problem.derivative == "flow":
        direct_solvers.set_type_or(problem, pc, calls.assembled.mat, "bjacobi")
    elif calls.assembled is not None:
        _set_multigrid(problem, ksp, calls.assembled.mat, attached)
    elif problem.is_condensed and problem.discretization.has_jumps:
        pc.setType("python")
        pc.setPythonType("petsc_hdg.FacetBlockJacobi")
    else:
        pc.setType("jacobi")
    if problem.derivative == "flow" and not attached:
        problem.default_krylov = "fgmres"
        methods.take(problem, ksp, "fgmres")
        if calls.assembled is not None and not is_given(problem.prefix, "ksp_gmres_restart"):
            ksp.setGMRESRestart(FLOW_RESTART)
    elif problem.follows_symmetry:
        problem.default_krylov = _krylov(problem, is_symmetric(problem))
        methods.take(problem, ksp, problem.default_krylov)
    elif pc.getType() == "python" and not attached:
        methods.take(problem, ksp, "gmres")  # PETSc's default, ours where the preconditioner is on a GPU
    problem.default_pc = pc.getType()
    calls.forget()


def _levels(problem):
    """The module of the levels that the problem has, or None."""
    calls = problem.callbacks
    if problem.factors:
        return factor_levels
    return agglomerate_levels if calls.levels is not None else two_level if calls.conforming is not None else None


def _krylov(problem, symmetric: bool) -> str:
    if problem.direct:
        return "fgmres"
    levels = _levels(problem)
    if levels is not None:
        return levels.krylov(problem, symmetric)
    return "cg" if symmetric else "fgmres"  # by the residual itself, of which incomplete factors may hide a part


def set_from_options(problem, solver) -> None:
    """Apply PETSc's options to a SNES, TS or KSP of the problem. Collective. Raises OptionError."""
    solvers.set_from_options(solver)
    snes = solver.getSNES() if isinstance(solver, PETSc.TS) else solver
    ksp = snes.getKSP() if isinstance(snes, PETSc.SNES) else snes
    smooth_by_pmat(problem, cells_in_time.trace_solver(problem, ksp).getPC())


def smooth_by_pmat(problem, pc: PETSc.PC) -> None:
    """Have multigrid smooth its finest level by the matrix for preconditioners where it has one of its own, assembled
    or in single precision, unless the user gives -pc_use_amat."""
    calls = problem.callbacks
    if (calls.assembled or calls.rough) is not None and not is_given(problem.prefix, "pc_use_amat"):
        pc.setUseAmat(False)


@contextmanager
def smoothing(problem, snes: PETSc.SNES):
    """Context manager: options of GAMG while it is set up in a solve. Collective.

    Those of systems that follow symmetry stand in PETSc's database under the solver's prefix, unless the user gives
    -pc_type or the option itself. Where constants have made the system (un)symmetric since the solver was created, the
    Krylov method follows. Where matrices read those that changed, preconditioners forget what they keep of former ones.
    """
    kept_levels.follow_data(problem, snes)
    with coarse_solvers.products(problem), _splits_by_pmat(problem, snes), _smoothing(problem, snes):
        yield


def _splits_by_pmat(problem, snes: PETSc.SNES):
    """Context manager: have multigrid in a split smooth its finest level by the matrix that it coarsens. Products with
    a Schur complement solve for the other split, and bounds of smoothers are not those of its approximation."""
    names = [field.name for field in problem.physics.fields] if snes.getKSP().getPC().getType() == "fieldsplit" else []
    wanted = {f"fieldsplit_{name}_pc_use_amat": "0" for name in names}
    return defaults_in_database(snes.getOptionsPrefix() or "", wanted, unless="pc_use_amat")


def _smoothing(problem, snes: PETSc.SNES):
    if problem.direct:
        return direct_solvers.setting_up(problem)
    if problem.saddle:
        return field_splits.setting_up_saddle(problem)
    if problem.derivative == "flow":
        return defaults_in_database(problem.prefix, FLOW, unless="pc_type")
    if not problem.follows_symmetry:
        return nullcontext()
    symmetric = is_symmetric(problem)
    _follow(problem, cells_in_time.trace_solver(problem, snes.getKSP()), symmetric)
    levels = _levels(problem)
    if levels is not None:
        return levels.setting_up(problem, symmetric)
    if problem.is_condensed:  # indefinite ones are smoothed as they were before CG found that out
        symmetric = symmetric or (problem.physics.is_linear and problem.derivative == "symmetric")
        wanted = SYMMETRIC if symmetric else two_level.NONSYMMETRIC
        return defaults_in_database(problem.prefix, wanted, unless="pc_type")
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


def _set_multigrid(problem, ksp: PETSc.KSP, mat: PETSc.Mat, attached: bool) -> None:
    """A direct solver of small matrices, levels with incomplete factors where couplings along one direction are strong,
    else multigrid. It is ours of continuous elements with convection, which GAMG's smoothers do not suit, of large
    matrices, which GAMG takes longer to set up, and on GPUs of traces with convection, where incomplete LU is the
    host's, unless an option of GAMG is given. Saddle points are neither's."""
    tuned = attached or any_given(problem.prefix, "pc_gamg_")
    if not (tuned or loses_levels(problem.prefix)) and is_anisotropic(problem):
        factor_levels.create(problem, ksp)
        return
    suits = problem.derivative not in NEARLY or mat.getSize()[0] > direct_solvers.MOST
    convective = "traces" in problem.told and problem.device.has_solvers
    ours = ((problem.options.backend == "cg_gpu" and suits) or convective) and not tuned
    ours = ours and not fields_without_own_terms(problem.physics, problem.mesh.dim)
    there = ours and coarse_solvers.on_device(problem, mat, problem.prefix)
    pc = ksp.getPC()
    direct_solvers.set_type_or(problem, pc, mat, "python" if there else "gamg")
    if pc.getType() == "python":
        pc.setPythonType("petsc_hdg.AMG")


def is_anisotropic(problem) -> bool:
    """Return True if a large problem has levels with incomplete factors by default. Collective."""
    size = problem.num_unknowns
    is_open = size > direct_solvers.MOST and direct_solvers.is_open(problem, size)
    return is_open and cell_measures.wants_factors(problem)


def is_symmetric(problem) -> bool:
    """Return True if the matrix is symmetric, in schemes that follow that, and CG has not met directions in which it is
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
    """True if conjugate gradients, unless the user chose them, gave up a symmetric matrix as indefinite or stalled, and
    left the state as it was. The next solve takes the method and the smoothers of nonsymmetric matrices. Collective."""
    ksp, chosen = cells_in_time.trace_solver(problem, snes.getKSP()), is_given(problem.prefix, "ksp_type")
    gave_up = ksp.getConvergedReason() in INDEFINITE or _stalled(ksp)
    met = problem.symmetric and not chosen and methods.has_taken(ksp, "cg") and gave_up
    if met:
        problem.symmetric, problem.indefinite = False, ksp.getConvergedReason() in INDEFINITE
    return bool(met)


def _stalled(ksp: PETSc.KSP) -> bool:
    """Return True if a KSP came to the last iteration that PETSc gives it by default."""
    stopped = ksp.getConvergedReason() == PETSc.KSP.ConvergedReason.DIVERGED_MAX_IT
    return stopped and ksp.getTolerances()[3] >= MOST_ITERATIONS


def _found_symmetric(problem, calls) -> bool:
    shift = float(problem.physics.uses_time_derivative)  # rates couple fields as well
    with problem.access.read(problem.create_vec()) as zero:
        problem.operator.linearize(zero, shift=shift)
    if calls.assembled is not None and calls.solved == calls.assembled.mat:
        calls.assembled.update_ahead(shift)
    return asymmetry(calls.solved) < TOLERANCE[problem.options.precision]
