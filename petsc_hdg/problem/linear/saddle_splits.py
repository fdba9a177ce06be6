"""Block preconditioner of large saddle points by cg_gpu, such as Stokes flow or nearly incompressible bodies: multigrid
for the fields that diffuse, and a diagonal for those that constrain them, such as the pressure.

The diagonal is that of D + B diag(A)⁻¹ Bᵀ, A and D the diagonal blocks, B and -Bᵀ the others. In a cell of size h and
viscosity μ it is h^d/μ times a number of the element, as the diagonal of the pressure's mass matrix over μ is, so
that it follows viscosities that vary or read the state.
"""

from __future__ import annotations

from petsc4py import PETSc

from ...discretizations.saddle_points import constraints, reason
from ...options import defaults_in_database
from . import direct_solvers

RESTART = 100  # iterations of FGMRES that are kept
OF_OTHERS = {"ksp_type": "gmres", "ksp_rtol": "1e-5", "ksp_max_it": "100", "pc_type": "gamg"}
OF_PRESSURE = {"ksp_type": "preonly", "pc_type": "jacobi"}


def constraints_of(problem) -> list[str]:
    """Fields that get the diagonal; none where LU, another solver or the user's is taken. Collective."""
    count = problem.num_unknowns
    is_large = problem.options.backend == "cg_gpu" and count > direct_solvers.IN_SPACE
    if not is_large or problem.direct or not direct_solvers.is_open(problem, count):
        return []
    return constraints(problem.physics, problem.mesh.dim)


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
    why = reason(problem.physics, problem.mesh.dim, problem.saddle[0])
    return [f"  linear solver: a block preconditioner with a diagonal for {names}, because {why}"]
