"""Fields of a problem as index sets, and PETSc's fieldsplit preconditioner made of them.

PETSc finds fields through the section of a DM, which knows neither the storage order of `cg_gpu` nor the interleaved
cells of `sipg_gpu`, so the preconditioner is given its splits here.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from petsc4py import PETSc

from ...errors import OptionError, warn_user
from ...options import given_text, given_truth, is_given
from ...petsc import c_library
from ...value_checks import plural
from . import direct_solvers, saddle_splits
from .null_space import orthonormal

OTHERS = ("pc_fieldsplit_detect_saddle_point", "pc_fieldsplit_detect_coupling")  # which find splits in the matrix


def field_of_unknowns(discretization) -> np.ndarray:
    """Number of the field [owned] int32 that each of this rank's unknowns belongs to."""
    fields, dofmap = discretization.physics.fields, discretization.dofmap
    of_component = np.repeat(np.arange(len(fields), dtype=np.int32), [f.components for f in fields])
    if discretization.is_polytopic:  # [polytope][component][function]
        sizes = discretization.numbering.sizes[: discretization.polytopes.count]
        return np.repeat(np.tile(of_component, len(sizes)), np.repeat(sizes, len(of_component)))
    found = np.zeros(dofmap.num_owned, np.int32)
    for space in discretization.spaces:
        numbers = dofmap.compact[dofmap.cell_dofs[:, space.first_dof : space.first_dof + space.num_dofs]]
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
            space = _space(problem, found[f.name], modes, mine)
            found[f.name].compose(name, space)
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
    ours = saddle_splits.groups(problem) if problem.saddle and direct_solvers.is_default(problem, ksp) else None
    for names, numbers in ours or _groups(prefix, [name for name, _ in sets]):
        joined = sets[numbers[0]][1]
        for k in numbers[1:]:
            joined = joined.expand(sets[k][1])
        joined.sort()
        pc.setFieldSplitIS((names, joined))
    ksp.setMonitor(partial(_tell_of_limits, problem))


def _tell_of_limits(problem, ksp: PETSc.KSP, step: int, norm: float) -> None:
    """A monitor that warns, on rank 0, of solvers of splits that stop at PETSc's limit: each step waits for them."""
    inner = ksp.getPC().getFieldSplitSubKSP() if step else []
    for prefix, one in ((one.getOptionsPrefix() or "", one) for one in inner):
        stops = one.getConvergedReason() == PETSc.KSP.ConvergedReason.DIVERGED_MAX_IT
        if not stops or prefix in problem.told or is_given(prefix, "ksp_max_it"):
            continue
        problem.told.add(prefix)
        if problem.comm.rank == 0:
            warn_user(
                f"a solver inside of fieldsplit stopped after {plural(one.getIterationNumber(), 'iteration')} without "
                f"a solution, and each iteration around it waits for that: give another -{prefix}pc_type, or say by "
                f"-{prefix}ksp_max_it how many are enough, or leave -pc_type out"
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
