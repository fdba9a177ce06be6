"""Space-time dG slab by slab, over any scheme in space."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from petsc4py import PETSc

from .. import stages
from ..database import defaults_in_database
from ..discretizations.slab_space import SlabSpace
from ..errors import OptionError, PhysicsError, SolveError, collectively
from ..operators.check import check_kernels
from ..operators.matfree import JacobianContext
from ..operators.slab import SlabMatrix, SlabOperator
from ..petsc import c_library
from ..petsc.lifetimes import Alive
from ..progress import PROGRESS
from ..value_checks import function, number, plural, shown, whole_number
from . import input_data
from .checkpoints import checkpoint, checkpoint_schedule
from .input_data import require_vec
from .linear import solvers
from .results import results
from .transient.time_stepping import MOST_STEPS

if TYPE_CHECKING:
    from .problem import Problem

DIRECT = {1: 10**6, 2: 200_000, 3: 30_000}  # unknowns of a rank, by dimension, up to which it factors its matrix
RESTART = 100  # of GMRES
HIGHEST = 3
MOST_POINTS = 64


class SpaceTime:
    """dG in time of a Problem whose f0 is linear in u_t, on slabs of prisms (polytope x time interval).

        space_time = fe.SpaceTime(problem)                     # -poly_time_degree 2
        u = space_time.march(problem.interpolate(initial), 0, 1, steps=20)

    degree       in time, 0 to 3; `-poly_time_degree` if None
    space        `tensor` (P_{p,q}: each temporal function with the whole space) or `total` (P_p: degrees in space and
                 time sum up to p); `-poly_time_space` if None
    local_steps  [polytope] integers: equal parts in time of each of this rank's polytopes in a slab, or one number
    points       Gauss points in time of a local step; degree + 1 if None, exact to degree 2 degree + 1

    Residuals between points in time are those of the scheme: fluxes, penalties and data that depend on t. The matrix is
    assembled unless `-fe_pmat none`; that of linear physics whose coefficients do not read t once for all slabs of a
    length. Source: Dong, Georgoulis and Kappas 2021, section 2.3. Making one is collective.

    Raises OptionError, PhysicsError or SolveError on all ranks for what it does not take.
    """

    def __init__(
        self,
        problem: Problem,
        degree: int | None = None,
        space: str | None = None,
        local_steps: ArrayLike | None = None,
        points: int | None = None,
    ):
        if not hasattr(problem, "discretization"):
            raise OptionError(f"Space-time takes a Problem, and {shown(problem)} is given; fe.Problem makes one")
        self.problem, options = problem, problem.options
        degree = options.poly_time_degree if degree is None else degree
        space = options.poly_time_space if space is None else space
        _check(problem, degree, space, points)
        slab = SlabSpace(problem.discretization, degree, space, local_steps, points)
        self.slab = SlabOperator(problem.operator, slab)
        self.assembled = problem.pmat != "none"
        with stages.stage("compile"), collectively(problem.comm):
            problem.operator.compile(matrices=self.assembled)
            self.slab.kernels  # noqa: B018
            if options.check_kernels:
                check_kernels(problem.operator)
                self.slab.check()
        self.newton_iterations = self.linear_iterations = 0
        self._known: tuple | None = None  # what the assembled matrix belongs to
        self.events = {name: PETSc.Log.Event(f"FeSlab{name}") for name in ("Residual", "Jacobian")}

    # Sizes -----------------------------------------------------------------------------------------------------------

    @property
    def degree(self) -> int:
        """Degree in time."""
        return self.slab.basis.degree

    @cached_property
    def num_unknowns(self) -> int:
        """Space-time unknowns of a slab over all ranks."""
        return self.problem.comm.allreduce(self.slab.space.num_owned)

    def create_vec(self) -> PETSc.Vec:
        """A zero vector of a slab's unknowns."""
        vector = PETSc.Vec().create(self.problem.petsc_comm)
        vector.setSizes((self.slab.space.num_owned, self.num_unknowns))
        vector.setType(self.problem.vec_type)
        vector.set(0.0)
        return vector

    @Alive("The solution of the slab (space_time.solution)")
    def solution(self) -> PETSc.Vec:
        """The last slab's unknowns: those of a polytope together, temporal functions of a spatial unknown first."""
        return self.create_vec()

    # Slabs -----------------------------------------------------------------------------------------------------------

    def march(
        self,
        u0: PETSc.Vec,
        t0: float,
        t1: float,
        steps: int,
        monitor: Callable[[float, PETSc.Vec], None] | None = None,
    ) -> PETSc.Vec:
        """The state at t1 of `steps` equal slabs from the state u0 at t0. Collective.

        monitor: called with (t, u) after each slab; `at` gives other times of that slab.
        """
        number("t0", t0)
        number("t1", t1)
        whole_number("The number of slabs of space-time", steps, 1, MOST_STEPS)
        function("The monitor of slabs", monitor)
        length, times = (t1 - t0) / steps, (float(t0), float(t1), int(steps))
        done, u = checkpoint_schedule.slabs_done(self.problem, u0, times)
        if not done:
            results.write_after_step(self.problem, u, times[0], 0, ends=False)
        with checkpoint.deferred_signals(self.problem), PROGRESS.task("solve"):
            for n in range(done, steps):
                PROGRESS.count("slab", n, steps)
                u = self._advance(u, t0 + n * length, length)
                if monitor is not None:
                    monitor(t0 + (n + 1) * length, u)
                checkpoint_schedule.after_slab(self.problem, self.snes.getKSP(), u, t0 + (n + 1) * length, n + 1, times)
        return u

    def step(self, u: PETSc.Vec, t0: float, t1: float) -> PETSc.Vec:
        """The state at t1 of one slab from the state u at t0. Collective."""
        return self._advance(u, number("t0", t0), number("t1", t1) - t0)

    def _advance(self, u: PETSc.Vec, time: float, length: float) -> PETSc.Vec:
        if not length > 0:
            raise OptionError(f"a slab of length {length:g} was asked for; times ascend")
        operator, access, end = self.problem.operator, self.problem.access, self.problem.create_vec()
        with stages.stage("solve"):
            self.begin(u, time, length)
            for _ in range(solvers.ROUNDS):  # again where penalties of nonlinear physics do not suffice
                self._solve()
                with access.read(self.solution) as x, access.write(end) as out:
                    self.slab.at_end(x, out)
                    settled = not operator.follows_solution or operator.suits(out)
                if settled:
                    break
        self.problem.time = time + length
        return end

    def _solve(self) -> None:
        defaults = {"sub_pc_type": "lu" if self._is_small else "ilu"}
        with solvers.agreed(self.problem.comm, self.snes):
            with defaults_in_database(self.problem.prefix, defaults, unless="pc_type"):
                self.snes.solve(None, self.solution)
        self.newton_iterations += self.snes.getIterationNumber()
        self.linear_iterations += self.snes.getLinearSolveIterations()
        solvers.check_converged(self.snes, self.problem.operator.failure)
        if not np.isfinite(self.solution.norm(PETSc.NormType.NORM_1)):
            raise SolveError(
                "the slab's solution is not finite; look at f0, f1, the conditions and the state before it"
            )

    def begin(self, u: PETSc.Vec, time: float, length: float) -> None:
        """Go to the slab (time, time + length) with u before it; `solution` becomes u at all times. Collective."""
        if self.problem.missing_auxiliary:
            name = self.problem.missing_auxiliary[0]
            raise SolveError(f"auxiliary field '{name}' has no values yet: call problem.set_auxiliary('{name}', ...)")
        require_vec(self.problem, u)
        number("The time of a slab", time)
        number("The length of a slab", length)
        self.problem.operator.restart()
        access = self.problem.access
        with access.read(u) as before:
            self.slab.begin(time, length, before)
        with access.write(self.solution) as out:
            self.slab.constant(out)

    def at(self, t: float) -> PETSc.Vec:
        """The solution at a time of the last slab, from the left but at its begin. Collective."""
        number("t", t)
        begin, end = self.slab.time, self.slab.time + self.slab.length
        slack = 1e-9 * self.slab.length
        if not begin - slack <= t <= end + slack:
            raise OptionError(f"the last slab is ({begin:g}, {end:g}), and t = {t:g} was asked for")
        u = self.problem.create_vec()
        with self.problem.access.read(self.solution) as x, self.problem.access.write(u) as out:
            self.slab.at(t, x, out)
        return u

    def norms(self) -> SlabNorms:
        """A monitor for `march` that gathers norms of the error over the slabs, see SlabNorms."""
        return SlabNorms(self)

    # PETSc -----------------------------------------------------------------------------------------------------------

    @Alive("The Jacobian of slabs (space_time.jacobian)")
    def jacobian(self) -> PETSc.Mat:
        """The Jacobian by products: a shell matrix at the state of the slab's last `linearize`."""
        sizes = (self.slab.space.num_owned, self.num_unknowns)
        context = JacobianContext(self.slab, self.problem.access)
        return context.as_mat(sizes, self.problem.petsc_comm, self.problem.vec_type)

    @cached_property
    def _matrix(self) -> SlabMatrix:
        return SlabMatrix(self.slab)

    @Alive("The matrix of slabs (space_time.matrix)")
    def matrix(self) -> PETSc.Mat:
        """The assembled Jacobian."""
        mat = PETSc.Mat().create(self.problem.petsc_comm)
        sizes = (self.slab.space.num_owned, self.num_unknowns)
        mat.setSizes((sizes, sizes))
        mat.setType("aij")
        mat.setVecType(self.problem.vec_type)
        c_library.set_preallocation_coo(mat, *self._matrix.numbers())
        return mat

    @Alive("The solver of slabs (space_time.snes)")
    def snes(self) -> PETSc.SNES:
        """The solver of a slab: one linear solve for linear physics, else Newton; options have the problem's prefix.

        GMRES with the factors of the matrix, or of each rank's part and its neighbours (additive Schwarz): incomplete
        ones above 200 000 unknowns per rank in two dimensions, 30 000 in three.
        """
        problem = self.problem
        snes = PETSc.SNES().create(problem.petsc_comm)
        snes.setOptionsPrefix(problem.prefix)
        snes.setFunction(self._residual, self.create_vec())
        mat = self.matrix if self.assembled else self.jacobian
        snes.setJacobian(self._linearize, mat, mat)
        linear = problem.physics.is_linear
        snes.setType("ksponly" if linear else "newtonls")
        ksp = snes.getKSP()
        ksp.setType("gmres")
        ksp.setTolerances(rtol=1e-10 if linear else 1e-6)
        ksp.setGMRESRestart(RESTART)
        alone = problem.comm.size == 1 and self._is_small
        ksp.getPC().setType(("lu" if alone else "asm") if self.assembled else "none")
        solvers.set_from_options(snes)
        PROGRESS.watch(snes, ksp)
        return snes

    @property
    def _is_small(self) -> bool:
        return self.num_unknowns <= DIRECT[self.problem.mesh.dim] * self.problem.comm.size

    def _residual(self, snes: PETSc.SNES, x: PETSc.Vec, f: PETSc.Vec) -> None:
        access = self.problem.access
        with self.events["Residual"], access.read(x) as u, access.write(f) as out:
            self.slab.residual(u, out)
            PETSc.Log.logFlops(self.slab.flops)
        if self.problem.operator.failure:
            c_library.set_function_domain_error(snes)

    def _linearize(self, snes: PETSc.SNES, x: PETSc.Vec, jacobian: PETSc.Mat, preconditioner: PETSc.Mat) -> None:
        with self.events["Jacobian"]:
            self.linearize(x)
        if not self.assembled:
            jacobian.assemble()

    def linearize(self, x: PETSc.Vec) -> None:
        """Put the Jacobian at x into `jacobian` and, where it is assembled, into `matrix`. Collective."""
        with self.problem.access.read(x) as state:
            self.slab.linearize(state)
        if self.jacobian.getType() == PETSc.Mat.Type.PYTHON:  # until it is converted in place
            self.jacobian.getPythonContext().factor = 1.0
        if self.assembled and not (self.slab.is_steady and self._known == self._data()):
            c_library.set_values_coo(self.matrix, self._matrix.values())
            self._known = self._data()

    def _data(self) -> tuple:
        """Data version that a steady assembled matrix belongs to, with PETSc's count of its changes."""
        return self.slab.length, self.problem.operator.coefficients, self.matrix.stateGet()


def _check(problem: Problem, degree: object, space: object, points: object) -> None:
    """Raise OptionError or PhysicsError for what space-time does not take."""
    prefix = f"-{problem.prefix}"
    if problem.is_condensed:
        raise OptionError(
            f"{problem.discretization.name} eliminates unknowns of cells, which space-time needs; give "
            f"{prefix}fe_backend poly_gpu, sipg_gpu or cg_gpu"
        )
    if not problem.physics.uses_time_derivative:
        raise PhysicsError(f"physics '{problem.physics.name}' has no u_t, and space-time needs one in f0")
    if isinstance(degree, bool) or not isinstance(degree, int) or not 0 <= degree <= HIGHEST:
        raise OptionError(f"{prefix}poly_time_degree is {shown(degree)}; give 0 to {HIGHEST}")
    if not isinstance(space, str) or space not in ("tensor", "total"):
        raise OptionError(f"{prefix}poly_time_space is {shown(space)}; give tensor or total")
    if points is not None and whole_number("The number of points in time", points, 1, MOST_POINTS) < degree + 1:
        raise OptionError(f"{plural(points, 'point')} in time cannot hold degree {degree}; give at least {degree + 1}")


class SlabNorms:
    """A monitor of SpaceTime.march: called after a slab, it adds the slab's part.

    values  {"L2(L2)", "L2(H1)"}: over space and time, by degree + 2 Gauss points on each interval between starts of
            local steps; {"max L2", "max H1"}: the largest at ends of slabs. H1 is the seminorm.

    Raises PhysicsError if the physics gives no exact solution.
    """

    def __init__(self, space_time: SpaceTime):
        input_data.require_exact(space_time.problem.physics)
        self.space_time = space_time
        self._squares, self._most = np.zeros(2), np.zeros(2)

    def __call__(self, t: float, u: PETSc.Vec) -> None:
        """Add the slab that ends at t with the state u. Collective."""
        problem, slab = self.space_time.problem, self.space_time.slab
        points, weights = np.polynomial.legendre.leggauss(slab.basis.degree + 2)
        breaks = slab.time + slab.length * np.array([float(b) for b in slab.basis.breaks])
        for begin, end in zip(breaks[:-1], breaks[1:], strict=True):
            for x, w in zip(points, weights, strict=True):
                time = begin + (end - begin) * (1 + x) / 2
                found = problem.errors(self.space_time.at(time), time)
                self._squares += w * (end - begin) / 2 * np.array([found["L2"], found["H1"]]) ** 2
        found = problem.errors(u, t)
        self._most = np.maximum(self._most, [found["L2"], found["H1"]])

    @property
    def values(self) -> dict[str, float]:
        """The norms so far."""
        return dict(zip(("L2(L2)", "L2(H1)", "max L2", "max H1"), [*np.sqrt(self._squares), *self._most], strict=True))
