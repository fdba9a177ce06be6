"""The default preconditioner where couplings along one direction are far stronger than along others: PETSc's PCMG on
the assembled matrix, smoothed by incomplete factors; on GPUs aggregates along strong couplings (see krylov.amg).

Coarse level: the conforming first-order subspace, by Galerkin products, solved by LU or one cycle of GAMG.
"""

from __future__ import annotations

from petsc4py import PETSc

from ... import operators
from ...database import defaults_in_database
from . import cell_measures, direct_solvers, methods, two_level

# Chebyshev's method keeps the symmetry that CG takes. Ranks overlap: strong couplings cross their borders.
_FACTORS = {
    "ksp_type": "chebyshev",
    "ksp_max_it": "2",
    "pc_type": "asm",
    "pc_asm_type": "basic",
    "sub_pc_type": "icc",
}
_RCM = {"sub_pc_factor_mat_ordering_type": "rcm"}  # without fill it helps cells that are no simplices
_FILL = {"sub_pc_factor_levels": "1"} | _RCM
_FILLED = _FACTORS | _FILL | {"ksp_max_it": "1"}
_OFTEN = {"ksp_max_it": "4", "ksp_chebyshev_esteig": "0,0.05,0,1.05"}
_INDEFINITE = _FACTORS | _FILL | {"ksp_type": "gmres", "sub_pc_type": "ilu"}
# -pc_amg_strong by scheme: couplings of discontinuous cells count as weak up to a larger part of the strongest one.
_STRONG = {"cg_gpu": "0.4", "hdg_gpu": "0.75", "sipg_gpu": "0.75"}
# Factors follow strong couplings better than smooth aggregates, whose products fill the matrices of stretched cells.
_GAMG = {f"mg_levels_{name}": value for name, value in _FACTORS.items()} | {
    "pc_type": "gamg",
    "pc_gamg_agg_nsmooths": "0",
    "pc_gamg_threshold": "0.02",
    "pc_gamg_aggressive_coarsening": "0",
}


def create(problem, ksp: PETSc.KSP) -> None:
    """Give a KSP its PC, before the user's options. Collective."""
    pc = ksp.getPC()
    if problem.device.has_solvers:
        pc.setType("python")
        pc.setPythonType("petsc_hdg.AMG")
        problem.factors = {"pc_amg_strong": _STRONG[problem.options.backend]}
    else:
        _set_levels(problem, ksp)
    with setting_up(problem, problem.symmetric):
        pc.setFromOptions()
    if problem.options.view:
        what = "aggregates" if problem.device.has_solvers else "two levels with incomplete factors"
        why = cell_measures.anisotropy_in_words(cell_measures.typical_anisotropy(problem))
        PETSc.Sys.Print(f"  preconditioner: {what}, because {why}", comm=problem.petsc_comm)


def _set_levels(problem, ksp: PETSc.KSP) -> None:
    subspace = operators.ConformingSubspace(problem.operator, problem.access, problem.petsc_comm, problem.vec_type)
    interpolation = subspace.interpolation
    two_level.set_levels(ksp, interpolation)
    problem.factors = {"pc_mg_galerkin": "both"} | _smoother(problem)
    rows = interpolation.getSize()[1]
    if _suits_lu(problem, rows):
        direct_solvers.set_type(problem, ksp.getPC().getMGCoarseSolve().getPC(), rows)
        suited = direct_solvers.options_of_each_rank(rows)
    else:
        suited = _GAMG
    problem.factors |= {f"mg_coarse_{name}": value for name, value in suited.items()}


def krylov(problem, symmetric: bool) -> str:
    """The Krylov method: the smoother of indefinite matrices is GMRES, so that the one outside must be flexible.
    Products in single precision are no linear map, which stops the short recurrences of conjugate gradients. The
    preconditioned residual of aggregates says little of the residual itself."""
    if symmetric and problem.options.precision == "double":
        return "cg"
    return "fgmres" if problem.indefinite or problem.device.has_solvers else "gmres"


def change(problem, ksp: PETSc.KSP, symmetric: bool) -> None:
    """Follow a matrix that is not what it was, unless the user chose otherwise. Collective."""
    methods.change(problem, ksp, krylov(problem, symmetric))
    if ksp.getPC().getType() == "mg":
        smoother = ksp.getPC().getMGSmoother(1)
        smoother.getPC().setType("none")  # it forgets the solvers of its parts
        problem.factors |= _smoother(problem)
        with setting_up(problem, symmetric):
            smoother.setFromOptions()


def _smoother(problem) -> dict[str, str]:
    """Options of the finest level. Where couplings across edges are strong, factors with fill get negative pivots, of
    continuous elements and of traces in space: these smooth twice without. In space they smooth more often. Collective.
    """
    scheme, plane = problem.options.backend, problem.mesh.dim == 2
    crosses = not cell_measures.follows_edges(problem)
    fills = scheme == "sipg_gpu" or (scheme == "hdg_gpu" and plane) or not crosses
    suited = _INDEFINITE if problem.indefinite else _FILLED if fills else _FACTORS
    if not (fills or problem.mesh.shape.is_simplex):
        suited = suited | _RCM
    if crosses and not plane and not problem.indefinite:
        suited = suited | ({"ksp_max_it": "2"} if fills else _OFTEN)
    return {f"mg_levels_{name}": value for name, value in suited.items()}


def _suits_lu(problem, rows: int) -> bool:
    """Return True if LU of a coarse level costs less than the iterations that a cycle of GAMG adds: many where strong
    couplings cross edges. Collective."""
    if len(problem.callbacks.null_space.candidates):
        return False
    if problem.mesh.dim == 2:
        return rows <= direct_solvers.most_in_plane(problem)
    crosses = problem.comm.size == 1 and not cell_measures.follows_edges(problem)
    return rows <= (direct_solvers.MOST if crosses else direct_solvers.few_of_levels(problem))


def setting_up(problem, symmetric: bool | None):
    """Context manager: what PETSc reads from its database while levels are set up."""
    return defaults_in_database(problem.prefix, problem.factors, unless="pc_type")
