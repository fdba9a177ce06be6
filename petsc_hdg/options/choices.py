"""What options leave open, settled by the scheme and by PETSc's own: which matrices a preconditioner takes."""

from __future__ import annotations

from ..errors import OptionError
from .database import given_truth
from .options import Options

# Coarse levels for -pc_type mg, and the schemes that have them.
_LEVELS = {"conforming": ("cg_gpu", "hdg_gpu", "sipg_gpu"), "agglomerates": ("sipg_gpu", "poly_gpu")}
ASSEMBLED = 1  # degree up to which continuous elements are assembled by default
ATTACHED = 4  # the same for solvers of the user's own, whose PC may want a matrix
# PC types that need nothing but products and the diagonal, or bring their own matrices.
MATRIX_FREE_PCS = ("none", "jacobi", "python", "shell", "ksp", "composite", "mat")


def chosen_pmat(options: Options, physics, derivative: str = "other", assembled: int = ASSEMBLED) -> str:
    """`aij`, `conforming`, `agglomerates` or `none`: what `-fe_pmat` says, `auto` settled by the scheme, its degree,
    the fields of the physics and the user's -pc_type.

    derivative: of hybridizable DG, as `matrices.derivative` says; `convective` stands for little convection.
    assembled: degree up to which continuous elements are assembled; ATTACHED for solvers of the user's own, which
    traces give a matrix whatever their degree.
    Raises OptionError for `conforming` and `agglomerates` where they do not go with them.
    """
    from petsc4py import PETSc

    given = PETSc.Options(options.prefix).getString("pc_type", "mg")
    if options.pmat in _LEVELS:
        _check_levels(options, physics, given)
    if options.pmat != "auto":
        return options.pmat
    if takes_differences(options.prefix):
        return "aij"
    if options.backend == "poly_gpu" and given == "mg":
        return "agglomerates"
    if options.backend == "hdg_gpu":
        if options.hdg_trace_mat == "aij" or given != "mg" or assembled != ASSEMBLED or derivative == "other":
            return "aij"
        if derivative == "flow":  # steps of pseudo time grow without end
            grows = PETSc.Options(options.prefix).getString("ts_type", "") == "pseudo"
            return "none" if physics.uses_time_derivative and not grows else "aij"
        return "conforming"
    if options.backend != "sipg_gpu" and not (options.degree > assembled and _has_subspace(options, physics)):
        return "aij"
    return "conforming" if given == "mg" else "none" if given in MATRIX_FREE_PCS else "aij"


def takes_differences(prefix: str) -> bool:
    """Whether PETSc's options have SNES fill the Jacobian by differences of residuals, which takes an assembled one."""
    return any(given_truth(prefix, name, False) for name in ("snes_fd", "snes_fd_color"))


def _has_subspace(options: Options, physics) -> bool:
    """Whether the scheme is of continuous elements that have a first-order subspace."""
    return options.backend == "cg_gpu" and not options.cg_condense and of_one_degree(physics)


def loses_levels(prefix: str) -> bool:
    """Whether the TS asked for resets its PC, which then has no levels: ARKIMEX before DIRK joined it."""
    from petsc4py import PETSc

    given = PETSc.Options(prefix).getString("ts_type", "")
    return given == "arkimex" and not hasattr(PETSc.TS.Type, "DIRK")


def of_one_degree(physics) -> bool:
    """Whether all fields of a physics have the same degree."""
    return not any(f.degree_offset for f in physics.fields)


def chosen_mat_type(options: Options, blocks: bool) -> str:
    """Type of assembled matrices: `baij` where PETSc's -dm_mat_type asks for it and there are blocks, else `aij`."""
    from petsc4py import PETSc

    asked = PETSc.Options(options.prefix).getString("dm_mat_type", "aij")
    return "baij" if asked.endswith("baij") and blocks else "aij"


def _check_levels(options: Options, physics, pc_type: str) -> None:
    name, schemes = f"-{options.prefix}fe_pmat", _LEVELS[options.pmat]
    if options.backend not in schemes:
        raise OptionError(
            f"{name} {options.pmat} goes with {' and '.join(schemes)}, and -{options.prefix}fe_backend is "
            f"{options.backend}; use {name} aij"
        )
    if options.pmat == "conforming" and options.cg_condense:
        raise OptionError(f"{name} conforming does not go with -{options.prefix}cg_condense; use {name} aij")
    if options.pmat == "conforming" and options.backend == "cg_gpu" and not of_one_degree(physics):
        raise OptionError(
            f"{name} conforming takes fields of one degree, and physics '{physics.name}' has a degree_offset; use "
            f"{name} aij"
        )
    if pc_type != "mg" and pc_type not in MATRIX_FREE_PCS:
        raise OptionError(
            f"{name} {options.pmat} goes with -{options.prefix}pc_type mg; {pc_type} takes the assembled matrix: use "
            f"{name} aij or auto"
        )
