"""Direct solvers of small assembled matrices: where multigrid has no levels that are worth it, of saddle points, and in
the place of default solvers that fail, or that take more iterations than a factorization is worth."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager

from petsc4py import PETSc

from ... import log
from ...database import defaults_in_database, is_given
from ...discretizations import symmetry
from ...discretizations.symmetry import fields_without_own_terms
from ...operators.callbacks import INDEFINITE
from ...value_checks import plural
from .. import cells_in_time
from . import boundary_flow, cell_measures, methods

FEW = 300  # unknowns up to which a direct solver is the default
FEW_OF_LEVELS = {2: 10_000, 3: 2_000}  # the same of a coarse level on a CPU, by dimension
MOST = 20_000  # unknowns up to which one takes the place of iterations
# The same in the plane, times the unknowns per cell: by MUMPS, whose dense fronts are fast, and by PETSc's LU.
IN_PLANE, IN_PLANE_BY_PETSC = 4_000_000, 600_000
MOST_BY_PETSC = 4000  # rows of which PETSc's LU takes as long as MUMPS' in space; seven times as long of 25 000
KNOWN = 2.5  # times as many where the data say that iterations would be slow: none are lost before LU
SERVED = 200_000  # unknowns from which levels with incomplete factors take less time than LU where they converge fast
LEAST_WIDTH = 10  # unknowns per cell that count there at least
COPIES = 4  # ranks that may have factors of that size each
IN_SPACE = 50_000  # the same in space, by MUMPS: of coarse levels and saddle points, and at least of failed iterations
WORK_IN_SPACE = 560_000  # of failed iterations, times the root of the unknowns per cell; half if all are of cells
# The same in time on CPUs, by scheme, dimension and whether cells are simplices: where one matrix serves all steps, and
# where matrices follow the state or the step.
IN_TIME = {
    ("cg_gpu", 2, True): (50_000, 20_000),
    ("cg_gpu", 2, False): (20_000, 1_000),
    ("cg_gpu", 3, True): (20_000, 1_000),
    ("hdg_gpu", 2, True): (20_000, 0),
    ("hdg_gpu", 2, False): (10_000, 0),
}
PATIENCE = 50  # iterations of a default solver up to there, where LU costs about as much
IN_NEWTON = 300  # the same of nonlinear problems without LU, and above MOST in space and of GPUs
EVERY_STEP = 1_000_000  # linear solves that may stop without a solution
NAMED = ("ksp_type", "pc_type", "ksp_max_it")  # options by which users choose their solver
# A zero pivot of a singular matrix, as of a pressure up to constants, is left out or moved; iterations mend the rest.
SINGULAR = {"mat_mumps_icntl_24": "1", "redundant_pc_factor_shift_type": "inblocks"}
OF_EACH_RANK = {"redundant_pc_factor_mat_solver_type": "mumps", "redundant_mat_mumps_icntl_24": "1"}
_REASON = PETSc.KSP.ConvergedReason


def set_type_or(problem, pc: PETSc.PC, mat: PETSc.Mat, other: str, few: int | None = None) -> None:
    """Give a PC a direct solver before the user's options if its matrix has at most `few` rows (None: FEW), else
    another type. Collective."""
    if mat.getSize()[0] > (FEW if few is None else few):
        pc.setType(other)
    else:
        set_type(problem, pc)


def few_of_levels(problem) -> int:
    """Rows up to which LU solves a coarse level: on one rank and a CPU more than multigrid has on its coarsest level,
    unless the matrix may be singular. Collective."""
    suits = problem.comm.size == 1 and not problem.device.has_solvers
    is_regular = suits and not len(problem.callbacks.null_space.candidates)
    return FEW_OF_LEVELS[problem.mesh.dim] if is_regular else FEW


def set_type(problem, pc: PETSc.PC, rows: int = 0) -> None:
    """LU, on each rank if there are several; the singular value decomposition where the matrix may be singular.
    Collective."""
    if len(problem.callbacks.null_space.candidates):
        pc.setType("svd")
    elif pc.comm.size > 1:
        pc.setType("redundant")
    else:
        set_factors(pc, rows=rows, dim=problem.mesh.dim)


def set_factors(pc: PETSc.PC, deterministic: bool = False, rows: int = 0, dim: int = 2) -> None:
    """LU: on one rank PETSc's, or MUMPS' of more than MOST rows (in space MOST_BY_PETSC); on several MUMPS', or one on
    each rank where PETSc lacks it or sums are to be the same."""
    pc.setType("lu")
    if pc.comm.size == 1 and rows > (MOST if dim == 2 else min(MOST, MOST_BY_PETSC)) and _has_mumps():
        pc.setFactorSolverType("mumps")
    elif pc.comm.size == 1:
        pc.setFactorShift(PETSc.Mat.FactorShiftType.INBLOCKS)
    elif _has_mumps() and not deterministic:
        pc.setFactorSolverType("mumps")
    else:
        pc.setType("redundant")


def _has_mumps() -> bool:
    return PETSc.Sys.hasExternalPackage("mumps")


def most_of_failures(problem) -> int:
    """Unknowns up to which LU takes the place of iterations that fail: more in the plane, where factors have about
    n log n entries, and fewer of large cells, whose unknowns all see each other. In space factors have n^(4/3). Many
    ranks have many copies of the factors."""
    width = problem.num_unknowns / problem.mesh.num_cells_all
    if problem.mesh.dim == 2:
        return most_in_plane(problem, width)
    if not _has_mumps():
        return MOST
    work = WORK_IN_SPACE / problem.comm.size / (2 if _is_of_cells(problem) else 1)
    return max(IN_SPACE, int(work / max(LEAST_WIDTH, width) ** 0.5))


def most_of_slow(problem) -> int:
    """The same where the data say that iterations would be slow: none are lost before LU, which costs more than them in
    space if all unknowns are of cells, and on GPUs."""
    most = most_of_failures(problem)
    if problem.device.is_gpu or (problem.mesh.dim > 2 and _is_of_cells(problem)):
        return min(MOST, most)
    return int(most * KNOWN) if problem.mesh.dim == 2 else most


def most_of_saddles(problem) -> int:
    """The same of saddle points: in the plane LU takes a fifth to a twentieth of the time of their blocks."""
    is_solved_once = problem.mesh.dim == 2 and not problem.physics.uses_time_derivative
    return max(IN_SPACE, most_of_slow(problem)) if is_solved_once else IN_SPACE


def _is_of_cells(problem) -> bool:
    """Return True if neighbours share no unknowns, so that rows of the matrix have the unknowns of many cells."""
    return problem.discretization.has_penalties or problem.discretization.is_polytopic


def most_in_plane(problem, width: float = 0.0) -> int:
    """The same in the plane of unknowns of which each cell has `width`."""
    work = IN_PLANE if _has_mumps() else IN_PLANE_BY_PETSC
    return max(MOST, int(work / max(LEAST_WIDTH, width) * min(1.0, COPIES / problem.comm.size)))


def patience(problem) -> int:
    """Iterations before LU: more of larger problems in space and on GPUs, where LU costs as much as hundreds, and with
    a matrix that the user names."""
    is_dear = problem.device.is_gpu or problem.mesh.dim > 2
    waits = problem.options.pmat != "auto" or (is_dear and problem.num_unknowns > MOST)
    return IN_NEWTON if waits else PATIENCE


def is_open(problem, most: int = MOST, matrices: Sequence[str] = ("auto",)) -> bool:
    """Return True if a problem has few unknowns, and its user names no solver and none but these matrices for it."""
    named = any(is_given(problem.prefix, name) for name in NAMED) or problem.options.pmat not in matrices
    return not named and problem.num_unknowns <= most


def reason_of_text(problem) -> str:
    """Why the physics of a small problem asks for LU before anything is tried, "" if it does not. Collective."""
    peclet = cell_measures.large_peclet(problem)
    cell_measures.warn_of_convection(problem, peclet)
    boundary_flow.warn(problem)
    ratio = cell_measures.stiffness_ratio(problem)
    cell_measures.warn_of_locking(problem, ratio)
    cell_measures.warn_of_equal_degrees(problem)
    cell_measures.warn_of_waves(problem)
    cell_measures.warn_of_straddling(problem)
    if problem.assembles and problem.num_unknowns <= FEW:
        return ""
    physics, dim = problem.physics, problem.mesh.dim
    fields = _constraints(problem) if is_open(problem, most_of_saddles(problem)) else ()
    if fields:
        return symmetry.reason(physics, dim, fields[0])
    upwinds = problem.options.cg_stabilization == "supg"  # which iterations suit
    if peclet and is_open(problem, MOST if upwinds else most_of_failures(problem)):
        return f"the cell Péclet number is {peclet:.2g}"
    if physics.uses_time_derivative:
        return ""
    is_flow = problem.derivative == "flow" and dim == 2 and _has_mumps()
    if is_flow and is_open(problem, most_of_failures(problem)):
        return "incomplete factors of a conservation law take longer in the plane"
    is_slow = physics.is_linear and is_open(problem, most_of_slow(problem))
    return _reason_of_slowness(problem, ratio) if is_slow else ""


def _constraints(problem) -> Sequence[str]:
    """Names of the fields that make the system a saddle point."""
    physics, dim = problem.physics, problem.mesh.dim
    return fields_without_own_terms(physics, dim) or symmetry.constraints(physics, dim)


def reason_in_time(problem, fixed: bool) -> str:
    """Why implicit steps in time of a small problem take LU, "" if they do not.

    On a CPU, factors that serve several steps are cheaper than iterations, and so are assembled entries, because
    iterations compute each product from the elements. With strong convection, iterations for the trace may fail in any
    step.

    fixed: all steps have one length.
    """
    if "traces" in problem.told and is_open(problem):
        return "convection in the cells is strong"
    kind = problem.options.backend, problem.mesh.dim, problem.mesh.shape.is_simplex
    kept = fixed and problem.discretization.is_steady
    most = IN_TIME.get(kind, (0, 0))[0 if kept else 1]
    most = (most if _has_mumps() else min(most, MOST)) // problem.comm.size
    if problem.device.is_gpu or not is_open(problem, most) or _constraints(problem):
        return ""
    what = "factors serve all steps" if kept else "factors cost less than iterations"
    return f"{what} with {plural(problem.num_unknowns, 'unknown')} on a CPU"


def _reason_of_slowness(problem, ratio: float) -> str:
    """Why iterations would be slow, "" if they are not. Collective."""
    is_served = problem.num_unknowns > SERVED and cell_measures.wants_factors(problem)
    if cell_measures.is_stiffness_slow(problem, ratio) and not (is_served and ratio < cell_measures.HARD_RATIO):
        return f"the bulk stiffness is about {ratio:.2g} times the shear stiffness"
    strength = cell_measures.typical_anisotropy(problem)
    is_served = is_served and (problem.options.backend == "hdg_gpu" or cell_measures.follows_edges(problem))
    return (
        cell_measures.anisotropy_in_words(strength)
        if cell_measures.is_anisotropy_slow(problem, strength) and not is_served
        else ""
    )


def is_default(problem, ksp: PETSc.KSP) -> bool:
    """Return True if a KSP and its PC have the types that the problem gave them."""
    method = problem.default_krylov or "gmres"
    return ksp.getPC().getType() == problem.default_pc and methods.has_taken(ksp, method)


def may_change(problem, ksp: PETSc.KSP) -> bool:
    """True if LU may take the place of a KSP: of a small problem, by default, with no shorter patience of the user's,
    and not LU yet."""
    waits = ksp.getTolerances()[3] >= patience(problem)
    suits = is_open(problem, most_of_failures(problem), ("auto", "aij"))
    return waits and suits and not problem.direct and is_default(problem, ksp)


@contextmanager
def impatient(problem, snes: PETSc.SNES):
    """A block in which default solvers of a small problem lose patience where LU goes on, and those of Newton's method
    after IN_NEWTON, from where it takes their step, or a part of it."""
    ksp, failures = snes.getKSP(), snes.getMaxKSPFailures()
    most = ksp.getTolerances()[3]
    if may_change(problem, ksp):
        ksp.setTolerances(max_it=min(most, patience(problem)))
    elif not (problem.physics.is_linear or problem.operator.follows_solution or is_given(problem.prefix, "ksp_max_it")):
        ksp.setTolerances(max_it=min(most, IN_NEWTON))
        snes.setMaxKSPFailures(max(failures, EVERY_STEP))
    try:
        yield
    finally:
        ksp.setTolerances(max_it=most)
        snes.setMaxKSPFailures(failures)


def reason_of_solve(problem, snes: PETSc.SNES) -> str:
    """Why LU is to take the place of a default solver that stopped without a solution, "" if it is not."""
    ksp = cells_in_time.trace_solver(problem, snes.getKSP())
    stopped = ksp.getConvergedReason()
    stands_still = stopped >= 0 and snes.getConvergedReason() == PETSc.SNES.ConvergedReason.DIVERGED_LINE_SEARCH
    is_finite = problem.callbacks.assembled is not None  # such a matrix is checked when it is filled
    by_numbers = stopped == _REASON.DIVERGED_NANORINF or (stopped == _REASON.DIVERGED_PCSETUP_FAILED and not is_finite)
    if (stopped >= 0 and not stands_still) or by_numbers or not may_change(problem, ksp):
        return ""
    if stopped in INDEFINITE and problem.mesh.dim > 2 and problem.num_unknowns > MOST:
        return ""  # methods of indefinite matrices cost less
    preconditioner = "AMG" if problem.default_pc == "python" else problem.default_pc
    solver = f"{problem.default_krylov or 'gmres'} with {preconditioner}"
    if stands_still:  # which steps that only look solved, by a preconditioner that hides a part of them, may do
        return f"Newton's method stood still by steps of {solver}"
    what = "did not converge in" if stopped == _REASON.DIVERGED_MAX_IT else "failed after"
    what = "found the matrix indefinite in" if stopped in INDEFINITE else what
    return f"{solver} {what} {ksp.getIterationNumber()} iterations"


def take(problem, ksp: PETSc.KSP, reason: str) -> None:
    """Give a KSP LU of the assembled matrix, before the user's options, in the place of levels. Collective."""
    calls, pc = problem.callbacks, ksp.getPC()
    problem.direct, problem.saddle, problem.default_krylov = reason, [], "fgmres"
    log.info("solves by LU: %s", reason)
    calls.assemble(calls.assembled)
    ksp.setType("fgmres")  # by the residual itself, which pivots that were moved leave large
    if pc.getType() is not None:
        pc.reset()
    set_factors(pc, problem.options.deterministic, problem.num_unknowns, problem.mesh.dim)
    problem.default_pc = pc.getType()
    if problem.options.view:
        PETSc.Sys.Print("\n".join(view(problem)), comm=problem.petsc_comm)


def setting_up(problem):
    """Context manager: options of packages that factor matrices."""
    wanted = SINGULAR | options_of_each_rank(problem.num_unknowns)
    return defaults_in_database(problem.prefix, wanted, unless="pc_type")


def options_of_each_rank(rows: int) -> dict[str, str]:
    """Options of LU where each rank factors a whole matrix of so many rows."""
    return OF_EACH_RANK if rows > MOST and _has_mumps() else {}


def view(problem) -> list[str]:
    """A line for -fe_view where a problem takes LU."""
    return [f"  linear solver: LU, because {problem.direct}"] if problem.direct else []
