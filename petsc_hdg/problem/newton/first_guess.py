"""Where Newton's method begins if the user does not say, and what is tried where it comes to no solution."""

from __future__ import annotations

import warnings

import numpy as np
from petsc4py import PETSc

from ... import log, operators
from ...database import any_given, defaults_in_database, is_given
from ...discretizations.poly.legendre import project
from ...discretizations.symmetry import NEARLY
from ...errors import LeftSolverError, PetscHdgError, SolveError
from ...mesh.order import samples
from .. import solution_checks
from ..linear import cell_measures, direct_solvers, methods, solvers
from ..linear.coarse_solvers import on_device
from ..linear.null_space import set_near_nullspace
from . import monitors

SCHEMES = ("cg_gpu", "sipg_gpu", "poly_gpu")  # whose state is all that Newton's method has
SAMPLES = 32  # facets of a boundary at whose vertices its data are looked at
LEAST_PART = 1e-3  # of the residual of a start over that at zero: a start that is worse is none
BY_RESIDUAL = (PETSc.SNES.ConvergedReason.CONVERGED_FNORM_ABS, PETSc.SNES.ConvergedReason.CONVERGED_FNORM_RELATIVE)
FEW = 2_000  # unknowns of a continuous function up to which LU takes no longer than multigrid
KEPT = 2  # extensions of data
STEPS = 50  # that PETSc gives Newton's method
SECANTS = "l2" if PETSc.Sys.getVersion() < (3, 24) else "secant"
# What follows Newton's method with a line search that shortens steps. By secants of the residual's norm it may grow at
# first, as where a stiff contact opens all at once.
OTHERS = {"a trust region": {"snes_type": "newtontr"}, "a line search by secants": {"snes_linesearch_type": SECANTS}}
INCOMPLETE = "the solution of the incomplete method"
CONTINUOUS = "the solution by continuous elements of first degree"
LINEAR = "the linear extension of the data"
MOVED = "the guess, moved with the data"
PSEUDO_TIME = "steps of pseudo time"
MOST_PSEUDO_STEPS, LONG = 100, 1e9  # after which there is no steady state; an end time over the first step
PSEUDO_SETTINGS = {"ts_type": "pseudo", "ts_pseudo_increment": "1.5", "ts_max_steps": f"{MOST_PSEUDO_STEPS}"}


def solve(problem, u: PETSc.Vec, is_open: bool) -> None:
    """Solve from u, or, if the start `is_open`, u is zero and there are essential data, from their linear extension.

    Where that fails interior penalty begins at the solution of its incomplete method; then `OTHERS` have the first
    start, and then the first method has u itself. Collective.

    `problem.tried` keeps what was tried, for people.
    """
    problem.tried = []
    in_time = problem.has_cell_states and may_take_pseudo_time(problem)
    if not in_time and (problem.options.backend not in SCHEMES or problem.physics.is_linear):
        monitors.solve(problem, u)
        return
    zero, start, part = u.copy(), "the guess" if u.norm() > 0 or not is_open or in_time else "zero", 1.0
    if start == "zero" and _has_data(problem) and take(_extension(problem), u):
        start, part = LINEAR, _part_of_residual(problem, zero, u)
        if part < LEAST_PART:
            start, part = "zero", 1.0
            zero.copy(u)
    if start == "the guess" and _moves(problem, zero, u):
        start = MOVED
    problem.watch.has_another = _may_go_on(problem)
    begin, failure = u.copy(), attempt(problem, u, f"Newton's method from {start}", part)
    if failure is not None and start == "the guess" and take(moved_with_data(problem, zero), u):
        u.copy(begin)
        start, failure = MOVED, attempt(problem, u, f"Newton's method from {MOVED}")
    problem.watch.has_another &= not in_time
    if failure is not None and in_time and take(by_pseudo_time(problem, begin), u):
        failure = attempt(problem, u, f"Newton's method from the end of {PSEUDO_TIME}")
    if failure is not None and _may_go_on(problem) and take(_by_incomplete_method(problem, begin), u):
        failure = attempt(problem, u, f"Newton's method from {INCOMPLETE}", part)
    if failure is not None and _may_go_on(problem) and not in_time:
        for name, settings in OTHERS.items():
            if failure is not None and not any(is_given(problem.prefix, key) for key in settings):
                begin.copy(u)
                problem.watch.has_another = start == LINEAR
                failure = _by_another(problem, u, f"{name} from {start}", settings, part)
        problem.watch.has_another = False
        if failure is not None and start == LINEAR:
            zero.copy(u)
            failure = attempt(problem, u, "Newton's method from zero")
    for vector in (zero, begin):
        vector.destroy()
    if isinstance(failure, SolveError):
        raise SolveError(f"{failure}{solvers.told(problem.tried)}")


def note(problem, name: str) -> None:
    """Keep, and say, what is tried; for -fe_view what is not the first. Collective."""
    problem.tried.append(name)
    log.info("tries %s", name)
    if problem.options.view and len(problem.tried) > 1:
        PETSc.Sys.Print(f"  nonlinear solver: tries {name}", comm=problem.petsc_comm)


def attempt(problem, u: PETSc.Vec, name: str, part: float = 1.0) -> SolveError | bool | None:
    """Solve from u to a part of the relative tolerance; None if that leads to a solution, else the error, or False
    where SNES tells. Collective."""
    note(problem, name)
    problem.operator.restart()
    snes = problem.snes
    try:
        with solvers.own_tolerances(snes) as (rtol, *_):
            snes.setTolerances(rtol=part * rtol)
            monitors.solve(problem, u)
    except LeftSolverError:
        raise
    except SolveError as error:
        return error
    reason = snes.getConvergedReason()  # a trust region that has shrunk is none
    return None if (reason > 0 and snes.getType() != "newtontr") or reason in BY_RESIDUAL else False


def _part_of_residual(problem, zero: PETSc.Vec, u: PETSc.Vec) -> float:
    """Return |F(zero)| / |F(u)|, at most 1, so that a worse start has no easier tolerance; 0 if F(u) is not finite.
    Collective."""
    norms, f = [], u.duplicate()
    for state in (zero, u):
        problem.operator.restart()
        problem.callbacks.residual(None, state, f)
        norms.append(f.norm())
    f.destroy()
    if not (np.isfinite(norms[1]) and norms[1] > 0):
        return 0.0
    return min(1.0, norms[0] / norms[1]) if np.isfinite(norms[0]) else 1.0


def _may_go_on(problem) -> bool:
    """True if something else is worth trying: SNES is the default, and did not come to what is no number."""
    return is_default(problem) and not solution_checks.met_no_number(problem.snes)


def is_default(problem) -> bool:
    """True if SNES is the default, makes as many steps as it likes, and writes no checkpoints."""
    snes, given = problem.snes, any(is_given(problem.prefix, name) for name in ("snes_type", "snes_max_it"))
    default = snes.getType() == "newtonls" and not given and problem.checkpoints.monitor is None
    return default and snes.getTolerances()[3] >= STEPS


def _by_incomplete_method(problem, begin: PETSc.Vec) -> PETSc.Vec | None:
    """Return the solution from `begin` by -sipg_theta 0, or None. It has no adjoint term, by which the energy may be
    unbounded where a jump meets a large flux. None too if the scheme is that method or another one. Collective."""
    if problem.options.backend in ("cg_gpu", "hdg_gpu") or problem.options.sipg_theta == 0:
        return None
    found = solved_by(problem, INCOMPLETE, lambda other: other.solve(begin), sipg_theta=0)
    return None if found is None else found[1]


def solved_by(problem, name: str, solve, **options) -> tuple | None:
    """Return a problem of the same physics, mesh and data by other options, which warns of nothing, and what `solve`
    gives for it; None where that fails, as of conditions that its scheme lacks, or of room for two. Collective."""
    note(problem, name)
    other = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = problem.with_options(view=False, kernel_view="", **options)
            return other, solve(other)
    except PetscHdgError:  # one that left PETSc has locked the vectors of the other problem alone
        return None
    finally:
        if other is not None:
            problem.newton_iterations += other.newton_iterations or 0
            problem.linear_iterations += other.linear_iterations or 0


def by_continuous_elements(problem, guess: PETSc.Vec) -> PETSc.Vec | None:
    """Return the solution by cg_gpu of first degree from a guess of a trace: its steps need no solutions in cells,
    which may not exist on the way, or may be others. None if that fails, or solvers are the user's. Collective."""
    is_ours = not any(is_given(problem.prefix, name) for name in direct_solvers.NAMED) and _may_go_on(problem)
    if not is_ours or any(field.degree_offset < 0 for field in problem.physics.fields):
        return None
    start = _subspace(problem).average(guess) if guess.norm() > 0 else None
    plain = {"backend": "cg_gpu", "degree": 1, "quadrature_degree": -1, "pmat": "auto", "kernel": "auto"}
    solved = solved_by(problem, CONTINUOUS, lambda other: other.solve(start), **plain)
    if solved is None:
        return None
    u, (other, found) = problem.create_vec(), solved
    with problem.access.read(found) as x:
        u.setArray(_in_scheme(problem.discretization, other.operator, x))
    return u


def may_take_pseudo_time(problem) -> bool:
    """True if steps of pseudo time are worth trying: of a conservation law by traces with solvers and steps that are
    not the user's."""
    is_flow = problem.derivative == "flow" and not problem.physics.has_jacobian
    return is_flow and is_default(problem) and not any_given(f"{problem.prefix}ts_", "")


def by_pseudo_time(problem, guess: PETSc.Vec) -> PETSc.Vec | None:
    """Return the steady state that steps of pseudo time lead to from a guess; None if they do not. Collective."""
    start, physics = guess.getArray(readonly=True).copy(), problem.given_physics
    count, operator, u = problem.discretization.dofmap.num_owned, problem.operator, problem.create_vec()
    if not problem.has_cell_states:
        operator.forget_interior()
        with problem.access.read(guess) as x:
            operator.begin(x)
        start = np.concatenate([start, operators.read_interior(operator, operator.interior).T.ravel()])
    dt = _time_through_cell(problem, start[count:])

    def solve(other) -> PETSc.Vec:
        begin = other.create_vec()
        begin.setArray(start)
        return other.solve_in_time(begin, LONG * dt, dt)

    with defaults_in_database(problem.prefix, PSEUDO_SETTINGS, unless="ts_type"):
        rates = physics if physics.uses_time_derivative else physics.with_rates()
        solved = solved_by(problem, PSEUDO_TIME, solve, physics=rates) if 0 < dt < np.inf else None
    if solved is None or solved[0].time_steps >= MOST_PSEUDO_STEPS:
        return None
    u.setArray(solved[1].getArray(readonly=True)[: u.getLocalSize()])
    return u


def _time_through_cell(problem, cells: np.ndarray) -> float:
    """Median of the time that the fastest wave takes through a cell, at the mean of its states [owned]. Collective."""
    mesh, physics, times = problem.mesh, problem.physics, []
    states = cells.reshape(mesh.num_cells, -1, physics.num_components).mean(axis=1)
    for cell in samples(mesh.num_cells, cell_measures.SAMPLES):
        nodes, flat = mesh.geometry.nodes[mesh.geometry.cell_nodes[cell]], np.zeros((physics.num_components, mesh.dim))
        inputs = cell_measures.sampled_inputs(problem, cell, nodes.mean(axis=0))
        with np.errstate(all="ignore"):  # a state may be outside of the physics' domain
            slopes = physics.interpreter(mesh.dim).g_blocks(states[cell], flat[:, 0], flat, *inputs)[2]
            speeds = np.linalg.eigvals(np.nan_to_num(np.moveaxis(slopes, 2, 0)))
            times.append(np.ptp(nodes, axis=0).min() / np.abs(speeds).max())
    return cell_measures.median(problem, times)


def _by_another(problem, u: PETSc.Vec, name: str, settings: dict, part: float) -> SolveError | bool | None:
    """Call `attempt` with other settings, by a SNES of its own: the KSP of a trust region never forgets that.
    Collective."""
    line_search = problem.snes
    (rtol, atol, stol, most), ksp = line_search.getTolerances(), line_search.getKSP()
    try:
        with defaults_in_database(problem.prefix, settings, unless=next(iter(settings))):
            problem.snes = other = problem.create_snes()
            other.setTolerances(rtol=rtol, atol=atol, stol=stol, max_it=most)
            other.getKSP().setTolerances(*ksp.getTolerances())
            other.monitorCancel()  # those of options, which the first one has too
            other.setMonitor(lambda _, step, norm: line_search.monitor(step, norm))
            failure = attempt(problem, u, name, part)
    finally:
        problem.snes = line_search
    if failure is None:
        line_search.setConvergedReason(other.getConvergedReason())
    other.destroy()
    return failure


def _has_data(problem, before=None) -> bool:
    """Return True if essential conditions say something that is not zero, or else than with the constants before, or
    read auxiliary fields. Collective."""
    values, reads = _data(problem, problem.operator.constants), problem.discretization.essential_auxiliary_components
    if before is not None:
        values = values - _data(problem, before)
    return problem.comm.allreduce(int(bool(reads) or (np.abs(values) > 0).any())) > 0


def _data(problem, constants) -> np.ndarray:
    """Values of the essential conditions at some of this rank's vertices [place and component], none if they read
    auxiliary fields."""
    mesh, physics, found = problem.mesh, problem.physics, []
    interpreter, reads = physics.interpreter(mesh.dim), problem.discretization.essential_auxiliary_components
    for number, condition in enumerate(() if reads else physics.dirichlet):
        facets = np.flatnonzero(mesh.facet_mask(condition.label))
        vertices = mesh.topology.entity_vertices[mesh.dim - 1][facets[:: max(1, len(facets) // SAMPLES)]]
        with np.errstate(all="ignore"):
            for x in mesh.geometry.nodes[np.unique(vertices)]:
                found.extend(interpreter.pw_dirichlet(number, None, 0.0, x, constants))
    return np.array(found, float)


def moved_with_data(problem, guess: PETSc.Vec) -> PETSc.Vec | None:
    """Return a guess plus the linear extension of the change of the essential data since the last solution, or of the
    data if the guess is zero. None if the data have not changed, or the extension is not found. Without it cells at a
    boundary that moves far are turned inside out. Collective."""
    before, is_zero = problem.solved_constants, guess.norm() == 0
    if problem.checkpoints.monitor is not None or not (is_zero or before is not None) or problem.has_cell_states:
        return None  # a restart does not know the constants before, and an extension has no cells
    if not _has_data(problem, None if is_zero else before):
        return None
    moved = _extension(problem)
    if moved is not None and not is_zero:
        old = _extension(problem, before)
        moved = None if old is None else moved - old
    if moved is None or moved.norm() == 0:
        return None
    moved.axpy(1.0, guess)
    return moved


def are_constants_new(problem) -> bool:
    """True if there is a solution, and constants have changed since."""
    before = problem.solved_constants
    return before is not None and not np.array_equal(before, problem.operator.constants)


def _moves(problem, guess: PETSc.Vec, u: PETSc.Vec) -> bool:
    """Put the moved guess into u and return True, if constants have changed since the last solution and the move does
    not increase the residual. Collective."""
    moved = moved_with_data(problem, guess) if are_constants_new(problem) else None
    return moved is not None and _part_of_residual(problem, guess, moved) == 1.0 and take(moved, u)


def take(found: PETSc.Vec | None, u: PETSc.Vec) -> bool:
    """Copy a vector into u; return False if it is None."""
    if found is not None:
        found.copy(u)
    return found is not None


def _extension(problem, constants=None) -> PETSc.Vec | None:
    """Return the continuous function of first degree that extends the data of these constants, or of the problem's;
    None if there is none. The last ones are kept: those of a load are asked for again with the next. Collective."""
    given, kept = problem.operator.constants if constants is None else constants, problem.extensions
    key = given.tobytes(), problem.operator.auxiliary_version
    if key not in kept:
        kept[key] = _extended(problem, constants)
        for old in list(kept)[:-KEPT]:
            del kept[old]
    if kept[key] is None:
        return None
    u = problem.create_vec()
    kept[key].copy(u)
    return u


def _extended(problem, constants) -> PETSc.Vec | None:
    """Return the extension of data by a solution of the problem linearized where u, its gradient and all data are zero.
    None if that fails, or a field has no first degree where others have it. Collective."""
    if any(field.degree_offset < 0 for field in problem.physics.fields):
        return None
    calls, u, subspace = problem.callbacks, problem.create_vec(), _subspace(problem)
    step = subspace.mat.createVecLeft()
    step.set(0.0)
    if not subspace.mat.getSize()[0]:
        return None
    try:
        with solvers.agreed(problem.comm):
            found = _solve_linear(problem, subspace, step, constants)
    except SolveError:  # of a physics that is not meant for zero
        found = False
    if found:
        with problem.access.read(step) as x:
            u.setArray(_in_scheme(problem.discretization, subspace.operator, x))
    subspace.operator.set_constants(problem.operator.constants)
    calls.forget()
    return u if found else None


def _subspace(problem) -> operators.ConformingSubspace:
    """The continuous functions of first degree, those of the preconditioner where it has them. Collective."""
    known = problem.callbacks.conforming
    given = problem.operator, problem.access, problem.petsc_comm, problem.vec_type
    return known or operators.ConformingSubspace(*given)


def _solve_linear(problem, subspace, step: PETSc.Vec, constants) -> bool:
    """`step` = what the free vertices have; whether that is found. Collective."""
    operator, (load, image) = subspace.operator, (step.duplicate(), step.duplicate())
    subspace.update_data()
    if constants is not None:
        operator.set_constants(constants)
    with operator.without_data():
        subspace.update_at(step)
    with problem.access.write(load) as out:
        operator.data_action(out)
    load.scale(-1.0)
    subspace.mat.mult(load, image)
    if not np.isfinite([load.norm(), image.norm()]).all() or image.norm() == 0:
        return False
    return any(_is_solved(problem, subspace, by, load, step) for by in _preconditioners(problem, subspace.mat))


def _preconditioners(problem, mat: PETSc.Mat) -> list[str]:
    """Types of PC that are worth trying, one after the other. Collective."""
    rows = mat.getSize()[0]
    on_host = ["lu" if rows <= direct_solvers.MOST else "gamg"]
    suits = rows > FEW and problem.derivative in NEARLY
    return ["python", *on_host] if suits and on_device(problem, mat, problem.prefix) else on_host


def _is_solved(problem, subspace, by: str, load: PETSc.Vec, step: PETSc.Vec) -> bool:
    """Return True if `step` has become the solution for `load` by a type of PC. Collective."""
    ksp = PETSc.KSP().create(step.comm)
    ksp.setOperators(subspace.mat)
    ksp.setType("fgmres")
    ksp.setTolerances(rtol=methods.IN_NEWTON, max_it=direct_solvers.PATIENCE)
    pc = ksp.getPC()
    if by == "lu":
        direct_solvers.set_factors(pc, problem.options.deterministic)
    else:
        if not subspace.mat.getNearNullSpace().handle:
            set_near_nullspace(subspace.discretization, subspace.mat)
        pc.setType(by)
    if by == "python":
        pc.setPythonType("petsc_hdg.AMG")
    ksp.solve(load, step)
    found = ksp.getConvergedReason() >= 0 and bool(np.isfinite(step.norm()))
    ksp.destroy()
    return found


def _in_scheme(discretization, operator, x) -> np.ndarray:
    """This rank's unknowns [owned] of a vector of another operator: values of its fields in cells at the nodes of a
    discretization, or their projection. Collective."""
    if discretization.is_polytopic:
        at = discretization.quadrature.points
        return project(discretization, np.concatenate([f.at(at) for f in operator.cell_fields(x, 0.0)], axis=2))
    dofmap = discretization.dofmap
    compact, found = dofmap.compact, np.zeros(dofmap.num_owned)
    for part, other in zip(discretization.parts, operator.parts, strict=True):
        fields = other.cell_fields(x, 0.0)
        several = len(part.spaces) > 1  # a trace has all fields in one
        for space, own in zip(part.spaces, [[field] for field in fields] if several else [fields], strict=True):
            numbers = compact[part.dofmap.cell_dofs[:, space.first_dof : space.first_dof + space.num_dofs]]
            values = np.concatenate([f.at(space.element.nodes) for f in own], axis=2).reshape(numbers.shape)
            found[numbers[numbers < dofmap.num_owned]] = values[numbers < dofmap.num_owned]
    return found
