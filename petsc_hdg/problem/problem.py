"""A physics on a mesh, discretized by the options, ready for PETSc's solvers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from petsc4py import PETSc

from .. import log, stages
from ..database import is_given
from ..device import Arrays, Device, Kernel, Node, VecAccess, built_together, ranks
from ..device.context import is_viennacl
from ..device.platforms import choose, identity, is_first, is_gpu
from ..discretizations import scheme
from ..discretizations.strong_conditions import require_facets
from ..discretizations.transposition import DeviceLimits
from ..errors import PetscHdgError, SolveError, collectively, warn_user
from ..mesh import Mesh
from ..mesh.mesh_checks import require_mesh
from ..operators import Callbacks, create_operator
from ..options import ASSEMBLED, Options, chosen_pmat, takes_differences
from ..petsc import lifetimes
from ..petsc.lifetimes import Alive
from ..physics import Physics
from ..progress import PROGRESS
from ..representation import Described
from ..value_checks import number, plural
from . import assembled_fallback, cells_in_time, input_data, matrices, memory_traffic, solution_checks, user_solvers
from .checkpoints import newton_checkpoints
from .checkpoints.restartable import Restartable
from .linear import (
    cell_measures,
    compatibility,
    direct_solvers,
    field_splits,
    kept_levels,
    methods,
    null_space,
    preconditioners,
    solvers,
)
from .newton import joint_newton, monitors
from .results import results, viewers
from .results.evaluated import Evaluated
from .results.point_functions import function_of
from .transient import time_stepping


class Problem(Restartable, Evaluated, Described):
    """A physics on a mesh by the scheme of `-fe_backend`.

        problem = Problem(mesh, physics)
        u = problem.solve()

    mesh     petsc_hdg.Mesh; `problem.mesh` is another one where poly_gpu moves cells to make polytopes
    physics  petsc_hdg.Physics
    options  petsc_hdg.Options; read from PETSc's database (with `prefix`) if None
    nullspace {field: "constant", "rigid" or "none"}: what the Jacobian maps to zero there, constants of each component
             with or without rotations, or nothing that solvers should know of; fields that are not named are found out
    defaults values of options where the user gives none, for example degree=2

    It has the first three as attributes, and

    comm               mpi4py communicator of the mesh
    num_unknowns       free degrees of freedom of all ranks
    newton_iterations  of the last run, None before it
    linear_iterations  of the last run
    time_steps         of the last run in time
    time               at the end of its last step
    after_step         list of functions of a TS, called after each step
    explicit           None, or another problem of the same mesh, scheme and fields, whose rates u_t are added to those
                       of this one, and which `-ts_type arkimex` evaluates without a solve
    tried              list of what the last nonlinear solve tried, in words
    discretization     numbering and elements of the scheme
    operator           residual and Jacobian on the device; `operator.restart()` updates state-dependent penalties

    Building one is collective. Raises OptionError, MeshError, PhysicsError or DeviceError on all ranks.
    """

    PUBLIC = tuple(
        "after_step at attach cell_costs cell_values checkpoint comm create_snes create_ts create_vec discretization "
        "dm errors explicit field flux index_sets integral interpolate linear_iterations load_steps matrix mesh "
        "newton_iterations num_unknowns operator options outputs physics plot report restart set_auxiliary "
        "set_constants snes solve solve_in_time summary time time_steps to_meshio to_numpy to_pyvista tried view "
        "with_options write write_trace".split()
    )

    def __init__(
        self,
        mesh: Mesh,
        physics: Physics,
        options: Options | None = None,
        prefix: str = "",
        nullspace: Mapping[str, str] | None = None,
        **defaults: Any,
    ):
        self.comm = require_mesh(mesh, "A problem").comm
        self.options = input_data.chosen_options(physics, options, prefix, defaults)
        log.settle(self.options.log_level, PETSc.COMM_WORLD.rank)
        PROGRESS.settle(self.options.progress, PETSc.COMM_WORLD.rank)
        self.scheme = scheme(self.options)
        with stages.stage("mesh"):
            self.mesh = mesh = self.scheme.on_mesh(mesh, self.options)
        self._given = physics
        self.physics = physics = self.scheme.prepared(physics, self.options, mesh.dim)
        self.nullspace = null_space.checked_claims(physics, mesh.dim, nullspace)
        self.prefix = self.options.prefix
        self.newton_iterations: int | None = None  # of the last run, as the next two
        self.linear_iterations: int | None = None
        self.time_steps: int | None = None
        self.time: float | None = None  # of its last step
        self.after_step: list[Callable[[PETSc.TS], None]] = []  # of a TS that the problem is attached to
        self.explicit: Problem | None = None
        self.traffic = None  # of the last solve, see traffic.Traffic
        self.solved_constants = None  # of the last solution
        self.extensions: dict = {}  # of essential data, see first_guess
        self.default_krylov = ""  # where it follows symmetry, see preconditioners.set_defaults
        self.default_pc = ""  # as the last solver of the problem was given it
        self.factors: dict[str, str] = {}  # options of multigrid that smooths by incomplete factors, see factor_levels
        self.direct = ""  # why LU is the default, see direct_solvers
        self.saddle: list[str] = []  # fields that a block preconditioner sees apart, see saddle_splits
        self.tried: list[str] = []  # by the last nonlinear solve, see first_guess
        self.watch = monitors.Watch(self)
        self.told: set[str] = set()  # what the user was warned of
        self.symmetric = None  # whether the matrix is, and definite, with the present data: see preconditioners
        self.samples = None  # of its derivatives with the present data, see cell_samples
        self.indefinite = False  # whether conjugate gradients have found the matrix so
        self.eigenvalues = None  # smallest and largest, as -sipg_check_coercivity estimates them
        self.point_functions: dict = {}  # compiled, see point_function
        self.integrands: dict = {}  # compiled, see integral_kernel
        self._outputs: dict = {}
        self.derivative = matrices.derivative(self)  # of its physics
        self.pmat = chosen_pmat(self.options, physics, self.derivative)
        self._unset = [f.name for f in self._given.auxiliary]
        self._choose_device()
        with stages.stage("discretize"):
            require_facets(mesh, physics)
            self.discretization = self.scheme.on(mesh, physics, self.options, DeviceLimits.of(self.device))
            self.petsc_comm = self.discretization.petsc_comm  # clones the mesh's DM: the user may destroy that one
            self.device.memory.unknowns = self.discretization.dofmap.num_owned  # numbering is collective
            self.device.memory.ranks = self.comm.allreduce(int(self.mesh.num_cells > 0))
            self.num_unknowns = self.comm.allreduce(self.discretization.dofmap.num_owned)
        with stages.stage("compile"):
            self._create_operator()
        log.info("made %r on %s", self, self.device.name)
        if self.options.kernel_view:
            results.view_kernels(self)
        if self.options.view:
            PETSc.Sys.Print(self.view(), comm=mesh.dm.comm)

    def __repr__(self) -> str:
        return f"<Problem '{self.physics.name}' by {self.discretization!r}: {plural(self.num_unknowns, 'unknown')}>"

    def facts(self) -> dict[str, str]:
        """Physics, mesh, scheme, unknowns and device, in words."""
        return {
            "physics": repr(self.physics),
            "mesh": repr(self.mesh),
            "scheme": f"{self.discretization.title} of degree {self.options.degree}",
            "unknowns": f"{self.num_unknowns}",
            "device": f"{self.device.name}, {self.options.precision} precision",
        }

    def _choose_device(self) -> None:
        """The device of PETSc's vectors if they live on one, else the one that `-fe_device` names."""
        local, choice = Node.of(self.comm).local if self.comm.size > 1 else self.comm, self.options.device
        vector = solvers.probe(self.mesh.dm)
        if not is_viennacl(vector) and self._may_share_vectors(local):
            other = solvers.probe(self.mesh.dm, "viennacl")
            taken = identity(choose(choice, local.rank)) == identity(Device.from_vec(other).cl_device)
            vector = other if all(self.comm.allgather(taken)) else vector
        self.device = Device.from_vec(vector) if is_viennacl(vector) else Device.select(self.options.device, self.comm)
        self.device.profile, self.device.halo = self.options.profile, self.options.halo
        self.vec_type = vector.getType()
        self.places = ranks.places(self.device, self.comm)
        self.device.persistent_groups *= not ranks.sharing(self.places)
        ranks.warn_of_sharing(self.places)

    def _may_share_vectors(self, local: Any) -> bool:
        """True if PETSc's vectors live on the device by default: on GPUs that ranks have alone, unless -dm_vec_type is
        given. local: a node's ranks. Collective."""
        given = is_given(self.mesh.dm.getOptionsPrefix() or "", "dm_vec_type")
        if given or not PETSc.Sys.hasExternalPackage("viennacl"):
            return False
        with collectively(self.comm):
            device = choose(self.options.device, local.rank)
        alone = is_gpu(device) and local.allgather(identity(device)).count(identity(device)) == 1
        alone, first = zip(*self.comm.allgather((alone, is_first(device))), strict=True)
        if all(alone) and not all(first) and self.comm.rank == 0:
            warn_user(
                "PETSc's vectors live on the host, since drivers list the GPUs of some ranks behind others; import "
                "petsc_hdg before petsc4py.init"
            )
        return all(alone) and all(first)

    def _create_operator(self) -> None:
        self.arrays = Arrays(self.device, self.options.precision)
        self.access = VecAccess(self.arrays)
        lifetimes.make_room(self.comm, self.num_unknowns)
        with collectively(self.comm):  # so that a lack of memory, or a kernel that fails, is everyone's
            self.operator = create_operator(self.discretization, self.arrays)
            self.stores = matrices.suit_stored(self)
            with built_together(self.device):
                self.operator.compile(matrices=self.assembles or self.stores)
                self._make_ready()

    def _make_ready(self) -> None:
        """Make kernels that a first solve will take, for their programs. One that fails does so where it is needed."""
        gathered = self.device.gathered
        if gathered is None or not self.device.has_solvers:
            return
        from ..krylov.programs import programs  # a third of the package, which CPUs rarely need

        needed = len(gathered)
        with suppress(PetscHdgError):
            self.operator.make_ready()
        for spec in programs(self.device):
            Kernel(spec, self.device)
        for kernel in gathered[needed:]:
            kernel.waits = True

    @property
    def given_physics(self) -> Physics:
        """The physics as the user gave it."""
        return self._given

    @property
    def assembles(self) -> bool:
        """True if the matrix of all unknowns is assembled."""
        return self.pmat == "aij" or (self.pmat == "agglomerates" and self.discretization.is_polytopic)

    @property
    def is_condensed(self) -> bool:
        """True if PETSc's unknowns are those of the trace alone."""
        return self.discretization.is_condensed

    @property
    def has_cell_states(self) -> bool:
        """True if vectors hold the interior of cells too, behind the trace: hdg_gpu with u_t."""
        return self.discretization.in_time

    @property
    def follows_symmetry(self) -> bool:
        """True if the default Krylov method depends on the symmetry of the matrix."""
        return self.pmat == "conforming" or bool(self.factors) or self.discretization.follows_symmetry

    @property
    def dm(self) -> PETSc.DMPlex:
        """The discretization's DM (a clone of the mesh's), whose section numbers the unknowns. Collective."""
        return viewers.dm_of(self)

    @property
    def vec_mode(self) -> str:
        """`host` (staged) or `viennacl` (zero-copy)."""
        return self.access.mode

    @property
    def missing_auxiliary(self) -> tuple[str, ...]:
        """Auxiliary fields that have no values yet."""
        return tuple(self._unset)

    @property
    def cell_costs(self) -> np.ndarray:
        """Cost of each of this rank's cells in a product [num_cells]; fe.rebalance(mesh, cost) takes it."""
        return self.discretization.cell_costs

    # Data ------------------------------------------------------------------------------------------------

    def set_constants(self, values: Mapping | None = None, /, **named: float | Mapping[str, float]) -> None:
        """Change named constants (collective), given by name or in a dict as to Physics; nothing is compiled again.
        Those of boundaries are given by a dict {boundary: number}, or by one number for all of them. Raises
        PhysicsError for an unknown name.
        """
        self.physics = self.discretization.physics = self.physics.with_constants(**(values or {}), **named)
        with kept_levels.watched(self):
            self.operator.set_constants(self.physics.constants.values())

    def set_auxiliary(self, name: str, value: object) -> None:
        """Give an auxiliary field its values (collective).

        value: a number or a sequence of one number a component; a dict {region name: number}; a text in x and
        constants, or a sequence of one a component; a callable of coordinates x [..., dim] that returns [...] or [...,
        component]; an array [cell] or [cell, component] for this rank's cells. Raises PhysicsError for what does not
        fit.
        """
        with collectively(self.comm):
            value = function_of(self, name, value, self.discretization.auxiliary.field(name)[0].components)
        with kept_levels.watched(self):
            self.operator.set_auxiliary(name, *input_data.auxiliary_values(self.discretization, name, value))
        if name in self._unset:
            self._unset.remove(name)

    def with_options(self, physics: Physics | None = None, **options: Any) -> Problem:
        """Return another problem of the same mesh and data, by other options, and of the same physics, or one of the
        same fields and data (collective)."""
        taken = replace(self.options, poly_subdivision="cells", **options)  # which the mesh has already
        physics = (physics or self._given).with_constants(**self.physics.constants)
        other = Problem(self.mesh, physics, taken, nullspace=self.nullspace)
        for name, values in self.operator.auxiliary_onto(other.discretization):
            if name in [field.name for field in physics.auxiliary]:
                other.operator.set_auxiliary(name, *values)
        other._unset, other._outputs = list(self._unset), dict(self._outputs)
        return other

    # PETSc -----------------------------------------------------------------------------------------------

    def create_vec(self) -> PETSc.Vec:
        """A zero vector of unknowns, of the type `-dm_vec_type` asks for."""
        viewers.require_dm(self)
        vector = viewers.duplicate(self._unknowns)
        vector.set(0.0)
        return vector

    @cached_property
    def _unknowns(self) -> PETSc.Vec:
        """A vector that others are duplicated from."""
        return viewers.create_vec(self)

    def interpolate(self, value: object, t: float = 0.0) -> PETSc.Vec:
        """A vector that takes given values at the nodes: a first guess, an initial state (collective).

        With poly_gpu, which has no nodes, it is the L2 projection.

        value: of the first field a number or one number a component; a text in x, t and constants such as "sin(x[0])",
        or one a component; a callable of coordinates x [..., dim] that returns [...] or [..., component]; a dict {field
        name: one of these}. Fields that are not named are zero.
        "exact" stands for the exact solution at time t, of all fields that have one or in a dict of one.
        Raises PhysicsError for what does not fit.
        """
        with collectively(self.comm):
            values = input_data.nodal_values(self.discretization, self.exact.instead(value, number("The time t", t)))
        vector = self.create_vec()
        vector.setArray(values)
        return input_data.made_at(vector, t)

    @cached_property
    def callbacks(self) -> Callbacks:
        """Residual and Jacobian callbacks with their matrices."""
        if self._unset:
            raise SolveError(
                f"auxiliary field '{self._unset[0]}' has no values yet: "
                f"call problem.set_auxiliary('{self._unset[0]}', ...)"
            )
        return matrices.callbacks(self)

    def matrix(self, u: PETSc.Vec | None = None) -> PETSc.Mat:
        """The Jacobian at u (zero if None) as an assembled matrix that is the caller's (collective).

        Raises SolveError where the problem assembles none: give the problem pmat="aij".
        """
        calls = self.callbacks
        if calls.assembled is None:
            raise SolveError(f"the problem assembles no matrix (-fe_pmat is {self.pmat}); give it pmat='aij'")
        calls.forget()
        calls.linearize(None, self.create_vec() if u is None else u, calls.jacobian, calls.preconditioning)
        return calls.preconditioning.duplicate(copy=True)

    def index_sets(self) -> dict[str, PETSc.IS]:
        """Numbers of the unknowns of each field in PETSc's vectors, ascending, by the field's name. Collective."""
        return field_splits.index_sets(self)

    def attach(self, solver: PETSc.SNES | PETSc.TS) -> None:
        """Set residual and Jacobian of the user's own SNES or TS, and types of its KSP and PC where it has none yet.

        The PC gets the assembled matrix where `-fe_pmat auto` can have one (`cg_gpu` up to degree 4, `hdg_gpu`,
        `poly_gpu`, any scheme with a -pc_type that needs it), whatever solvers were made before; from then on the
        problem's own solvers take it too. Else it gets levels. A TS has its type before, or by -ts_type. Collective.
        Raises PhysicsError or OptionError for what the type does not take.
        """
        user_solvers.attach(self, solver)

    def settle_pmat(self, assembled: int = ASSEMBLED) -> None:
        """Have a matrix where a solver made now asks for one: a PC of the user's own (up to the degree `assembled` of
        continuous elements), a -pc_type that came into PETSc's database after the problem, LU, or levels
        with incomplete factors. Collective."""
        chosen = chosen_pmat(self.options, self.physics, self.derivative, assembled)
        wanted = chosen == "aij" or direct_solvers.reason_of_text(self) or field_splits.constraints_of(self)
        if wanted or cell_measures.is_large_on_traces(self) or preconditioners.is_anisotropic(self):
            assembled_fallback.take_matrix(self)

    @property
    def solver_matrices(self) -> tuple[PETSc.Mat, PETSc.Mat]:
        """The Jacobian of solvers and the matrix of their preconditioners: the assembled one as both where PETSc fills
        it by differences."""
        calls = self.callbacks
        jacobian = calls.preconditioning if takes_differences(self.prefix) else calls.jacobian
        return jacobian, calls.preconditioning

    def connect(self, solver: PETSc.SNES | PETSc.TS) -> None:
        """Set residual and Jacobian of a SNES or TS, and nothing else."""
        calls, solver = self.callbacks, input_data.solver(solver)
        if isinstance(solver, PETSc.TS):
            time_stepping.prepare(self, solver)
        else:
            solver.setFunction(calls.residual, self.create_vec())
            solver.setJacobian(calls.linearize, *self.solver_matrices)

    def create_snes(self) -> PETSc.SNES:
        """A SNES with residual and Jacobian attached, our defaults, and the user's options on top.

        Defaults: one linear solve if the physics is linear, else Newton; and what preconditioners.set_defaults says.
        """
        viewers.require_dm(self)
        snes = PETSc.SNES().create(self.petsc_comm)
        if self.prefix:
            snes.setOptionsPrefix(self.prefix)
        self.settle_pmat()
        if assembled_fallback.has_blocks(self):  # which suit steps in time
            assembled_fallback.take_matrix(self)
        self.connect(snes)
        if self.physics.is_linear:
            snes.setType("ksponly")
        methods.set_tolerances(self, snes)
        methods.set_forcing(self, snes)
        preconditioners.set_defaults(self, snes.getKSP())
        preconditioners.set_from_options(self, snes)
        snes.setConvergenceHistory(reset=True)
        PROGRESS.watch(snes, cells_in_time.trace_solver(self, snes.getKSP()))
        return snes

    @Alive("The solver of the problem (problem.snes)")
    def snes(self) -> PETSc.SNES:
        """The solver that `solve` uses."""
        snes = self.create_snes()
        self.checkpoints.monitor = newton_checkpoints.watch(self, snes)
        self.watch.attach(snes)
        return snes

    def solve(self, guess: PETSc.Vec | None = None) -> PETSc.Vec:
        """Solve F(u) = 0 from `guess` (zero if None) and return u. Raises SolveError on all ranks if that fails."""
        u = self.create_vec() if guess is None else input_data.copied(self, guess)
        with solvers.agreed(self.comm), stages.stage("solve"), memory_traffic.counted(self):
            with newton_checkpoints.resumed(self, u) as goes_on:
                self.operator.restart()
                self.callbacks.null_space.restart()
                compatibility.check(self, u)
                self.newton_iterations = self.linear_iterations = 0
                self.time = None
                joint_newton.solve(self, u, goes_on, guess is None and not goes_on)
            solution_checks.check_solved(self, u)
            self.solved_constants = self.operator.constants.copy()
            compatibility.make_orthogonal(self, u)
        log.info("solved with %s", solution_checks.iterations(self))
        return u

    def solve_from(self, u: PETSc.Vec) -> None:
        """Let SNES work on u, from u on, whether it converges or not. Collective. Raises OptionError for no such u."""
        input_data.require_vec(self, u)
        if self.options.pmat == "auto" and assembled_fallback.needs_matrix(self.snes.getKSP().getPC()):
            assembled_fallback.take_matrix(self)  # for a PC that the user gave the solver itself
        with solvers.one_goal(self.snes) as aim:
            for _ in range(4):
                with solvers.agreed(self.comm, self.snes), preconditioners.smoothing(self, self.snes):
                    with direct_solvers.impatient(self, self.snes):
                        self.snes.solve(None, u)
                self.newton_iterations = (self.newton_iterations or 0) + self.snes.getIterationNumber()
                self.linear_iterations = (self.linear_iterations or 0) + self.snes.getLinearSolveIterations()
                failed_by_levels = self.callbacks.kept_levels.end(self.snes)
                if not (failed_by_levels or assembled_fallback.changes_course(self, self.snes)):
                    break
                aim()

    def create_ts(self) -> PETSc.TS:
        """A TS with residual and Jacobian attached, our defaults, and the user's options on top: BDF of second order,
        fixed steps, the last one shortened to meet the end time; the solvers of `create_snes`.
        """
        return time_stepping.create_ts(self)

    def solve_in_time(
        self,
        u0: PETSc.Vec,
        t1: float,
        dt: float,
        t0: float = 0.0,
        monitor: Callable[[float, PETSc.Vec], None] | None = None,
    ) -> PETSc.Vec:
        """The state at t1 by PETSc's TS from the state u0 at t0. Collective.

        dt       first step, and with `-ts_adapt_type none`, the default, every step; -ts_type, -ts_dt, -ts_max_time and
                 PETSc's other options have the last word
        monitor  called with (t, u) after each step

        `time_steps`, `newton_iterations` and `linear_iterations` are those of the run, `time` is where it ended.
        Raises SolveError on all ranks if a step fails.
        """
        return time_stepping.solve_in_time(self, u0, t1, dt, t0, monitor)
