"""The default preconditioner of matrix-free discontinuous schemes, and one of others: PETSc's PCMG on two levels.

Fine level: the matrix-free Jacobian, smoothed by its diagonal, its cell blocks or a trace's facet blocks. Coarse level:
the conforming first-order subspace, solved by one cycle of GAMG. On simplices, and where a diffusivity may step inside
of cells, interior penalty without convection has a level between: the continuous functions of its own degree.
Matrices that are symmetric but for coefficients of diffusion that follow the state are smoothed as symmetric ones. All
are defaults: -ksp_*, -pc_*, -mg_levels_* and -mg_coarse_* win.
"""

from __future__ import annotations

from petsc4py import PETSc

from ... import operators
from ...database import any_given, defaults_in_database, is_given
from ...discretizations.symmetry import fields_without_own_terms
from ...operators.block_jacobi import CellBlocks
from ...options import of_one_degree
from ...petsc.c_library import set_passive_dm
from . import direct_solvers, methods
from .coarse_solvers import CoarseSolvers, on_device
from .null_space import set_near_nullspace

SINGLE_FROM = 1 << 18  # unknowns of a rank from which levels are in single precision
STEPS, WAVE_STEPS = 3, 5  # of a smoother, and of one of an indefinite matrix
CYCLES = 2  # of AMG on the coarse level; interior penalty, whose smoother is the limit, takes one
RESTART = 200  # iterations of FGMRES that are kept for an indefinite matrix
# Aggregates of neighbours only, and no weak couplings in them: one cycle is then nearly an exact solve.
COARSE = {
    "pc_gamg_coarse_eq_limit": str(direct_solvers.FEW),
    "pc_gamg_aggressive_coarsening": "0",
    "pc_gamg_threshold": "0.02",
    "pc_gamg_reuse_interpolation": "0",  # coefficients may have changed by orders of magnitude since the last solve
    "pc_gamg_esteig_ksp_max_it": "30",  # jumping coefficients: fewer steps underestimate the largest eigenvalue
}
# Smoothing of a nonsymmetric coarse matrix, along the flow. Aggregates of fewer nodes than modes have rows of zeros.
NONSYMMETRIC = {
    "mg_levels_ksp_type": "richardson",
    "mg_levels_pc_type": "bjacobi",
    "mg_levels_sub_pc_type": "ilu",
    "mg_levels_sub_pc_factor_shift_type": "nonzero",
}
MEMORY = 0.25  # part of the device's memory that cell blocks may take


def conforming_subspace(problem) -> operators.ConformingSubspace | None:
    """The coarse level, None if the problem has another preconditioner, or if that level has no unknowns or not fewer
    than the scheme, or if a field of interior penalty has no terms in its own equation: pairs of one degree are
    unstable then. Collective."""
    saddle = problem.discretization.has_penalties and fields_without_own_terms(problem.physics, problem.mesh.dim)
    if problem.pmat != "conforming" or saddle:
        return None
    from ...krylov.sell_matrix import transposed_product

    given = problem.access, problem.petsc_comm, problem.vec_type
    above = None
    if _has_level_between(problem):
        above = operators.ConformingSubspace(problem.operator, *given, problem.options.degree)
    conforming = operators.ConformingSubspace(above.operator if above else problem.operator, *given, above=above)
    if not 0 < conforming.mat.getSize()[0] < problem.num_unknowns:
        return None
    set_near_nullspace(conforming.discretization, conforming.mat)
    if problem.device.has_solvers:
        conforming.multiply_transposed = transposed_product(problem.access, problem.arrays)
    return conforming


def _has_level_between(problem) -> bool:
    """True for interior penalty on simplices, whose smoothers leave continuous errors of the scheme's degree, and where
    a diffusivity of linear physics may step inside of cells, which makes penalties large. Triangles with nonlinear
    physics take fewer iterations, but more time, since the level is assembled in each Newton step. False where options
    say how levels are preconditioned."""
    disc, options, is_simplex = problem.discretization, problem.options, problem.mesh.shape.is_simplex
    if disc.physics.is_linear:
        suits = problem.derivative == "symmetric" and (disc.has_steps or is_simplex)
    else:
        suits = problem.derivative in ("symmetric", "diffusive") and is_simplex and problem.mesh.dim == 3
    # Options of smoothers hold for all levels, and those of discontinuous elements suit no other.
    is_ours = options.precision == "double" and not any_given(f"{problem.prefix}mg_levels_", "pc_")
    return suits and disc.has_penalties and options.degree > 1 and of_one_degree(problem.physics) and is_ours


def in_single_precision(problem) -> bool:
    """True if levels are to be in single precision: their products, vectors and matrices. By default those of few
    unknowns are not, whose launches take longer than kernels."""
    options, device = problem.options, problem.device
    suits = device.has_solvers and device.has_fp64 and options.precision == "double" and not problem.is_condensed
    is_large = options.pmat_precision == "auto" and problem.num_unknowns >= SINGLE_FROM * problem.comm.size
    return suits and (is_large or options.pmat_precision == "single")


def is_diffusive(problem, symmetric: bool) -> bool:
    """True if smoothers of symmetric matrices suit the matrix: not where CG has found it indefinite. Nonlinear physics
    of a symmetric derivative is not asked for its matrix' symmetry but on traces; penalties that follow the state may
    spoil that."""
    asked = problem.physics.is_linear or problem.discretization.has_jumps or problem.discretization.has_penalties
    return symmetric or problem.derivative == "diffusive" or (problem.derivative == "symmetric" and not asked)


def takes_factors(problem, symmetric: bool) -> bool:
    """Return True if LU solves the coarse level: of a large indefinite matrix, as of Helmholtz' equation, whose waves
    aggregates do not follow, up to a size."""
    calls = problem.callbacks
    is_large = problem.num_unknowns > direct_solvers.MOST
    levels = is_large and problem.indefinite and not symmetric and calls.conforming is not None
    return bool(levels and calls.conforming.mat.getSize()[0] <= direct_solvers.IN_SPACE)


def krylov(problem, symmetric: bool) -> str:
    """The Krylov method: the smoother of nonsymmetric matrices is GMRES, so that the one outside must be flexible."""
    return "cg" if symmetric else "gmres" if is_diffusive(problem, symmetric) and problem.is_condensed else "fgmres"


def create(problem, ksp: PETSc.KSP, symmetric: bool) -> None:
    """Give a KSP, before the user's options, the Krylov method and all levels. Collective."""
    from ...krylov.level_bounds import LevelBounds

    conforming, pc = problem.callbacks.conforming, ksp.getPC()
    methods.take(problem, ksp, krylov(problem, symmetric))
    _set_restart(problem, ksp, symmetric)
    between = [conforming.above] if conforming.above else []
    set_levels(ksp, conforming.interpolation, *(each.interpolation for each in between))
    for each in between:
        _set_between(pc.getMGSmoother(1), each.mat, problem.discretization.has_steps)
    coarse = pc.getMGCoarseSolve()
    set_passive_dm(coarse, conforming.mat.createVecRight())
    coarse.setOperators(conforming.mat)
    coarse.setType("preonly")
    _set_coarse_solver(problem, coarse, conforming.mat, symmetric)
    set_smoother(problem, pc.getMGSmoother(pc.getMGLevels() - 1), symmetric)
    if conforming.bounds is None:
        matrices = [*(each.mat for each in between), problem.callbacks.smoothed]
        safe = tuple(range(1, len(matrices))) if problem.discretization.has_steps else ()
        conforming.bounds = LevelBounds(dict(enumerate(matrices, 1)), problem.arrays, safe)
    conforming.bounds.add(ksp)
    if conforming.solvers is None:
        conforming.solvers = CoarseSolvers(problem, setting_up)
    conforming.solvers.add(coarse)


def _set_between(smoother: PETSc.KSP, mat: PETSc.Mat, has_steps: bool) -> None:
    """Smoother of the level between before the user's options, with larger bounds if coefficients step. Collective."""
    from ...krylov.level_bounds import LOWER, SAFE, UPPER

    set_passive_dm(smoother, mat.createVecRight())
    smoother.setOperators(mat)
    smoother.setTolerances(max_it=STEPS)
    smoother.setType("chebyshev")
    smoother.getPC().setType("jacobi")
    bounds = {"ksp_chebyshev_esteig": f"0,{LOWER},0,{SAFE if has_steps else UPPER}"}
    with defaults_in_database(smoother.getOptionsPrefix() or "", bounds, unless="ksp_chebyshev_esteig"):
        smoother.setFromOptions()


def set_levels(ksp: PETSc.KSP, *interpolations: PETSc.Mat) -> None:
    """Give a KSP PETSc's PCMG of two levels or more, the coarsest interpolation first. Collective."""
    pc = ksp.getPC()
    set_passive_dm(ksp, interpolations[-1].createVecLeft())
    pc.setType("mg")
    pc.setMGLevels(len(interpolations) + 1)
    for number, interpolation in enumerate(interpolations, 1):
        pc.setMGInterpolation(number, interpolation)


def _set_restart(problem, ksp: PETSc.KSP, symmetric: bool) -> None:
    if takes_factors(problem, symmetric) and not is_given(problem.prefix, "ksp_gmres_restart"):
        ksp.setGMRESRestart(RESTART)


def _set_coarse_solver(problem, coarse: PETSc.KSP, mat: PETSc.Mat, symmetric: bool) -> None:
    """A direct solver of small matrices and of large indefinite ones; else multigrid, on the device unless the matrix
    is indefinite or an option of GAMG is given. On CPUs incomplete LU along the flow takes a few iterations less."""
    pc, prefix = coarse.getPC(), coarse.getOptionsPrefix() or ""
    tuned = any_given(prefix, "pc_gamg_")
    suits = is_diffusive(problem, symmetric) or (problem.device.has_solvers and not problem.indefinite)
    there = on_device(problem, mat, prefix) and suits and not tuned
    few = direct_solvers.FEW if tuned else direct_solvers.few_of_levels(problem)
    if takes_factors(problem, symmetric):
        direct_solvers.set_factors(pc, problem.options.deterministic)
    else:
        direct_solvers.set_type_or(problem, pc, mat, "python" if there else "gamg", few)
    if pc.getType() == "python":
        pc.setPythonType("petsc_hdg.AMG")
        context, finest = pc.getPythonContext(), problem.callbacks.smoothed
        context.cycles = 1 if problem.discretization.has_penalties else CYCLES
        context.shares = True
        context.finest = finest.getPythonContext() if finest.getType() == PETSc.Mat.Type.PYTHON else None
    with defaults_in_database(prefix, COARSE, unless="pc_type"):
        coarse.setFromOptions()


def set_smoother(problem, smoother: PETSc.KSP, symmetric: bool) -> None:
    """Smoother of the fine level before the user's options."""
    diffusive = is_diffusive(problem, symmetric)
    if problem.callbacks.conforming is not None:
        problem.callbacks.conforming.is_symmetric = diffusive
    smoother.setTolerances(max_it=WAVE_STEPS if takes_factors(problem, symmetric) else STEPS)
    smoother.setType("chebyshev" if diffusive else "gmres")
    smoother.setAttr("petsc_hdg_default", True)
    blocks = _blocks(problem, symmetric)
    smoother.getPC().setType("python" if blocks else "jacobi")
    if blocks:
        smoother.getPC().setPythonType(f"petsc_hdg.{blocks}")


def _blocks(problem, symmetric: bool) -> str:
    """The block Jacobi that smooths, "" for the diagonal."""
    if problem.discretization.has_jumps:
        return "FacetBlockJacobi"
    is_dg, conforming = problem.discretization.has_penalties, problem.callbacks.conforming
    is_cut = conforming is not None and conforming.above is not None and problem.discretization.has_steps
    is_cut = is_cut and problem.mesh.shape.is_simplex
    return "CellBlockJacobi" if is_dg and (is_cut or not symmetric) and _blocks_fit(problem) else ""


def setting_up(problem, symmetric: bool):
    """Context manager: what GAMG reads from PETSc's database while it is set up."""
    options = COARSE if is_diffusive(problem, symmetric) else COARSE | NONSYMMETRIC
    return defaults_in_database(f"{problem.prefix}mg_coarse_", options, unless="pc_type")


def _blocks_fit(problem) -> bool:
    """Return True if there are inverted cell blocks, and all ranks have room for them."""
    if not hasattr(problem.operator, "cell_blocks"):
        return False
    wanted = CellBlocks.bytes_of(problem.discretization, problem.arrays.real.itemsize)
    return problem.comm.allreduce(int(wanted > MEMORY * problem.device.memory_bytes)) == 0


def change(problem, ksp: PETSc.KSP, symmetric: bool) -> None:
    """Follow constants that have made the matrix (un)symmetric, unless the user chose otherwise. Collective."""
    pc = ksp.getPC()
    methods.change(problem, ksp, krylov(problem, symmetric))
    _set_restart(problem, ksp, symmetric)
    if pc.getType() == "mg":
        smoother = pc.getMGSmoother(pc.getMGLevels() - 1)
        set_smoother(problem, smoother, symmetric)
        smoother.setFromOptions()
        _set_coarse_solver(problem, pc.getMGCoarseSolve(), problem.callbacks.conforming.mat, symmetric)
