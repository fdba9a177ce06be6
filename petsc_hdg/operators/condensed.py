"""The operator of condensed schemes: eliminate the interior of each cell, multiply on the trace, recover."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from mpi4py import MPI

from .. import stages
from ..device import Kernel, kernels_of
from ..discretizations.class_specs import class_specs
from ..errors import PetscHdgError, SolveError
from .base import DeviceOperator
from .border import border_of
from .check_trace import check_trace
from .local_classes import most_classes
from .local_stage import LocalStage
from .overlap import LAST, OUTER
from .recovery import Recovery
from .trace_formats import create_format
from .vectors import TailedVector

SYMMETRIC = {"double": 1e-9, "single": 1e-4}  # |xᵀKy - yᵀKx| over |xᵀKx| below which K counts as symmetric
KEPT_SHARE = 0.5  # of the device's memory that the matrices U of recovery may take


class CondensedOperator(DeviceOperator):
    """Kernels of a CondensedDiscretization bound to the buffers they work on; PETSc's vector is the trace.

    Linear physics is condensed once for all states: F(λ) = K λ + F(0), interior = U λ + f (King et al. 2014, eq. 17 and
    section 4.3), until constants, auxiliary fields or the time change. Nonlinear local problems are solved at each
    residual, from the interior of the last one on.
    """

    def __init__(self, discretization, arrays):
        super().__init__(discretization, arrays)
        self.is_linear = discretization.physics.is_linear
        self._conditions = arrays.to_device(discretization.facet_conditions(), "facet conditions")
        self.current, self.state, self.essential = TailedVector(self), TailedVector(self), TailedVector(self)
        self.direction = TailedVector(self)
        self.interior = arrays.zeros(max(1, discretization.num_eliminated * discretization.stride))
        self.local = LocalStage(self)
        self.format = None if self.format_kind == "aij" else create_format(self.format_kind, self)
        rough = self.format and discretization.options.hdg_trace_precision == "single" and arrays.precision == "double"
        self.rough = create_format(self.format_kind, self, True, self.format.layout) if rough else None
        self._border = border_of(self) if self.format is not None and self.format.has_facets else None
        for each in self.formats:
            each.border = self._border
        self.recovery = Recovery(self)
        self.failure = ""
        self._values: np.ndarray | None = None
        self._wants_values = False
        self._condensed_at: float | None = None  # time for which a linear physics is condensed
        self._shift = self._particular = self._kept = None
        self._symmetric: bool | None = None

    @property
    def _essential_vectors(self):
        return self.current, self.state, self.essential

    @property
    def format_kind(self) -> str:
        """How the trace matrix is stored: dense blocks need facets that own their unknowns."""
        kind = self.discretization.options.hdg_trace_mat
        return kind if kind == "aij" or self.discretization.has_jumps else "element"

    # Data and kernels ------------------------------------------------------------------------------------

    def set_constants(self, values) -> None:
        super().set_constants(values)
        self._condensed_at = None

    def set_auxiliary(self, name: str, values) -> None:
        super().set_auxiliary(name, values)
        self._condensed_at = None
        for name in ("shapes", "keeps_recovery"):
            self.__dict__.pop(name, None)

    def compile(self, matrices: bool = False) -> None:
        """Compile what residuals and products need; with `matrices`, values of the assembled matrix are kept too."""
        self._wants_values = matrices or self.format is None
        self.kernels, self.local.kernels, [each.kernels for each in self.formats]  # noqa: B018
        if self._border is not None:
            self._border.kernels  # noqa: B018

    def compile_variants(self) -> None:
        for each in self.formats:
            each.compile_variants()
        if self.is_linear and self.discretization.options.hdg_share:
            for spec in class_specs(self.discretization).values():
                Kernel(spec, self.device)

    @property
    def formats(self) -> list:
        """The trace matrix as it is stored, once or twice."""
        return [each for each in (self.format, self.rough) if each is not None]

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`assemble`, and `condense_recover` where U is kept."""
        disc = self.discretization
        specs = {"assemble": disc.assemble_spec()}
        if self.is_linear and disc.options.hdg_keep and disc.num_eliminated:
            specs["condense_recover"] = disc.recover_spec()
        return kernels_of(specs, self.device)

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel compiled so far, by name."""
        return {**self.kernels, **self.local.kernels, **(self.format.kernels if self.format else {})}

    @property
    def flops(self) -> int:
        """Flops of this rank's residual beside the local stage, which counts its own."""
        return self.format.flops if self.is_linear and self.format is not None else 0

    matrix_flops = diagonal_flops = 0  # what is assembled, or picked, has been counted by the local stage

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
        """Condense all cells; with `matrix` into the format and the values of the assembled matrix. Collective."""
        self._condensed_at = self._symmetric = None
        if matrix and self._wants_values:
            disc = self.discretization
            shape = (disc.num_trace_dofs, disc.mesh.num_cells, disc.num_trace_dofs)
            if self._values is None:
                self._values = np.empty(shape, dtype=self.arrays.real)
        failure = ""
        if matrix:
            self._share()
        for each in self.formats if matrix else ():
            each.clear()
        self.local.condense(trace, interior, t, self._take if matrix else None, recovery)
        if matrix and any([each.retry() for each in self.formats]):
            failure = self._checked_formats()
            self.local.condense(trace, interior, t, self._take, recovery)
        self.local.release()
        self._check(failure or self.local.condensation_failure())
        if self.failure:
            raise SolveError(self.failure)
        if matrix and self._border is not None:
            self._border.exchange()

    def _checked_formats(self) -> str:
        """Check the kernels of formats chosen on the way. Returns what is wrong, since other ranks may not be here."""
        try:
            for each in self.formats if self.discretization.options.check_kernels else ():
                check_trace(each)
        except PetscHdgError as error:
            return str(error)
        return ""

    @cached_property
    def shapes(self):
        """Shapes of congruent cells, where the format or the local stage can share and it may pay; else None."""
        disc = self.discretization
        most = self.format.most_shapes if self.format is not None and self.format.can_share else 0
        most = max(most, most_classes(disc) if self.is_linear else 0)
        return disc.congruence(self.aux_rows, most) if most and disc.options.hdg_share else None

    def _share(self) -> None:
        """Tell the formats of the shapes of cells."""
        for each in self.formats:
            each.share(self.shapes if each.can_share else None)

    @property
    def storage(self) -> str:
        if self.format is None:
            return ""
        self._share()
        return "; for the preconditioner ".join(each.description for each in self.formats)

    def takes_shapes(self, classes) -> bool:
        """Whether the matrices of the shapes of cells are all that is wanted; they are taken then."""
        found = [each.add_shapes(classes.schur, classes.shapes) for each in self.formats]
        if self._border is not None:
            self._border.take_shapes(classes.schur, classes.shapes)
        return all(found) and not self._wants_values

    def _take(self, schur, first: int, count: int, batch: int) -> None:
        """Put the matrices of a tile where they are wanted."""
        for each in self.formats:
            each.add_tile(schur, first, count, batch)
        if self._border is not None:
            self._border.take(schur, first, count, batch)
        if self._wants_values:
            size = self.discretization.num_trace_dofs
            tile = self.arrays.to_host(schur, (size, batch, size), name="matrices")
            self._values[:, first : first + count] = tile[:, :count]

    def _prepare(self, t: float) -> None:
        """Condense a linear physics for all states at time t: matrix, F(0), and what recovery takes. Collective."""
        if self._condensed_at == t:
            return
        disc, arrays = self.discretization, self.arrays
        if self._shift is None:
            self._shift, self._zero = (arrays.zeros(max(1, self.dofmap.num_owned)) for _ in range(2))
            self._particular = arrays.zeros(max(1, disc.num_eliminated * disc.stride))
        if self._kept is None and self.keeps_recovery and not self.local.classes:
            self._kept = arrays.empty(self.local.recovery_reals * disc.stride)
        essential = self.trace(self._zero, t, self.essential)
        arrays.fill(self.interior, 0)
        self._condense(essential, self.interior, t, matrix=True, recovery=self._kept)
        arrays.copy(self.local.solution, self._particular, disc.num_eliminated * disc.stride)
        self._sum_residual(self._shift)
        self._condensed_at = t

    @cached_property
    def keeps_recovery(self) -> bool:
        """Whether U of all cells stays on the device: one tile, and memory enough, on all ranks. Collective."""
        disc = self.discretization
        nbytes = self.arrays.real.itemsize * self.local.recovery_reals * disc.stride
        fits = nbytes <= min(KEPT_SHARE * self.device.memory_bytes, self.device.largest_buffer)
        one_tile = self.local.tile_cells >= disc.mesh.num_cells
        shared = self.local.classes is not None
        wanted = self.is_linear and disc.options.hdg_keep and disc.num_eliminated > 0
        return wanted and disc.mesh.comm.allreduce(shared or (fits and one_tile), MPI.LAND)

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

    def _solve_nonlinear(self, trace: TailedVector, t: float) -> None:
        if self.discretization.num_eliminated:
            self.local.solve(trace, self.interior, t)
            self._check(self.local.solve_failure())
        else:
            self.local.condense(trace, self.interior, t)

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
        self._solve_nonlinear(self.state, t)
        self._condense(self.state, self.interior, t, matrix=True)

    def action(self, dx, out) -> None:
        """out = K dx at the state of `linearize`. Collective."""
        self.format.apply(dx, out)

    def diagonal(self, out) -> None:
        """out = diagonal of K. Collective."""
        self.format.apply_column(-1, out)

    def matrices(self) -> np.ndarray:
        """Trace matrices [column, cell, row] of the last `linearize`, flat: the values for `matrix_numbers`."""
        return self._values.ravel()

    def is_symmetric(self) -> bool:
        """Whether the matrix of the last `linearize` is symmetric, found out once. Collective."""
        if self._symmetric is None:
            self._symmetric = self._measured_symmetry()
        return self._symmetric

    def _measured_symmetry(self) -> bool:
        """Symmetry by the values of the assembled matrix, or by random products. Collective."""
        if self.format is None:
            values, comm = self._values, self.discretization.mesh.comm
            skew = float(np.abs(values - values.transpose(2, 1, 0)).max(initial=0.0))
            largest = float(np.abs(values).max(initial=0.0))
            skew, largest = comm.allreduce(skew, MPI.MAX), comm.allreduce(largest, MPI.MAX)
            return skew <= SYMMETRIC[self.arrays.precision] * largest
        random = np.random.default_rng(11 + self.discretization.mesh.comm.rank)
        x, y = (random.uniform(-1, 1, self.dofmap.num_owned) for _ in range(2))
        forth, back, size = self._form(y, x), self._form(x, y), self._form(x, x)
        return abs(forth - back) <= SYMMETRIC[self.arrays.precision] * abs(size)

    def _form(self, x: np.ndarray, y: np.ndarray) -> float:
        """xᵀ K y. Collective."""
        given = self.arrays.to_device(y if y.size else np.zeros(1), "symmetry")
        out = self.arrays.empty(max(1, len(x)))
        self.action(given, out)
        return self.discretization.mesh.comm.allreduce(float(x @ self.arrays.to_host(out, len(x), name="symmetry")))

    def local_state(self, x, t: float = 0.0):
        """The interior [eliminated dof, stride] that belongs to a trace, in a buffer that the next call changes."""
        if not self.is_linear:
            self._solve_nonlinear(self.trace(x, t), t)
            if self.failure:
                raise SolveError(self.failure)
            return self.interior
        disc = self.discretization
        if self.keeps_recovery:
            self._prepare(t)
            self.direction.use(x)
            items = disc.num_eliminated * disc.mesh.num_cells
            with stages.event("Recover", 2 * items * disc.num_trace_dofs):
                if self.local.classes:
                    self.local.classes.recover(self.direction, self._particular, self.interior)
                    return self.interior
                self.kernels["condense_recover"](
                    items, disc.mesh.num_cells, 0, disc.stride, self.dofmap.num_owned, self._dofs, self.direction.owned,
                    self.direction.tail, disc.stride, self._kept, self._particular, self.interior,
                )  # fmt: skip
            return self.interior
        self.arrays.fill(self.interior, 0)
        self.local.condense(self.trace(x, t), self.interior, t)
        return self.local.solution

    def details(self, complete: bool = True) -> list[str]:
        """Storage of the trace matrix, and how many local solvers there are where cells share them. Collective."""
        found = super().details(complete)
        if complete and self.local.classes:
            cells = self.discretization.mesh.num_cells
            found.append(f"  local solvers: {self.local.classes.shapes.count} for {cells} cells on rank 0")
        return found

    # Results ---------------------------------------------------------------------------------------------

    @property
    def norms(self) -> tuple[str, ...]:
        """What the rows of `errors` are squares of."""
        return self.recovery.norms

    def cell_fields(self, x, t: float):
        """The fields in this rank's cells, and what is recovered from them. Collective."""
        return self.recovery.fields(x, t)

    def trace_fields(self, x, t: float):
        """Cells, local facets and fields of the trace on each facet once. Collective. Raises OptionError."""
        return self.recovery.trace_fields(x, t) if self.discretization.has_jumps else super().trace_fields(x, t)

    def flux(self, label: str, x, t: float):
        """Numerical flux through the exterior facets of a named boundary [component]. Collective."""
        return self.recovery.flux(label, x, t)

    @property
    def main_kernel(self) -> Kernel:
        """The kernel whose launch shape tells most."""
        return self.local.kernels["condense"]

    def errors(self, x, t: float):
        """Squared errors [norm, component] over this rank's cells. Collective."""
        return self.recovery.errors(x, t)

    @cached_property
    def _add_to(self) -> Kernel:
        return Kernel(self.discretization.assemble_spec("add_to"), self.device)
