"""The operator of condensed schemes: eliminate the interior of each cell, multiply on the trace, recover."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ... import stages
from ...device import Kernel, kernels_of
from ...discretizations.forwarded import forwarded
from ...errors import PetscHdgError, SolveError
from ...value_checks import plural
from ..base import DeviceOperator
from ..check import check_kernels
from ..facet_numbers import FacetNumbers
from ..overlap import LAST, OUTER
from ..trace.stores import TraceStores
from ..vectors import TailedVector
from .local_classes import most_classes
from .local_stage import LocalStage
from .recovery import KeptRecovery, Recovery

NEAR = 0.5  # difference of traces, over the size of one, up to which local problems begin at the interior of the other
FLOOR = 0.1  # least tau, of the mean over the mesh: where a diffusivity vanishes at one state, it may not at the next


class CondensedOperator(DeviceOperator):
    """Kernels of a CondensedDiscretization bound to the buffers they work on; PETSc's vector is the trace.

    Linear physics is condensed once for all states: F(λ) = K λ + F(0), interior = U λ + f (King et al. 2014, eq. 17 and
    section 4.3), F(0) and f until constants, auxiliary fields or the time change, K and U until those do that matrices
    read. Nonlinear local problems are solved at each residual, from the interior of the last one on; the first one
    after `restart` begins at the mean of the trace, unless the last interior belongs to one that is near.

    stabilization: Stabilization that follows the state, or None.   recovery: Recovery of the cells.
    """

    norms, solution_fields, errors, integral_kernel, integrals, boundary_integrals, flux = forwarded("recovery", 7)
    (format,) = forwarded("stores", 1)
    shift = 0.0  # of rates, which schemes in time have

    def __init__(self, discretization, arrays):
        super().__init__(discretization, arrays)
        self.is_linear = discretization.physics.is_linear
        self._conditions = arrays.to_device(discretization.facet_conditions(), "facet conditions")
        self.current, self.state, self.essential = TailedVector(self), TailedVector(self), TailedVector(self)
        self.direction = TailedVector(self)
        self.interior = arrays.zeros(max(1, discretization.num_eliminated * discretization.stride))
        self.stabilization = Stabilization(self) if discretization.stabilization_follows else None
        self._has_begun = False  # whether `interior` is where local problems begin
        self._solved = None  # buffer [num_owned] of the trace that `interior` belongs to
        self._interior_of: tuple | None = None  # `_data` that `interior` solves the local problems with
        self.local = LocalStage(self)
        self.stores = TraceStores(self)
        self.kept = KeptRecovery(self)
        self.recovery = Recovery(self)
        self.failure = ""
        self.patience: int | None = None  # residuals whose local problems may fail before all others do; None: any
        self.holds_interior = False  # whether `linearize` takes the interior as it is (JointState)
        self._matrix_of: tuple | None = None  # data that K and U of a linear physics belong to
        self._load_of: tuple | None = None  # data that F(0) and f belong to
        self._shift = self._particular = None
        self.checked: tuple | None = None  # `taken` when kernels were compared with numpy

    @property
    def _essential_vectors(self):
        return self.current, self.state, self.essential

    # Data and kernels ------------------------------------------------------------------------------------

    @property
    def follows_solution(self) -> bool:
        """True if the stabilization follows the state."""
        return self.stabilization is not None

    def restart(self) -> None:
        """A solve begins: the next residual finds where its local problems begin, and the stabilization."""
        self._has_begun, self._interior_of = False, None
        if self.stabilization is not None:
            self.stabilization.is_known = False

    def suits(self, u) -> bool:
        """Return True if the stabilization suits the last residual's state, at u; otherwise update it. Collective."""
        return self.stabilization is None or self.stabilization.serve(self.trace(u, 0.0), self.interior, 0.0)

    def set_constants(self, values) -> None:
        super().set_constants(values)
        self.restart()

    def set_auxiliary(self, name: str, values) -> None:
        before = self.coefficients
        super().set_auxiliary(name, values)
        self.restart()
        if self.coefficients != before:
            self.__dict__.pop("shapes", None)
            vars(self.kept).pop("is_kept", None)

    def compile(self, matrices: bool = False) -> None:
        """Compile what residuals and products need; with `matrices`, values of the assembled matrix are kept too, and
        cells that have been condensed are so once more for them."""
        self.stores.wants_values, self._matrix_of = matrices or self.format is None, None
        if self.dofmap.num_constrained:
            self._essential_kernel  # noqa: B018  a small program tells mistakes of the physics, where large ones wait
        self.kernels, self.kept.kernels, self.local.kernels, self._following_kernels  # noqa: B018
        self.stores.compile()

    def make_ready(self) -> None:
        if self.discretization.has_jumps:
            self.recovery.kernel("collect"), self.recovery.kernel("jumps")  # noqa: B018  what solves end with
            if self.format is not None and not self.is_linear:
                kernels_of(self.format.specs.facet_blocks(), self.device)

    def compile_variants(self) -> None:
        self.stores.compile_variants()
        self.make_ready()
        if not self.is_linear and not self.discretization.in_time:
            self._begin  # noqa: B018
        if self.is_linear and self.discretization.options.hdg_share:
            for spec in self.discretization.class_specs().values():
                Kernel(spec, self.device)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`assemble`."""
        return kernels_of({"assemble": self.discretization.assemble_spec()}, self.device)

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel compiled so far, by name."""
        stored = self.format.kernels if self.format else {}
        return {**self.kernels, **self.kept.kernels, **self.local.kernels, **self._following_kernels, **stored}

    @property
    def _following_kernels(self) -> dict[str, Kernel]:
        return self.stabilization.kernels if self.stabilization is not None else {}

    @property
    def flops(self) -> int:
        """Flops of this rank's residual beside the local stage, which counts its own."""
        return self.format.flops if self.is_linear and self.format is not None else 0

    matrix_flops = diagonal_flops = 0  # what is assembled, or picked, has been counted by the local stage

    @property
    def taken(self) -> tuple:
        """What tells which kernels cells and trace formats take. Collective."""
        return self.local.classes is not None, self.format and self.format.taken

    def _check_again(self) -> str:
        """Check the kernels that data, or a matrix, have made this operator take after the first check. Returns what is
        wrong, since other ranks may not be here."""
        try:
            if self.checked not in (None, self.taken):
                check_kernels(self)
        except PetscHdgError as error:
            return str(error)
        return ""

    # Local stage -----------------------------------------------------------------------------------------

    def trace(self, x, t: float, vector: TailedVector | None = None) -> TailedVector:
        """A trace with its ghosts and essential values, from owned values. Collective."""
        vector = vector or self.current
        self.update_essential(vector, t)
        return vector.use(x)

    def _check(self, failure: str) -> None:
        """Agree on a failure of the local stage. Collective."""
        comm = self.discretization.mesh.comm
        self.failure = next((f for f in comm.allgather(failure) if f), "")

    def _condense(self, trace: TailedVector, interior, t: float, matrix: bool, recovery=None) -> None:
        """Condense all cells; with `matrix` into the stores of the trace matrix. Collective."""
        stores = self.stores
        self._load_of = None
        if matrix:
            self._matrix_of = None
        take = stores.take if matrix else None
        if matrix:
            stores.begin()
        failure = self._check_again()
        self.local.condense(trace, interior, t, take, recovery)
        if matrix and stores.retry():
            failure = failure or self._check_again()
            self.local.condense(trace, interior, t, take, recovery)
        self.local.release()
        self._check(failure or self.local.condensation_failure(trace, interior))
        if self.failure:
            raise SolveError(self.failure)
        if matrix:
            stores.exchange()

    @cached_property
    def shapes(self):
        """Shapes of congruent cells, where the format or the local stage can share and it may pay; else None."""
        disc = self.discretization
        most = self.format.most_shapes if self.format is not None and self.format.can_share else 0
        most = max(most, most_classes(disc) if self.is_linear else 0)
        return disc.congruence(self.aux_rows, most) if most and disc.options.hdg_share else None

    @property
    def storage(self) -> str:
        return self.stores.description

    def _prepare(self, t: float) -> None:
        """Condense a linear physics for all states at time t: matrix, F(0), and what recovery takes. Collective."""
        matrix, load = (self.coefficients, t if self.discretization.reads_time else None), (self.version, t)
        is_kept = matrix == self._matrix_of
        if is_kept and load == self._load_of:
            return
        disc, arrays = self.discretization, self.arrays
        if self._shift is None:
            self._shift, self._zero = (arrays.zeros(max(1, self.dofmap.num_owned)) for _ in range(2))
            self._particular = arrays.zeros(max(1, disc.num_eliminated * disc.stride))
        recovery = None if is_kept else self.kept.buffer()
        essential = self.trace(self._zero, t, self.essential)
        arrays.fill(self.interior, 0)
        self._condense(essential, self.interior, t, matrix=not is_kept, recovery=recovery)
        arrays.copy(self.local.solution, self._particular, disc.num_eliminated * disc.stride)
        self._sum_residual(self._shift)
        self._matrix_of, self._load_of = matrix, load

    def _begin_trace(self, x, t: float) -> TailedVector:
        """Like `trace`, with the ghosts yet to come: the local stage begins with cells that need none. Collective."""
        self.update_essential(self.current, t)
        return self.current.begin(x)

    def _sum_residual(self, out) -> None:
        """out = the trace residual of the last local stage, summed over all ranks. Collective."""
        element, alone = self.local.residual, not self.halo.plan.active
        self.assemble(element, out, None if alone else OUTER)
        if not alone:
            self.halo.reverse_add_begin(self.ghost_sums)
            self.assemble(element, out, LAST)
            self.halo.reverse_add_end(out)

    def begin(self, x, t: float = 0.0) -> None:
        """Let local problems begin at a trace, and the stabilization with them, if it is not known. Collective."""
        if self.is_linear:
            return
        self._has_begun = False
        trace = self.trace(x, t)
        self._begin_at(trace)
        self.local._stabilize(trace, self.interior, t)

    def forget_interior(self) -> None:
        """Begin the next local problems at the trace instead of at the interior of the last solution."""
        self._solved = None
        self.restart()

    def _begin_at(self, trace: TailedVector) -> None:
        """Have an interior that goes with a trace after `restart`. Collective."""
        if self._has_begun:
            return
        trace.end()
        self._has_begun, disc = True, self.discretization
        cells = disc.mesh.num_cells
        apart, size = self._apart(trace.owned)
        near = self._solved is not None and apart <= NEAR**2 * size
        if not size > 0:
            self.arrays.fill(self.interior, 0)
        elif not near and cells and disc.num_eliminated:
            self._begin(
                cells * disc.components, cells, disc.stride, self.dofmap.num_owned, self._dofs, trace.owned, trace.tail,
                self.interior,
            )  # fmt: skip

    def _apart(self, x) -> np.ndarray:
        """Sums of squares over all unknowns, of the difference between owned values x and the trace of `interior` (0
        without one), and of x. Collective."""
        count, squares = self.dofmap.num_owned, np.zeros(2)
        if count:
            squares = self.local.sums.of("condense_apart", count, self._solved or x, x)[0, :2]
        return self.discretization.mesh.comm.allreduce(squares)

    def _data(self, t: float) -> tuple:
        """Return what local solutions depend on apart from the trace: time, boundary data, stabilization."""
        return t, self.has_data, self.stabilization and self.stabilization.version

    def _solve_nonlinear(self, trace: TailedVector, t: float, again: bool = True) -> None:
        """Solve the local problems at a trace; again: also where `interior` is their solution, for the residual."""
        if self.holds_interior or self.patience == 0:
            trace.end()
        elif self.discretization.num_eliminated:
            self._begin_at(trace)
            self.local._stabilize(trace, self.interior, t)
            if not again and self._interior_of == self._data(t) and self._apart(trace.owned)[0] == 0:
                return
            self._interior_of = None
            self.local.solve(trace, self.interior, t)
            self._check(self.local.solve_failure(trace, self.interior))
            if not self.failure:
                self.note_solved(trace.owned)
                self._interior_of = self._data(t)
            if self.failure and self.patience:
                self.patience -= 1
        else:
            self.local.condense(trace, self.interior, t)

    def begin_at_interior(self) -> None:
        """`interior` is a guess from now on."""
        self._interior_of = None

    def note_solved(self, x) -> None:
        """`interior` belongs to owned values x of a trace from now on."""
        self._interior_of = None
        count = self.dofmap.num_owned
        if self._solved is None:
            self._solved = self.arrays.zeros(max(1, count))
        self.arrays.copy(x, self._solved, count)

    # What PETSc's callbacks use --------------------------------------------------------------------------

    def residual(self, x, out, t: float = 0.0, u_t=None) -> None:
        """out = F(x) of the trace. Collective. A failed local problem is told by `failure`."""
        if self.is_linear and self.format is not None:
            self._prepare(t)
            self.format.apply(x, out)
            self._add_to(self.dofmap.num_owned, self.dofmap.num_owned, self._shift, out)
        elif self.is_linear:
            self.arrays.fill(self.interior, 0)
            self.local.condense(self._begin_trace(x, t), self.interior, t)
            self._sum_residual(out)
        else:
            self._solve_nonlinear(self._begin_trace(x, t), t)
            self._sum_residual(out)

    def linearize(self, x, t: float = 0.0, u_t=None, shift: float = 0.0) -> None:
        """Condense at x. Collective. Raises SolveError, on all ranks, for a singular local problem."""
        if self.is_linear:
            self._prepare(t)
            return
        self.update_essential(self.state, t)
        self.state.keep(x, begin=True)
        self._solve_nonlinear(self.state, t, again=False)
        self._condense(self.state, self.interior, t, matrix=True)

    def action(self, dx, out) -> None:
        """out = K dx at the state of `linearize`. Collective."""
        self.format.apply(dx, out)

    def diagonal(self, out) -> None:
        """out = diagonal of K. Collective."""
        self.format.apply_column(-1, out)

    def matrices(self) -> np.ndarray:
        """Trace matrices [column, cell, row] of the last `linearize`, flat: the values for `matrix_numbers`."""
        return self.stores.values.ravel()

    def matrix_buffers(self) -> tuple:
        """A buffer of the trace matrices [column, cell, row], and None: no items but cells have matrices."""
        return self.arrays.to_device(self.stores.values, "matrices"), None

    def local_state(self, x, t: float = 0.0):
        """The interior [eliminated dof, stride] that belongs to a trace, in a buffer that the next call changes."""
        if not self.is_linear:
            self._solve_nonlinear(self.trace(x, t), t, again=False)
            if self.failure:
                raise SolveError(self.failure)
            return self.interior
        disc = self.discretization
        if self.kept.is_kept:
            self._prepare(t)
            self.direction.use(x)
            with stages.event("Recover", 2 * disc.num_eliminated * disc.mesh.num_cells * disc.num_trace_dofs):
                self.kept.recover(self.direction, self._particular, self.interior)
            return self.interior
        self.arrays.fill(self.interior, 0)
        self.local.condense(self.trace(x, t), self.interior, t)
        return self.local.solution

    def details(self, complete: bool = True) -> list[str]:
        """Storage of the trace matrix, and how many local solvers there are where cells share them. Collective."""
        found = super().details(complete)
        if complete and self.local.classes:
            cells = self.discretization.mesh.num_cells
            found.append(f"  local solvers: {self.local.classes.shapes.count} for {plural(cells, 'cell')} on rank 0")
        return found

    @property
    def main_kernel(self) -> Kernel:
        """The kernel whose launch shape tells most."""
        return self.local.kernels["condense"]

    @cached_property
    def _begin(self) -> Kernel:
        return Kernel(self.discretization.begin_spec(), self.device)

    @cached_property
    def _add_to(self) -> Kernel:
        return Kernel(self.discretization.assemble_spec("add_to"), self.device)

    # Results ---------------------------------------------------------------------------------------------

    def cell_fields(self, x, t: float):
        """The fields in this rank's cells, and what is recovered from them. Collective."""
        return self.recovery.fields(x, t)

    def trace_fields(self, x, t: float):
        """Cells, local facets and fields of the trace on each facet once. Collective. Raises OptionError."""
        return self.recovery.trace_fields(x, t) if self.discretization.has_jumps else super().trace_fields(x, t)


class Stabilization(FacetNumbers):
    """tau [facet of the cell, stride, component] of a condensed operator at the state of trace and interior.

    It stays as it is while Newton's method goes on, so that the Jacobian is exact, and is found anew between solves.
    """

    def __init__(self, operator):
        disc = operator.discretization
        shape = disc.num_facets_of_cell, max(1, disc.stride), disc.components
        super().__init__(operator, shape, components_first=False)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`hdg_stabilization`."""
        return kernels_of({"hdg_stabilization": self.disc.stabilization_spec()}, self.op.device)

    def find(self, trace, interior, t: float, found) -> None:
        """Find the stabilization of a state, 0 where there is none, in a buffer. Not collective after ghosts came."""
        kernel = self.kernels["hdg_stabilization"]
        self.op.local.launch(kernel, (0, self.disc.mesh.num_cells), trace, interior, t, found=found)

    def update(self, trace, interior, t: float) -> None:
        """Find tau of a state, up or down. Collective."""
        trace.end()
        self.find(trace, interior, t, self.buffer)
        _, sums, _, counts = self.compared(self.buffer)
        means = sums / np.maximum(1.0, counts)
        self.raise_to(np.where(means > 0, FLOOR * means, 1.0))
        self.version += 1
        self.is_known = True

    def give(self, values: np.ndarray) -> None:
        """Take tau [shape] until the operator's `restart`."""
        self.write(values)
        self.is_known = True

    def scale(self, factor: float) -> None:
        """Multiply tau, until it is found anew."""
        self.write(factor * self.values())
