"""Fields of a problem as index sets, and PETSc's fieldsplit preconditioner made of them.

PETSc finds fields through the section of a DM, which knows neither the storage order of `cg_gpu` nor the interleaved
cells of `sipg_gpu`, so the preconditioner is given its splits here.

Large saddle points by cg_gpu, such as Stokes flow or nearly incompressible bodies, take a block preconditioner:
multigrid for the fields that diffuse, and a diagonal for those that constrain them, such as the pressure. The diagonal
is that of D + B diag(A)⁻¹ Bᵀ, A and D the diagonal blocks, B and -Bᵀ the others. In a cell of size h and viscosity μ it
is h^d/μ times a number of the element, as the diagonal of the pressure's mass matrix over μ is, so that it follows
viscosities that vary or read the state.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from petsc4py import PETSc

from ...database import defaults_in_database, given_text, given_truth, is_given
from ...discretizations.symmetry import OF_DEGREES, constraints, reason
from ...errors import OptionError
from ...petsc import c_library
from ...value_checks import plural
from . import cell_measures, direct_solvers
from .null_space import orthonormal

OTHERS = ("pc_fieldsplit_detect_saddle_point", "pc_fieldsplit_detect_coupling")  # which find splits in the matrix
RESTART = 100  # iterations of FGMRES that are kept
OF_OTHERS = {"ksp_type": "gmres", "ksp_rtol": "1e-5", "ksp_max_it": "100", "pc_type": "gamg"}
OF_PRESSURE = {"ksp_type": "preonly", "pc_type": "jacobi"}


def field_of_unknowns(discretization) -> np.ndarray:
    """Number of the field [owned] int32 that each of this rank's unknowns belongs to."""
    fields, dofmap = discretization.physics.fields, discretization.dofmap
    of_component = np.repeat(np.arange(len(fields), dtype=np.int32), [f.components for f in fields])
    if discretization.is_polytopic:  # [polytope][component][function]
        sizes = discretization.numbering.sizes[: discretization.polytopes.count]
        return np.repeat(np.tile(of_component, len(sizes)), np.repeat(sizes, len(of_component)))
    found = np.zeros(dofmap.num_owned, np.int32)
    for part, space in discretization.spaces_of_parts:
        numbers = dofmap.compact[part.dofmap.cell_dofs[:, space.first_dof : space.first_dof + space.num_dofs]]
        mine = of_component[space.first_component : space.first_component + space.components]
        field = np.broadcast_to(np.tile(mine, space.element.num_basis), numbers.shape)
        owned = numbers < dofmap.num_owned
        found[numbers[owned]] = field[owned]
    return found


def is_of(problem, names: list[str]) -> np.ndarray:
    """True where this rank's unknowns [owned] are of fields with these names."""
    numbers = [k for k, field in enumerate(problem.physics.fields) if field.name in names]
    if not numbers:
        return np.zeros(problem.discretization.dofmap.num_owned, bool)
    return np.isin(field_of_unknowns(problem.discretization), numbers)


def index_sets(problem) -> dict[str, PETSc.IS]:
    """Global numbers of the unknowns of each field, ascending, by the field's name. Collective.

    Sets of fields with a component for each dimension carry rigid motions as "nearnullspace", which fieldsplit hands to
    GAMG, and those of a field whose constants are in the null space of the Jacobian carry them as "nullspace".
    """
    field, comm = field_of_unknowns(problem.discretization), problem.comm
    first = comm.exscan(len(field)) or 0
    found = {}
    for k, f in enumerate(problem.physics.fields):
        mine = np.flatnonzero(field == k)
        found[f.name] = PETSc.IS().createGeneral((mine + first).astype(PETSc.IntType), comm=problem.petsc_comm)
        for name, modes in _modes(problem, f).items():
            found[f.name].compose(name, _space(problem, found[f.name], modes, mine))
    return found


def _modes(problem, field) -> dict[str, np.ndarray]:
    """Affine modes [mode, component, 1 + dim] of one field, by what they are to its block of the matrix. Collective."""
    null = problem.callbacks.null_space
    outside = np.delete(null.right, np.s_[field.offset : field.offset + field.components], axis=1)
    known = null.right[~outside.any(axis=(1, 2))]
    near = null.modes.rigid(field) if field.components == null.modes.dim else known[:0]
    return {name: modes for name, modes in (("nullspace", known), ("nearnullspace", near)) if len(modes)}


def _space(problem, numbers: PETSc.IS, modes: np.ndarray, mine: np.ndarray) -> PETSc.NullSpace:
    columns = problem.callbacks.null_space.modes.columns(problem.discretization, modes)[mine]

    def create() -> PETSc.Vec:
        return PETSc.Vec().createMPI((len(mine), numbers.getSize()), comm=problem.petsc_comm)

    return PETSc.NullSpace().create(vectors=orthonormal(problem.comm, create, columns), comm=problem.petsc_comm)


def split(problem, ksp: PETSc.KSP) -> None:
    """Give a fieldsplit preconditioner the fields, unless it has splits or finds them in the matrix. Collective.

    -pc_fieldsplit_0_fields 0,2 and the like group fields by their numbers, as with PETSc's own DMs. Raises OptionError.
    """
    pc = ksp.getPC()
    if pc.getType() != "fieldsplit" or problem.has_cell_states or c_library.has_splits(pc):
        return
    c_library.split_assembled(pc)
    prefix = pc.getOptionsPrefix() or ""
    if any(given_truth(prefix, name, False) for name in OTHERS) or is_given(prefix, "pc_fieldsplit_block_size"):
        return
    sets = list(index_sets(problem).items())
    if len(sets) < 2:
        raise OptionError(
            f"-{prefix}pc_type fieldsplit: physics '{problem.physics.name}' has one field, '{sets[0][0]}', and nothing "
            "to split; give -pc_fieldsplit_block_size, or another preconditioner"
        )
    ours = saddle_groups(problem) if problem.saddle and direct_solvers.is_default(problem, ksp) else None
    for names, numbers in ours or _groups(prefix, [name for name, _ in sets]):
        joined = sets[numbers[0]][1]
        for k in numbers[1:]:
            joined = joined.expand(sets[k][1])
        joined.sort()
        pc.setFieldSplitIS((names, joined))
    ksp.setMonitor(partial(_tell_of_limits, problem))


def _tell_of_limits(problem, ksp: PETSc.KSP, step: int, norm: float) -> None:
    """A monitor that warns, on rank 0, of solvers of splits that stop at PETSc's limit: each step waits for them."""
    is_split = step and ksp.getPC().getType() == "fieldsplit"  # LU may have taken its place
    inner = ksp.getPC().getFieldSplitSubKSP() if is_split else []
    for prefix, one in ((one.getOptionsPrefix() or "", one) for one in inner):
        stops = one.getConvergedReason() == PETSc.KSP.ConvergedReason.DIVERGED_MAX_IT
        if not stops or prefix in problem.told or is_given(prefix, "ksp_max_it"):
            continue
        cell_measures.warn_once(
            problem,
            prefix,
            f"a solver inside of fieldsplit stopped after {plural(one.getIterationNumber(), 'iteration')} without "
            f"a solution, and each iteration around it waits for that: give another -{prefix}pc_type, or say by "
            f"-{prefix}ksp_max_it how many are enough, or leave -pc_type out",
        )


def _groups(prefix: str, names: list[str]) -> list[tuple[str, list[int]]]:
    """(name, numbers of fields) of each split: the fields, or what the user's options group. Raises OptionError."""
    if not is_given(prefix, "pc_fieldsplit_0_fields"):
        return [(name, [k]) for k, name in enumerate(names)]
    groups = []
    while is_given(prefix, option := f"pc_fieldsplit_{len(groups)}_fields"):
        text = given_text(prefix, option, "")
        numbers = [int(part) if part.strip().isdigit() else -1 for part in text.split(",")]
        if not all(0 <= k < len(names) for k in numbers):
            raise OptionError(
                f"-{prefix}{option} is '{text}'; it takes numbers of fields with commas, 0 to {len(names) - 1}"
            )
        groups.append((str(len(groups)) if len(numbers) > 1 else names[numbers[0]], numbers))
    return groups


def constraints_of(problem) -> list[str]:
    """Fields that get the diagonal; none where LU, another solver or the user's is taken. Collective."""
    count = problem.num_unknowns
    is_large = problem.options.backend in OF_DEGREES and count > direct_solvers.most_of_saddles(problem)
    if not is_large or problem.direct or not direct_solvers.is_open(problem, count):
        return []
    return constraints(problem.physics, problem.mesh.dim)


def take_saddle(problem, ksp: PETSc.KSP, names: list[str]) -> None:
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


def saddle_groups(problem) -> list[tuple[str, list[int]]]:
    """(name, numbers of fields) of both splits, as field_splits names them."""
    fields = problem.physics.fields
    numbers = [[k for k, f in enumerate(fields) if (f.name in problem.saddle) == last] for last in (False, True)]
    return [(fields[part[0]].name if len(part) == 1 else str(k), part) for k, part in enumerate(numbers)]


def setting_up_saddle(problem):
    """Context manager: options of the solvers of both splits, unless the user gives them."""
    parts = zip(saddle_groups(problem), (OF_OTHERS, OF_PRESSURE), strict=True)
    wanted = {f"fieldsplit_{name}_{key}": value for (name, _), part in parts for key, value in part.items()}
    return defaults_in_database(problem.prefix, wanted, unless="pc_type")


def view_saddle(problem) -> list[str]:
    """A line for -fe_view where a problem takes the block preconditioner."""
    if not problem.saddle:
        return []
    names = " and ".join(f"'{name}'" for name in problem.saddle)
    why = reason(problem.physics, problem.mesh.dim, problem.saddle[0])
    return [f"  linear solver: a block preconditioner with a diagonal for {names}, because {why}"]
