"""What PETSc's solvers need to know beyond the operators: near null spaces, and reasons for failure in words."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
from petsc4py import PETSc

from ..discretizations import PolytopicDG
from ..discretizations.dofmap import dof_nodes
from ..errors import OptionError, SolveError, causes, collectively, our_error
from ..mesh.petsc_c import reason, vec_type_of
from ..operators.advice import advice
from . import compatible

PATIENCE = 5.0  # seconds that a rank which fails in a solve gives the others to fail too
ROUNDS = 5  # of a slab whose scheme follows the state
CONSTANTS = "petsc_hdg_constants"  # attribute of a matrix: the null space that it has from us
SETTLED = "petsc_hdg_settled"  # attribute of a Jacobian: the data for which it is known whether it has one


@contextmanager
def agreed(comm, solver: PETSc.Object | None = None):
    """A call of PETSc's solvers in which all ranks fail with the same error, or one ends the program. Collective.

    A rank that fails inside of PETSc leaves the others there, which it can tell only if they come out too. A `solver`
    (SNES or TS) that an error leaves within a cycle of multigrid is never destroyed, see `_within_multigrid`.
    """
    with collectively(comm, patience=PATIENCE):
        try:
            yield
        except Exception as error:
            if solver is not None and _within_multigrid(error):
                solver.incRef()
            if not isinstance(error, PETSc.Error):
                raise
            found = our_error(error) or _cause(error)
            if found is not None:
                raise found from None
            raise SolveError(
                f"PETSc's solvers failed ({reason(error)}); check the options -ksp_type, -pc_type and theirs"
            ) from error


def _within_multigrid(error: BaseException | None) -> bool:
    """Whether PETSc was in a cycle of multigrid when an error came.

    PCMG borrows the vectors of its finest level for a cycle and gives them back at its end. After an error it has them
    still, and destroys them with itself although they are others', which ends the program by a signal (PETSc 3.18).
    """
    calls = list(getattr(PETSc.Error, "_traceback_", None) or [])  # of the last error, where PETSc is 3.18
    calls += [str(found) for found in causes(error) if isinstance(found, PETSc.Error)]  # PETSc 3.26 says it there
    return any("PCApply_MG" in call for call in calls)


def _cause(error: BaseException | None) -> BaseException | None:
    """What a callback of the user's raised, which PETSc 3.26 wraps; None if PETSc itself failed."""
    return next((found for found in causes(error) if not isinstance(found, PETSc.Error)), None)


def vec_type(dm) -> str:
    """Type of the vectors that a DM makes (`-dm_vec_type`). Collective."""
    vector = PETSc.Vec().create(dm.comm)
    vector.setSizes(dm.comm.size)
    try:
        vector.setType(vec_type_of(dm))
    except PETSc.Error as error:
        raise OptionError(
            f"this PETSc has no vectors of the type that -dm_vec_type names ({reason(error)}); leave the option out, "
            "or for viennacl use a PETSc configured with OpenCL and ViennaCL (scripts/build_petsc.sh builds one)"
        ) from None
    found = vector.getType()
    vector.destroy()
    return found


def set_near_nullspace(discretization, mat: PETSc.Mat) -> None:
    """Give GAMG the rigid-body modes if the only field is a displacement (one component a dimension). Collective.

    Where unknowns stand in blocks, which are not components, other physics gets the constants of each component.
    """
    space, dim = discretization.spaces[0], discretization.dim
    is_displacement = len(discretization.physics.fields) == 1 and space.components == dim
    if not is_displacement and discretization.block_size == 1:
        return
    x, component = _owned_places(discretization, space)
    modes = [(component == c).astype(float) for c in range(space.components)]
    if is_displacement:
        pairs = [(0, 1)] if dim == 2 else [(0, 1), (1, 2), (2, 0)]
        modes += [np.where(component == a, -x[:, b], np.where(component == b, x[:, a], 0.0)) for a, b in pairs]
    vectors = _orthonormal(mat, modes)
    mat.setNearNullSpace(PETSc.NullSpace().create(vectors=vectors, comm=mat.comm))
    for v in vectors:
        v.destroy()


def settle_constants(problem, u: PETSc.Vec) -> None:
    """Tell the solver of a solution that is known up to a constant: no essential conditions, and J 1 = 0. Collective.

    It is found out once for the data that a linear physics' Jacobian reads. Raises SolveError if source and fluxes do
    not balance, so that there is no solution at all, and warns where they nearly do.
    """
    if problem.physics.dirichlet or problem.physics.num_components > 1 or problem.physics.uses_time_derivative:
        return
    jacobian, coefficients = problem.callbacks.jacobian, problem.operator.coefficients
    if not problem.physics.is_linear or jacobian.getAttr(SETTLED) != coefficients:
        _find_constants(problem, u)
        jacobian.setAttr(SETTLED, coefficients)
    if jacobian.getAttr(CONSTANTS) is not None:
        compatible.check(problem, u, _one(problem, u))


def _find_constants(problem, u: PETSc.Vec) -> None:
    """Give the matrices the null space of constants if the Jacobian at u has it, else take it from them. Collective."""
    calls, ones, product = problem.callbacks, _one(problem, u), u.duplicate()
    matrices = calls.matrices
    _drop_constants(matrices)
    calls.linearize(None, u, calls.jacobian, calls.preconditioning)
    calls.jacobian.mult(ones, product)
    if product.norm(PETSc.NormType.INFINITY) > 1e-10 * calls.jacobian.getDiagonal().norm(PETSc.NormType.INFINITY):
        return
    constants = _span(problem, ones)
    for mat in matrices:
        mat.setNullSpace(constants)
        mat.setTransposeNullSpace(constants)
        mat.setAttr(CONSTANTS, constants)


def share_constants(calls) -> None:
    """Give the matrix of the preconditioner the null space that the Jacobian has from us."""
    constants = calls.jacobian.getAttr(CONSTANTS)
    if constants is not None:
        calls.preconditioning.setNullSpace(constants)
        calls.preconditioning.setTransposeNullSpace(constants)
        calls.preconditioning.setAttr(CONSTANTS, constants)


def _drop_constants(matrices: list[PETSc.Mat]) -> None:
    """Take from matrices the null space that other data gave them in a solve before; a user's own stays."""
    for mat in matrices:
        before = mat.getAttr(CONSTANTS)
        if before is None:
            continue
        if mat.getNullSpace().handle == before.handle:
            mat.setNullSpace(PETSc.NullSpace())
            mat.setTransposeNullSpace(PETSc.NullSpace())
        mat.setAttr(CONSTANTS, None)


def _one(problem, u: PETSc.Vec) -> PETSc.Vec:
    """The function 1."""
    if isinstance(problem.discretization, PolytopicDG):
        return problem.interpolate(1.0)
    ones = u.duplicate()
    ones.set(1.0)
    return ones


def _span(problem, ones: PETSc.Vec) -> PETSc.NullSpace:
    """The null space of constants; PETSc's own fits matrices of coarser levels too."""
    if not isinstance(problem.discretization, PolytopicDG):
        return PETSc.NullSpace().create(constant=True, comm=ones.comm)
    ones.normalize()
    return PETSc.NullSpace().create(vectors=[ones], comm=ones.comm)


def _owned_places(discretization, space) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates [owned, dim] and component [owned] of this rank's degrees of freedom."""
    dofmap = discretization.dofmap
    numbers = dofmap.compact[dofmap.cell_dofs].reshape(-1, space.element.num_basis, space.components)
    nodes = dof_nodes(discretization.mesh, space)
    x, component = np.zeros((dofmap.num_owned, discretization.dim)), np.zeros(dofmap.num_owned, dtype=int)
    for c in range(space.components):
        inside = numbers[:, :, c] < dofmap.num_owned
        x[numbers[:, :, c][inside]] = nodes[inside]
        component[numbers[:, :, c][inside]] = c
    return x, component


def _orthonormal(mat, modes) -> list[PETSc.Vec]:
    vectors = []
    for mode in modes:
        v = mat.createVecLeft()
        v.setArray(mode)
        for other in vectors:
            v.axpy(-v.dot(other), other)
        if v.normalize() > 1e-12:
            vectors.append(v)
    return vectors


def set_from_options(solver) -> None:
    """Apply PETSc's options to a solver. Raises OptionError, on all ranks, for what PETSc does not accept."""
    try:
        solver.setFromOptions()
    except PETSc.Error as error:
        raise OptionError(
            f"PETSc does not accept an option of this solver ({reason(error)}); "
            f"check -{solver.getOptionsPrefix() or ''}snes_type, -ksp_type and -pc_type and their options, "
            "-help lists the known ones"
        ) from None
    _check_tolerances(solver)


def _check_tolerances(solver) -> None:
    """Raise OptionError for a relative tolerance that the first guess meets, or that nothing can."""
    snes = solver.getSNES() if isinstance(solver, PETSc.TS) else solver
    known = [("ksp_rtol", snes.getKSP())] if isinstance(snes, PETSc.SNES) else [("ksp_rtol", snes)]
    known += [("snes_rtol", snes)] if isinstance(snes, PETSc.SNES) else []
    for name, one in known:
        rtol = one.getTolerances()[0]
        if not 0 <= rtol < 1:
            raise OptionError(
                f"-{solver.getOptionsPrefix() or ''}{name} {rtol:g}: nothing would be solved; "
                "give a relative tolerance from 0 to below 1"
            )


def check_converged(snes: PETSc.SNES, failure: str = "", explain=None) -> None:
    """Raise SolveError, on all ranks, if the solver stopped without a solution.

    failure: what the operator says.   explain: function that looks for the cause and says it, or "". Collective.
    """
    ksp = snes.getKSP()
    if min(ksp.getConvergedReason(), snes.getConvergedReason()) < 0 and not failure and explain is not None:
        failure = explain()
    if ksp.getConvergedReason() < 0:
        why = _name(PETSc.KSP.ConvergedReason, ksp.getConvergedReason())
        raise SolveError(
            f"the linear solver stopped without a solution: {why} after {ksp.getIterationNumber()} iterations; "
            + (failure or advice(ksp))
        )
    if snes.getConvergedReason() < 0:
        why = _name(PETSc.SNES.ConvergedReason, snes.getConvergedReason())
        raise SolveError(
            f"the nonlinear solver stopped without a solution: {why} after {snes.getIterationNumber()} steps; "
            + (failure or "-snes_monitor shows its course, a better first guess or -snes_linesearch_type may help")
        )


def _name(reasons, value: int) -> str:
    return next(
        (name for name in dir(reasons) if getattr(reasons, name) == value and name.startswith("DIVERGED")), str(value)
    )
