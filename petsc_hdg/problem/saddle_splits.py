"""Block preconditioner of large saddle points by cg_gpu, such as Stokes flow: multigrid for the fields that are read by
their own equations, and a diagonal for the others, such as the pressure.

The diagonal is that of B diag(A)⁻¹ Bᵀ, A the block of the former, B that of the latter. In a cell of size h and
viscosity μ it is h^d/μ times a number of the element, as the diagonal of the pressure's mass matrix over μ is, so
that it follows viscosities that vary or read the state.
"""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ..discretizations.saddle_points import dependences
from ..discretizations.symmetry import fields_without_own_terms
from ..options import defaults_in_database
from . import direct

RESTART = 100  # iterations of FGMRES that are kept
OF_OTHERS = {"ksp_type": "gmres", "ksp_rtol": "1e-5", "ksp_max_it": "100", "pc_type": "gamg"}
OF_PRESSURE = {"ksp_type": "preonly", "pc_type": "jacobi"}


def without_own_terms(problem) -> list[str]:
    """Fields that get the diagonal; none where LU, another solver or the user's is taken. Collective."""
    physics, dim, count = problem.physics, problem.mesh.dim, problem.num_unknowns
    is_large = problem.options.backend == "cg_gpu" and count > direct.MOST_OF_SADDLES
    if not is_large or problem.direct or not direct.is_open(problem, count):
        return []
    names = fields_without_own_terms(physics, dim)
    return names if names and _diffuse(physics, dim, names) else []


def _diffuse(physics, dim: int, names: list[str]) -> bool:
    """True if components that fields couple to by gradient and divergence have diffusion in their own equation."""
    _, by_gradient, of_flux, diffusion = dependences(physics, dim)
    coupled = by_gradient | of_flux
    own = np.concatenate([np.full(f.components, f.name in names) for f in physics.fields])
    read = coupled[own].any(axis=0) & coupled[:, own].any(axis=1)
    return bool(read.any() and diffusion.diagonal()[read].all())


def take(problem, ksp: PETSc.KSP, names: list[str]) -> None:
    """Give a KSP, before the user's options, the block preconditioner with a diagonal for fields of these names."""
    pc = ksp.getPC()
    problem.saddle, problem.default_krylov = names, "fgmres"
    ksp.setType("fgmres")
    ksp.setGMRESRestart(RESTART)
    pc.setType("fieldsplit")
    pc.setFieldSplitType(PETSc.PC.CompositeType.SCHUR)
    pc.setFieldSplitSchurFactType(_kinds("SchurFactType").UPPER)
    pc.setFieldSplitSchurPreType(_kinds("SchurPreType").SELFP)
    problem.default_pc = pc.getType()


def _kinds(name: str):
    return getattr(PETSc.PC, f"FieldSplit{name}", None) or getattr(PETSc.PC, name)  # its name in petsc4py 3.18


def groups(problem) -> list[tuple[str, list[int]]]:
    """(name, numbers of fields) of both splits, as field_splits names them."""
    fields = problem.physics.fields
    numbers = [[k for k, f in enumerate(fields) if (f.name in problem.saddle) == last] for last in (False, True)]
    return [(fields[part[0]].name if len(part) == 1 else str(k), part) for k, part in enumerate(numbers)]


def setting_up(problem):
    """Context manager: options of the solvers of both splits, unless the user gives them."""
    parts = zip(groups(problem), (OF_OTHERS, OF_PRESSURE), strict=True)
    wanted = {f"fieldsplit_{name}_{key}": value for (name, _), part in parts for key, value in part.items()}
    return defaults_in_database(problem.prefix, wanted, unless="pc_type")


def view(problem) -> list[str]:
    """A line for -fe_view where a problem takes the block preconditioner."""
    if not problem.saddle:
        return []
    names = " and ".join(f"'{name}'" for name in problem.saddle)
    return [
        f"  linear solver: a block preconditioner with a diagonal for {names}, because it is a saddle point: the "
        f"equation of '{problem.saddle[0]}' has no terms of '{problem.saddle[0]}'"
    ]
