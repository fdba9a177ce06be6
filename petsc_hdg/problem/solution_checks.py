"""Diagnosis of a solve: a solution, or numbers that are not finite in the state, the residual, or the Jacobian; and
warnings of answers that should not be trusted.

By default PETSc's norms are those of the preconditioned residual B r. Where B is near A⁻¹ that is the error, a better
measure than r itself, which is large in the rows of large coefficients however small the error is. Where B hides a part
of r, such as one that suits another matrix, the solver stops and the solution is wrong. D⁻¹ r with the diagonal D
of the matrix sees that: it is A's error scaled to be of its size or less, whatever the coefficients are.
"""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ..discretizations.symmetry import constraints
from ..errors import SolveError, warn_user
from ..operators.assembled import fault
from ..operators.spectrum import TOLERANCE, asymmetry, extreme_eigenvalues
from ..value_checks import plural
from .linear import field_splits, solvers

_KSP = PETSc.KSP.ConvergedReason
_TOO_SLOW = {_KSP.DIVERGED_MAX_IT, PETSc.SNES.ConvergedReason.DIVERGED_MAX_IT}
_NO_NUMBER = -4  # of SNES, under another name since PETSc 3.25
UNSUITED = 0.5  # part of a boundary that need not suit its condition, such as that of a boundary layer
MEANINGLESS = 2.0  # jumps u - û over the size of the solution; coarse meshes and unresolved layers stay below 1.5
JUMPS = "petsc_hdg_jumps"  # attribute of a solution: its state and time, what `worst_jump` found
TORN = 0.2  # the same of nonlinear physics of degree 1 and more, whose discrete equations have other solutions, too
LOOSE = 100.0  # error that is sure, over what the tolerance asks for, up to which nothing is said
ONCE = 1e-3  # error relative to the solution that is told where a preconditioner alone is the solver
SINGULAR = 1e-13  # of a matrix: least over largest singular value, about
ROUNDINGS = 1000.0  # the same over the rounding of the solution
ROUNDED = 1e-2  # change of a solution by its residual, relative to it, from which rounding in single precision is told
INVERSE = "petsc_hdg_inverse_diagonal"  # attribute of a Jacobian: state, 1 / diagonal


def check_solved(problem, u: PETSc.Vec) -> None:
    """Raise SolveError, on all ranks, if the problem's solver stopped without a solution u, or with numbers that are
    not finite; warn if a linear one came to something else. Collective.

    It costs a residual of linear physics, or in single precision, and what `check_meaning` does.
    """
    explain = lambda: of_solve(problem, problem.snes, u)  # noqa: E731
    solvers.check_converged(problem.snes, problem.operator.failure, explain, solvers.told(problem.tried))
    if problem.physics.is_linear or problem.options.precision == "single":
        residual = u.duplicate()
        problem.callbacks.residual(problem.snes, u, residual)
        require_finite(problem, u, residual)
        check_rounding(problem, u, residual)
        if problem.physics.is_linear:  # SNES has the residual of others
            check_residual(problem, u, residual)
        residual.destroy()
    else:
        require_finite(problem, u)
    check_determined(problem)
    check_meaning(problem, u)


def check_determined(problem) -> None:
    """Warn, on rank 0, of a law whose last matrix is singular, if LU solves: it magnifies any data. Collective."""
    pc = problem.snes.getKSP().getPC()
    if pc.getType() != "lu" or problem.derivative != "flow":
        return
    matrix = pc.getOperators()[0]
    data, found = matrix.createVecs()
    data.setRandom()
    matrix.mult(data, found)
    size = found.norm() / data.norm()
    pc.apply(data, found)
    if not data.norm() > SINGULAR * size * found.norm() and problem.comm.rank == 0:
        warn_user(
            "the steady equations have many solutions, of which this is one: nothing determines the total of a "
            "component, as the mass in a closed container; put u_t into f0 and solve in pseudo time (-ts_type pseudo) "
            "from a state with that total"
        )
    data.destroy()
    found.destroy()


def iterations(problem) -> str:
    """The iterations of the last run, in words."""
    return f"{plural(problem.newton_iterations, 'Newton iteration')} and {problem.linear_iterations} linear"


def check_meaning(problem, u: PETSc.Vec, t: float = 0.0) -> None:
    """Warn of a solution, of its discrete equations, that may not be one of the physics. Collective."""
    check_trace(problem, u, t)
    check_boundaries(problem, u, t)


def require_finite(problem, u: PETSc.Vec, residual: PETSc.Vec | None = None, t: float = 0.0) -> None:
    """Raise SolveError, on all ranks, if a solution or its residual is not finite, as direct solvers let pass.
    Collective."""
    sums = [vector.norm(PETSc.NormType.NORM_1) for vector in (u, residual) if vector is not None]
    if not np.isfinite(sums).all():
        raise SolveError(f"the solver came to no solution: {_cause(problem, u, t)}")


def _cause(problem, u: PETSc.Vec, t: float) -> str:
    """Say what is not finite: of linear physics the residual at zero, which is that of the data, or else the
    solution. Collective."""
    text = ""
    if problem.physics.is_linear:
        zero = u.duplicate()
        zero.set(0.0)
        text = _of_residual(problem, zero, t)
        zero.destroy()
    text = text or _of_state(problem, u) or _of_residual(problem, u, t)
    return text or "its numbers are too large to be added up"


def _of_state(problem, u: PETSc.Vec, what: str = "the solution") -> str:
    return fault(problem.discretization, u.getArray(readonly=True), what)


def met_no_number(snes: PETSc.SNES) -> bool:
    """True if a solver stopped because of a number that is not finite, or a preconditioner that failed over one."""
    by_ksp = (_KSP.DIVERGED_NANORINF, _KSP.DIVERGED_PCSETUP_FAILED)
    return snes.getConvergedReason() == _NO_NUMBER or snes.getKSP().getConvergedReason() in by_ksp


def of_solve(problem, snes: PETSc.SNES, u: PETSc.Vec, t: float = 0.0) -> str:
    """Say what is not finite after a solve that failed at u and t, that rounding may have ended it, or steps inside of
    cells slowed it down; "" if it failed of something else. Collective."""
    if not met_no_number(snes):
        is_slow = {snes.getKSP().getConvergedReason(), snes.getConvergedReason()} & _TOO_SLOW
        if is_slow and problem.options.backend in ("sipg_gpu", "poly_gpu") and problem.discretization.has_steps:
            return (
                "f1 steps with x, and by interior penalty a step inside of cells costs many iterations: let facets "
                "follow it, or take -fe_backend hdg_gpu"
            )
        if problem.options.precision == "single" and not is_slow:
            return "rounding in single precision may hide smaller residuals, -fe_precision double helps then"
        return ""
    return _of_state(problem, u, "the state") or _of_residual(problem, u, t) or _of_jacobian(problem, u)


def _of_residual(problem, u: PETSc.Vec, t: float) -> str:
    f = u.duplicate()
    problem.callbacks.ifunction(None, t, u, None, f)
    text, op = fault(problem.discretization, f.getArray(readonly=True), "the residual"), problem.operator
    f.destroy()
    if not (text and problem.has_cell_states):
        return text
    told = op.local.outside(np.ones(problem.mesh.num_cells, bool), op.state, op.interior)
    return next((told for told in problem.comm.allgather(told) if told), text)


def _of_jacobian(problem, u: PETSc.Vec) -> str:
    ones, product = u.duplicate(), u.duplicate()
    ones.set(1.0)
    problem.callbacks.jacobian.mult(ones, product)
    text = fault(problem.discretization, product.getArray(readonly=True), "the Jacobian")
    for vector in (ones, product):
        vector.destroy()
    return text


def check_coercivity(problem, calls) -> None:
    """Estimate the extreme eigenvalues of the Jacobian at hand, and warn on rank 0 if the smallest is negative.

    `problem.eigenvalues` keeps the estimates. Collective.
    """
    options, tolerance = problem.options, TOLERANCE[problem.options.precision]
    symmetric = asymmetry(calls.jacobian) < tolerance
    problem.eigenvalues = low, high = extreme_eigenvalues(calls.jacobian, symmetric)
    if options.view:
        line = f"  coercivity: eigenvalues of the Jacobian over its diagonal from {low:.3e} to {high:.3e} (estimates)"
        PETSc.Sys.Print(line, comm=problem.petsc_comm)
    if low < -tolerance * high and problem.comm.rank == 0:
        warn_user(
            f"-{problem.prefix}sipg_penalty_scale {options.sipg_penalty_scale:g} is too small for the penalty "
            f"{options.sipg_penalty}: the smallest eigenvalue of the scaled Jacobian is {low:.2e} or less; raise "
            "the scale, unless the physics itself has directions of negative energy"
        )


def check_boundaries(problem, u: PETSc.Vec, t: float = 0.0) -> None:
    """Warn, on rank 0, of a boundary flux that a solution does not suit, see BoundaryFlux. Collective."""
    for condition in problem.physics.boundary_fluxes:
        if condition.suits is None:
            continue
        expected, advice = condition.suits
        text = f"obj[0] = 1; obj[1] = {expected} ? 0 : 1;"
        area, unsuited = problem.integral(text, u, t, over=condition.label)
        if unsuited > UNSUITED * area and problem.comm.rank == 0:
            warn_user(
                f"the solution does not suit the condition on '{condition.label}' of physics '{problem.physics.name}', "
                f"which expects {expected}, on {100 * unsuited / area:.0f} % of it, so that it may be wrong; {advice}"
            )


def check_trace(problem, u: PETSc.Vec, t: float = 0.0) -> None:
    """Warn, on rank 0, of a solution whose cells do not hold to their trace. Collective.

    It costs a recovery of the cells from the trace.
    """
    field, jumps = worst_jump(problem, u, t)
    most = largest_jump(problem)
    if jumps <= most or problem.comm.rank > 0:
        return
    prefix = problem.prefix
    if most == MEANINGLESS:
        sense = (
            f"which means nothing from {MEANINGLESS:g} on: the stabilization is too small for the physics, or cells "
            f"are too large for the solution; give a larger -{prefix}hdg_tau or a finer mesh"
        )
    else:
        sense = (
            "so that it may be one of the discrete equations alone: cells are too large for the solution, or Newton's "
            "method came to another one; compare it with a finer mesh, give a guess that is nearer, or take "
            f"-{prefix}fe_backend cg_gpu"
        )
    warn_user(f"the jumps u - û of the field '{field}' are {jumps:.1e} times as large as the solution, {sense}")


def is_trace_sound(problem, u: PETSc.Vec) -> bool:
    """Return True if the cells of a solution hold to their trace. Collective."""
    return worst_jump(problem, u)[1] <= largest_jump(problem)


def largest_jump(problem) -> float:
    """Return the largest ratio of jumps of a solution to trust."""
    return MEANINGLESS if problem.physics.is_linear or problem.options.degree == 0 else TORN


def worst_jump(problem, u: PETSc.Vec, t: float = 0.0) -> tuple[str, float]:
    """Return the field whose jumps between cells and trace are largest beside it, and that ratio; 0 of other schemes.
    Collective.

    It is kept with the vector: Newton's method asks for it before this check does.
    """
    disc = problem.discretization
    if not (problem.is_condensed and disc.has_jumps):
        return "", 0.0
    state, known = (u.stateGet(), t), u.getAttr(JUMPS) or (None, None)
    if known[0] == state:
        return known[1]
    with problem.access.read(u) as x:
        jumps = problem.operator.recovery.jumps(x, t)
    found = problem.physics.fields[int(np.argmax(jumps))].name, float(jumps.max())
    u.setAttr(JUMPS, (state, found))
    return found


def check_residual(problem, u: PETSc.Vec, residual: PETSc.Vec) -> None:
    """Warn, on rank 0, of a linear solve that met its relative tolerance and left an error far above it, or of one
    application of a preconditioner (`preonly`) that is no solution. Collective.

    residual: F(u), which changes.   With a new matrix it costs its diagonal.
    """
    ksp = problem.snes.getKSP()
    if problem.has_cell_states or not _asks(ksp):  # eliminated cells: the solver of the trace says how it stopped
        return
    rtol, error, size = ksp.getTolerances()[0], least_error(problem, residual), ksp.getSolution().norm()
    rounding = float(np.finfo(problem.arrays.real).eps) * u.norm()
    once = ksp.getType() == "preonly"
    if error > max((ONCE if once else LOOSE * rtol) * size, ROUNDINGS * rounding) and problem.comm.rank == 0:
        relative = error / size if size else np.inf
        warn_user((_of_one_application if once else _sentence)(problem, rtol, relative))


def _asks(ksp: PETSc.KSP) -> bool:
    """Return True if a solver is `preonly`, or stopped by its relative tolerance, or at a residual norm of zero.

    ITERATING is the reason of a KSP that Newton's method has not called.
    """
    reason = ksp.getConvergedReason()
    if ksp.getType() == "preonly":
        return reason == _KSP.CONVERGED_ITS
    if ksp.getNormType() == PETSc.KSP.NormType.NONE or reason in (_KSP.ITERATING, _KSP.CONVERGED_ITS):
        return False
    return reason != _KSP.CONVERGED_ATOL or ksp.getResidualNorm() == 0


def check_rounding(problem, u: PETSc.Vec, residual: PETSc.Vec) -> None:
    """Warn, on rank 0, where rounding in single precision changes a solution: another step from it, an application of
    the preconditioner to F(u), is of its size. residual: F(u). Collective."""
    ksp = problem.snes.getKSP()
    none = problem.has_cell_states or ksp.getConvergedReason() == _KSP.ITERATING
    if none or problem.options.precision == "double":
        return
    _remove_unreachable(problem, residual)
    step = u.duplicate()
    ksp.getPC().apply(residual, step)
    step, size = step.norm(), u.norm()
    if step > ROUNDED * size and problem.comm.rank == 0:
        warn_user(
            f"rounding in single precision changes the solution by {step / size:.1e} of its size or more: "
            "the system is too ill-conditioned for it; -fe_precision double is accurate"
        )


def least_error(problem, residual: PETSc.Vec) -> float:
    """Norm of D⁻¹ F(u), without what the matrix cannot reach where its null space is known, from F(u). Collective."""
    _remove_unreachable(problem, residual)
    residual.pointwiseMult(residual, _inverse_diagonal(problem))
    return residual.norm()


def _remove_unreachable(problem, residual: PETSc.Vec) -> None:
    null_space = problem.callbacks.jacobian.getTransposeNullSpace()
    if null_space.handle:
        null_space.remove(residual)


def _inverse_diagonal(problem) -> PETSc.Vec:
    """1 / |diagonal| of the Jacobian, which is kept with it; entries that are zero, and those of constraints, which are
    small beside what couples them to others, count as the largest. Collective."""
    jacobian = problem.callbacks.jacobian
    state, inverse = jacobian.getAttr(INVERSE) or (None, None)
    if state != jacobian.stateGet():
        inverse = jacobian.getDiagonal()
        inverse.abs()
        if names := constraints(problem.physics, problem.mesh.dim):
            inverse.setArray(np.where(field_splits.is_of(problem, names), 0.0, inverse.getArray(readonly=True)))
        most = inverse.max()[1] or 1.0
        if not inverse.min()[1] > (least := np.finfo(float).eps * most):
            values = inverse.getArray(readonly=True)
            inverse.setArray(np.where(values > least, values, most))
        inverse.reciprocal()
        jacobian.setAttr(INVERSE, (jacobian.stateGet(), inverse))
    return inverse


def _sentence(problem, rtol: float, relative: float) -> str:
    prefix = problem.prefix
    given = " or the Jacobian that was given is not that of f0 and f1" if problem.physics.has_jacobian else ""
    return (
        f"the linear solver met -{prefix}ksp_rtol {rtol:g} in its own norm, and the solution is off by {relative:.1e} "
        f"of its size or more: the preconditioner hides a part of the residual{given}; "
        f"-{prefix}ksp_monitor_true_residual shows its course, -{prefix}ksp_norm_type unpreconditioned or another "
        f"-{prefix}pc_type may help"
    )


def _of_one_application(problem, rtol: float, relative: float) -> str:
    prefix, pc = problem.prefix, problem.snes.getKSP().getPC().getType()
    return (
        f"-{prefix}ksp_type preonly applies the preconditioner ({pc}) once, and the solution is off by {relative:.1e} "
        f"of its size or more; -{prefix}pc_type lu solves directly, and other -{prefix}ksp_type iterate to "
        f"-{prefix}ksp_rtol {rtol:g}"
    )
