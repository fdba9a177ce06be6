"""Explicit methods of PETSc's TS: u_t = G(t, u) = -M⁻¹ F(t, u, 0) for F(t, u, u_t) = M u_t + R(t, u)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mpi4py import MPI
from petsc4py import PETSc

from ...database import given_text, is_given
from ...discretizations.symmetry import SAMPLES, random_inputs
from ...errors import OptionError, PhysicsError, SolveError
from ...value_checks import plural, shown
from ..linear import agglomerate_levels, methods

KINDS = ("euler", "rk", "ssp")
# Methods of PETSc that take a system in another form.
FORMS = {
    "mprk": "split into slow and fast parts",
    "basicsymplectic": "split into positions and momenta",
    "alpha2": "with second derivatives in time",
    "discgrad": "as the gradient of an energy",
}
MASS = "mass_"  # prefix of the solver of the mass matrix, behind the problem's own
TOLERANCE = {"double": 1e-13, "single": 1e-6}
# The mass matrix is the Jacobian at a shift next to which the rest is below the rounding error of any precision.
SHIFT = {"double": 2.0**100, "single": 2.0**60}
# Types of ARKIMEX whose implicit stages do not read the slope of an explicit one, which PETSc finds as if M were 1; the
# default comes first.
SPLIT = ("ars443", "ars122", "prssp2")
TRACE = {"double": 1e-8, "single": 1e-4}  # last change of the trace of an explicit part, whose rates are better
MOST_STEPS = 25  # of Newton's method for the trace of an explicit part


def kind(ts: PETSc.TS) -> str:
    """The method that a TS takes once it reads its options, "" where none was set."""
    return given_text(ts.getOptionsPrefix() or "", "ts_type", ts.getType() or "")


def is_explicit(ts: PETSc.TS) -> bool:
    """True if a TS takes an explicit method."""
    return kind(ts) in KINDS


@dataclass(frozen=True)
class MassDependence:
    """Properties of the derivative of f0 by u_t, from random samples of what f0 reads.

    is_affine     f0 is affine in u_t
    is_regular    u_t of each component can be found from f0
    is_symmetric  it makes a symmetric matrix
    is_constant   it does not read the solution or t
    """

    is_affine: bool
    is_regular: bool
    is_symmetric: bool
    is_constant: bool

    @classmethod
    def of(cls, physics, dim: int) -> MassDependence:
        """The dependence of a physics whose f0 alone reads u_t."""
        with np.errstate(all="ignore"):  # of samples outside a function's domain come nan
            found = np.array([_judged(physics, dim, seed) for seed in range(SAMPLES)])
        return cls(*map(bool, found.all(axis=0)))


def _judged(physics, dim: int, seed: int) -> tuple[bool, bool, bool, bool]:
    (u, u_t, u_x), (a, a_x, t, _, x, constants), _ = random_inputs(physics, dim, seed)
    blocks, random = physics.interpreter(dim).g_blocks, np.random.default_rng(seed + SAMPLES)
    large = SHIFT["double"]
    others = (u, random.uniform(0.1, 1, u.shape), u_x, t), (u * 0.7, u_t, u_x * 0.7, t + 0.3)
    mass, by_rate, by_state = (
        np.asarray(blocks(value, rate, slope, a, a_x, time, large, x, constants)[0]) / large
        for value, rate, slope, time in ((u, u_t, u_x, t), *others)
    )
    close = [np.allclose(mass, other, rtol=1e-12, atol=0, equal_nan=True) for other in (by_rate, mass.T, by_state)]
    regular = not np.isfinite(mass).all() or np.linalg.matrix_rank(mass) == len(mass)
    return close[0], regular, close[1], close[2]


def check(problem, ts: PETSc.TS) -> None:
    """Raise PhysicsError or OptionError for a system that the method of a TS cannot solve."""
    physics, method = problem.physics, kind(ts)
    name, option = f"physics '{physics.name}'", f"-{ts.getOptionsPrefix() or ''}ts_type {method}"
    if not physics.uses_time_derivative:
        raise PhysicsError(f"{name} has no u_t, so that nothing changes in time; write u_t into f0, or use solve()")
    if method in FORMS:
        raise OptionError(
            f"{option} takes a system {FORMS[method]}, and a problem gives F(t, u, u_t) = 0; use bdf, theta, arkimex, "
            f"{', '.join(KINDS)} or others"
        )
    if method not in KINDS:
        return
    implicit = "use an implicit -ts_type such as bdf"
    if problem.is_condensed:
        raise OptionError(
            f"{option} needs rates of all unknowns, and those of a trace ({problem.discretization.name}) have none: "
            f"{implicit}, or -{problem.prefix}fe_backend sipg_gpu, poly_gpu or cg_gpu"
        )
    others = [term for term in physics.terms.residual if term.kind == "f1"] + [each.term for each in physics.natural]
    if any("u_t" in term.program.inputs for term in others):
        why = ", as f1 does by -cg_stabilization supg" if problem.options.cg_stabilization == "supg" else ""
        reader = f"f1 or a condition of {name} reads u_t{why}"
        raise PhysicsError(f"{option} takes M u_t + R(t, u), and {reader}: {implicit}")
    mass = MassDependence.of(physics, problem.mesh.dim)
    if not mass.is_affine:
        raise PhysicsError(f"{option} takes M u_t + R(t, u), and f0 of {name} is not affine in u_t: {implicit}")
    if not mass.is_regular:
        raise PhysicsError(f"{option} needs the u_t of each component, which f0 of {name} does not give: {implicit}")


def check_split(problem, ts: PETSc.TS) -> None:
    """Raise OptionError or PhysicsError unless a TS can take the problem's explicit part. Collective."""
    other, prefix = problem.explicit, ts.getOptionsPrefix() or ""
    if not isinstance(other, type(problem)):
        raise OptionError(f"problem.explicit is {shown(other)}; give another Problem on the same mesh, or None")
    mine, others = (
        (p.mesh, p.discretization.name, p.options.degree, p.options.precision, p.physics.fields)
        for p in (problem, other)
    )
    if mine != others or (not problem.is_condensed and problem.num_unknowns != other.num_unknowns):
        raise OptionError(
            f"{problem!r} has {other!r} as its explicit part; give one of the same mesh, scheme, degree, precision, "
            "fields and Dirichlet conditions"
        )
    if not other.physics.uses_time_derivative:
        raise PhysicsError(f"physics '{other.physics.name}' of problem.explicit has no u_t; write it into f0")
    taken = kind(ts), given_text(prefix, "ts_arkimex_type", SPLIT[0])
    if taken[0] != "arkimex" or taken[1] not in SPLIT:
        raise OptionError(
            f"-{prefix}ts_type {taken[0]}{f' of type {taken[1]}' * (taken[0] == 'arkimex')} has no place for "
            f"problem.explicit; give arkimex with -{prefix}ts_arkimex_type {', '.join(SPLIT)}"
        )


class CellRates:
    """Right-hand side of the explicit part of a problem with a trace: G(t, u) = -M⁻¹ F(t, u, 0) of its cells, 0 of the
    trace.

    F is at the trace that satisfies the trace equation with the cells, found by Newton's method. Its matrix is that of
    trace and cells at a shift of u_t next to which the cells are the mass matrix: a step gives the trace, whose matrix
    has blocks of facets only, and the cells' rates. The first guess is the trace of u, and on facets that have none
    its mean.

    problem: that of the whole run.   ts: of the explicit part, with its solvers. Making one is collective.
    """

    def __init__(self, problem, ts: PETSc.TS):
        self._other, self._ts, self._ksp = problem.explicit, ts, ts.getSNES().getKSP()
        self._calls, self._shift = self._other.callbacks, SHIFT[problem.options.precision]
        self._state, self._rest, self._residual, self._step = (self._other.create_vec() for _ in range(4))
        maps = [p.discretization.dofmap for p in (problem, self._other)]
        self._counts = [dofmap.num_owned for dofmap in maps]
        # Whether each unknown of the trace is one of this rank in both problems, its numbers there, its component.
        self._owned = [(0 <= dofmap.compact) & (dofmap.compact < dofmap.num_owned) for dofmap in maps]
        self._numbers = [dofmap.compact for dofmap in maps]
        self._component = np.arange(len(maps[0].compact)) % problem.physics.num_components
        self.iterations = 0  # of Newton's method

    def _begin(self, u: np.ndarray) -> np.ndarray:
        """The first state, from that of the run. Collective."""
        (here, there), (given, taken), component = self._owned, self._numbers, self._component
        count = component.max(initial=0) + 1
        sums = [np.bincount(component[here], weights, count) for weights in (u[given[here]], None)]
        total, number = self._other.comm.allreduce(np.array(sums))
        trace, both = np.empty(self._counts[1]), here & there
        trace[taken[there]] = (total / np.maximum(1, number))[component[there]]
        trace[taken[both]] = u[given[both]]
        return np.concatenate([trace, u[self._counts[0] :]])

    def __call__(self, ts, t: float, u: PETSc.Vec, g: PETSc.Vec) -> None:
        """g = G(t, u). Collective. Raises SolveError, on all ranks, where there is no trace."""
        given, taken = self._counts
        calls, comm = self._calls, self._other.comm
        state = self._begin(u.getArray(readonly=True))
        for _ in range(MOST_STEPS):
            self._state.setArray(state)
            calls.ifunction(None, t, self._state, self._rest, self._residual)
            if self._other.operator.failure or not np.isfinite(self._residual.norm()):
                break
            calls.ijacobian(None, t, self._state, self._rest, self._shift, calls.jacobian, calls.preconditioning)
            self._ksp.setOperators(calls.jacobian, calls.preconditioning)
            self._ksp.solve(self._residual, self._step)
            self.iterations += 1
            step = self._step.getArray(readonly=True)
            state[:taken] -= step[:taken]
            change, size = (comm.allreduce(np.abs(a[:taken]).max(initial=0.0), MPI.MAX) for a in (step, state))
            if self._other.physics.is_linear or change <= TRACE[self._other.options.precision] * size:
                g.setArray(np.concatenate([np.zeros(given), -self._shift * step[taken:]]))
                return
        raise SolveError(
            f"the explicit part, physics '{self._other.physics.name}', has no trace at t = {t:g}: its residual is not "
            "finite, or Newton's method does not converge; take a smaller dt, which explicit terms need"
        )


class RightHandSide:
    """Right-hand side of explicit methods of TS: G(t, u) = -M⁻¹ F(t, u, 0).

    M is inverted cell by cell for discontinuous elements, and solved for by conjugate gradients, preconditioned by its
    diagonal, for continuous ones, and where `-mass_pc_type` gives another preconditioner; `-mass_ksp_type` and others
    have the last word. It is found once where it is the same for all states and times. Making one is collective.
    """

    def __init__(self, problem):
        self.iterations = 0  # of the solver of the mass matrix
        self._calls, self._access, self._operator = problem.callbacks, problem.access, problem.operator
        self._shift = SHIFT[problem.options.precision]
        self._dependence = MassDependence.of(problem.physics, problem.mesh.dim)
        self._known: tuple | None = None
        self._rest, self._residual = problem.create_vec(), problem.create_vec()
        self.ksp = self._create_ksp(problem)

    def _create_ksp(self, problem) -> PETSc.KSP:
        ksp, discretization = PETSc.KSP().create(problem.petsc_comm), problem.discretization
        ksp.setOptionsPrefix(problem.prefix + MASS)
        ksp.setOperators(self._calls.jacobian)
        ksp.setTolerances(rtol=TOLERANCE[problem.options.precision])
        pc, is_assembled = ksp.getPC(), self._calls.assembled is not None
        is_polytopic = discretization.is_polytopic and is_assembled
        is_direct = is_polytopic or hasattr(problem.operator, "cell_blocks")
        if not is_direct or is_given(ksp.getOptionsPrefix(), "pc_type"):
            pc.setType("jacobi")
            methods.take(problem, ksp, "cg" if self._dependence.is_symmetric else "gmres")
        else:
            ksp.setType("preonly")
            if is_polytopic:
                agglomerate_levels.set_blocks(pc, discretization, self._calls.jacobian)
            else:
                pc.setType("python")
                pc.setPythonType("petsc_hdg.CellBlockJacobi")
        ksp.setFromOptions()
        return ksp

    def __call__(self, ts, t: float, u: PETSc.Vec, g: PETSc.Vec) -> None:
        """g = G(t, u). Collective. Raises SolveError, on all ranks, where it is not finite."""
        self._calls.ifunction(None, t, u, self._rest, self._residual)
        if self._operator.failure or not np.isfinite(self._residual.norm()):
            raise SolveError(
                f"the residual at t = {t:g} is not finite"
                + (f" ({self._operator.failure})" if self._operator.failure else "")
                + "; steps of explicit methods grow without bound beyond a limit: take a smaller dt, or an implicit "
                "-ts_type such as bdf"
            )
        self._update(t, u)
        self.ksp.solve(self._residual, g)
        self.iterations += self.ksp.getIterationNumber()
        if self.ksp.getConvergedReason() < 0:
            raise SolveError(
                f"the mass matrix at t = {t:g} was not inverted in "
                f"{plural(self.ksp.getIterationNumber(), 'iteration')}; check "
                f"-{self.ksp.getOptionsPrefix()}ksp_type and -{self.ksp.getOptionsPrefix()}pc_type"
            )
        g.scale(-self._shift)

    def _update(self, t: float, u: PETSc.Vec) -> None:
        """Have the mass matrix at a state, times the shift, among the solver's operators. Collective."""
        calls, operator = self._calls, self._operator
        if self._dependence.is_constant and self._known == (operator.coefficients, operator.linearizations):
            return
        with self._access.read(u) as state:
            operator.linearize(state, t, None, self._shift)
        if calls.assembled is not None and calls.jacobian == calls.assembled.mat:
            calls.assembled.update(self._shift)
        calls.jacobian.assemble()
        calls.forget()
        self._known = operator.coefficients, operator.linearizations
