"""Condensed schemes in time: the interior of cells is part of the state, and eliminated in each linear solve.

Nonlinear schemes in one step have the same: trace and interior as one state, its residual, and Newton's step.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property

import numpy as np

from ... import stages
from ...codegen import KernelSpec
from ...device import Kernel, kernels_of
from ...discretizations.base import padded
from ...errors import collectively
from ..check import judge, random_values, waiting
from .check import check_condensed, check_products
from .operator import CondensedOperator

KERNELS = ("cells_spread", "cells_collect")
SAME = 1e-8  # of the residual, by which what is to be solved may differ from it
CHECK_SHIFT = 1.3  # before the first linearization, so that kernels are checked with one


class StateProducts:
    """[A C; B G] at the state of the last linearization, or its transpose, from the same text at each point.

    A right-hand side (r, s) has the solution (v, w) with
        K w = s - B A⁻¹ r,    v = A⁻¹ (r - C w),    K = G - B A⁻¹ C,
    and with the transpose the same of [Aᵀ Bᵀ; Cᵀ Gᵀ], whose condensed matrix is Kᵀ. Vectors: [owned trace | cell, dof].

    operator: CondensedInTime.   kernels: `condense_product`, `condense_given` and, where condensation keeps A⁻¹,
    `condense_kept`, by name and by whether transposed.
    """

    def __init__(self, operator):
        self.op, self.disc, self.arrays = operator, operator.discretization, operator.arrays
        size = max(1, self.disc.num_eliminated * max(1, self.disc.stride))
        self._interior, self._given = (self.arrays.zeros(size) for _ in range(2))
        self.kernels: dict[tuple[str, bool], Kernel] = {}

    def compile(self, transposed: bool) -> None:
        """Compile, and check at first use on a device. Collective."""
        if ("condense_given", transposed) in self.kernels:
            return
        for name in ("condense_product", "condense_given", *(("condense_kept",) if self.disc.keeps_inverse else ())):
            self.kernels[name, transposed] = Kernel(self.disc.condense_spec(name, transposed), self.op.device)
        if self.disc.options.check_kernels:
            with collectively(self.disc.mesh.comm):
                check_products(self, transposed)

    # Kernels ---------------------------------------------------------------------------------------------

    def launch_product(self, transposed: bool, cells: tuple[int, int], state, vector, residual, inner) -> None:
        """Element vectors of a product. Not collective.

        cells: the first, and how many.   state: what `linearized` gives.   vector: TailedVector, interior.
        """
        trace, interior = vector
        given = {"w_interior": interior, "w_owned": trace.owned, "w_tail": trace.tail}
        kernel, local = self.kernels["condense_product", transposed], self.op.local
        scratch = local.scratch_for("condense_product")
        local.launch(kernel, cells, *state, **given, scratch=scratch, residual=residual, inner=inner)

    def launch_given(self, transposed: bool, cells: tuple[int, int], state, given, residual, solution, kept) -> None:
        """A⁻¹ r, and -B A⁻¹ r as element vectors of the trace; kept: by scratch memory, where condensation left A⁻¹ of
        these cells. Not collective."""
        name, local = "condense_kept" if kept else "condense_given", self.op.local
        scratch = local._scratch[True] if kept else local.scratch_for(name)
        given = {"scratch": scratch, "given": given, "residual": residual, "solution": solution}
        local.launch(self.kernels[name, transposed], cells, *state, **given)

    def _multiply(self, trace, transposed: bool) -> None:
        """Element vectors of the product with a trace [owned] and the interior that `_interior` holds. Collective."""
        op, state = self.op, self.op.linearized()
        vector = op.direction.use(trace), self._interior
        for cells in op.local.tiles():
            self.launch_product(transposed, cells, state, vector, op.local.residual, op.local.inner)

    def _solve_cells(self, transposed: bool) -> None:
        """A⁻¹ of `_given` in the solution of the local stage, and -B A⁻¹ of it in its residual. Collective."""
        state, local = self.op.linearized(), self.op.local
        self.op._is_eliminated = False  # other results go to the local stage's buffers
        kept = local.holds_inverse
        for cells in local.tiles():
            self.launch_given(transposed, cells, state, self._given, local.residual, local.solution, kept)

    # What the matrix and its solver use ------------------------------------------------------------------

    def multiply(self, x, out, transposed: bool) -> None:
        """out = J x, or Jᵀ x. Collective."""
        self.compile(transposed)
        states = self.op.states
        states.spread(x, states.interior, self._interior)
        self._multiply(x, transposed)
        self.op._sum_residual(out)
        states.collect(self.op.local.inner, out)

    def eliminate(self, b, out, transposed: bool) -> None:
        """out [owned] = s - B A⁻¹ r of b. Collective."""
        self.compile(transposed)
        op, count = self.op, self.op.dofmap.num_owned
        op.states.spread(b, op.states.interior, self._given)
        self._solve_cells(transposed)
        op._sum_residual(out)
        op._add_to(count, count, b, out)

    def recover(self, b, w, out, transposed: bool) -> None:
        """out = the solution (v, w), from b and w [owned]. Collective."""
        op, states = self.op, self.op.states
        self.arrays.fill(self._interior, 0)
        self._multiply(w, transposed)
        states.spread(b, states.interior, self._given)
        states.collect(self._given, out, op.local.inner)
        states.spread(out, states.interior, self._given)
        self._solve_cells(transposed)
        states.collect(op.local.solution, out)
        self.arrays.copy(w, out, op.dofmap.num_owned)


class CellStates:
    """Copies between the cells' part of a vector and arrays [row, stride] of an operator.

    interior, rates: rows [dof] of a cell's degrees of freedom in the array of the interior, in that of auxiliary data.
    """

    def __init__(self, operator):
        self.op, self.arrays, self.device = operator, operator.arrays, operator.device
        self.discretization = disc = operator.discretization
        self.count, self.num_dofs = disc.mesh.num_cells, disc.num_eliminated
        dofs = np.arange(self.num_dofs)
        function, component = dofs // disc.components, dofs % disc.components
        first = disc.auxiliary.starts[disc.physics.num_auxiliary]
        self.interior = self.arrays.to_device(dofs, "states")
        self.rates = self.arrays.to_device(first + component * disc.num_interior + function, "states")

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`cells_spread` and `cells_collect`."""
        precision = self.arrays.precision
        return {n: Kernel(KernelSpec(n, ("cells_state.cl",), precision=precision), self.device) for n in KERNELS}

    @property
    def size(self) -> int:
        """Values of this rank's cells in a vector."""
        return self.count * self.num_dofs

    def spread(self, vector, rows, array) -> None:
        """array = the cells' part of a vector, 0 for None."""
        self._launch("cells_spread", rows, vector, array)

    def collect(self, array, vector, other=None) -> None:
        """The cells' part of a vector = array of the interior, less another one."""
        self._launch("cells_collect", self.interior, array, other, vector)

    def _launch(self, name: str, *arguments) -> None:
        disc = self.discretization
        shape = (self.size, self.count, self.num_dofs, self.op.dofmap.num_owned, disc.stride)
        self.kernels[name](self.size, *shape, *arguments)

    def check(self) -> None:
        """Compare kernels with numpy at their first use on a device. Not collective. Raises DeviceError."""
        names, stride, owned = waiting(self, KERNELS), self.discretization.stride, self.op.dofmap.num_owned
        if not names or not self.size:
            return
        given, array = random_values(3, owned + self.size), self.arrays.zeros(self.num_dofs * stride)
        self.spread(self.arrays.to_device(given, "kernel check"), self.interior, array)
        found = self.arrays.to_host(array, (self.num_dofs, stride), name="kernel check")[:, : self.count]
        expected = given[owned:].reshape(self.count, self.num_dofs)
        judge(self.kernels["cells_spread"], found, expected.T, self.arrays.precision)
        vector, half = self.arrays.zeros(owned + self.size), self.arrays.zeros(self.num_dofs * stride)
        self.spread(self.arrays.to_device(given / 2, "kernel check"), self.interior, half)
        self.collect(array, vector, half)
        found = self.arrays.to_host(vector, owned + self.size, name="kernel check")[owned:]
        judge(self.kernels["cells_collect"], found, given[owned:] / 2, self.arrays.precision)

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel of its own."""
        return dict(self.kernels)


class CondensedInTime(CondensedOperator):
    """Residual of trace and interior together, and their Newton step by static condensation.

    A vector is [owned trace | cell, dof of the interior]; only the interior has rates. With the residual (r, s) of
    interior and trace and the matrix [A C; B G] (shift times the mass matrix included), a step (v, w) solves
        K w = s - B A⁻¹ r,    v = A⁻¹ (r - C w),    K = G - B A⁻¹ C.
    A matrix that does not follow the states is condensed once for each shift.

    products: StateProducts, of any vectors.
    """

    shift = CHECK_SHIFT

    def __init__(self, discretization, arrays):
        super().__init__(discretization, arrays)
        self.states = CellStates(self)
        self.products = StateProducts(self)
        self.time = self._jacobian_time = 0.0
        self.right_side = arrays.zeros(max(1, self.dofmap.num_owned))
        # Copies of the state, its rates and its stabilization at the last linearization of a nonlinear physics.
        self._linearized: list = [None, None, None]
        self._newton, self._of_newton = None, -1  # the residual there, and the number of that linearization
        self._has_rates = False
        # Whether `right_side` is that of the last residual, and whether `state`, `interior` and rates are those of the
        # last linearization, of the last residual.
        self._is_eliminated = self._is_at_linearization = self.holds_residual = False
        self.fill_rates()

    def fill_rates(self) -> None:
        """Rates for the check of kernels, in the place of a state's own."""
        self._is_eliminated = self._is_at_linearization = self.holds_residual = False
        starts, disc = self.discretization.auxiliary.starts, self.discretization
        rows = self.aux_rows[starts[disc.physics.num_auxiliary] :, : disc.mesh.num_cells]
        rows[:] = np.random.default_rng(17).uniform(-1, 1, rows.shape)
        self.arrays.upload(self._aux, np.ascontiguousarray(self.aux_rows, dtype=self.arrays.real), "auxiliary")

    # Data and kernels ------------------------------------------------------------------------------------

    def _load_constants(self, values) -> None:
        super()._load_constants([*values, self.shift])

    def compile(self, matrices: bool = False) -> None:
        """Compile what residuals and steps need; with `matrices`, values of the assembled matrix are kept too."""
        super().compile(matrices)
        self.states.kernels  # noqa: B018

    def all_kernels(self):
        """Every kernel compiled so far, by name."""
        products = {f"{name}{'_transposed' * turned}": k for (name, turned), k in self.products.kernels.items()}
        return {**super().all_kernels(), **self.states.all_kernels(), **products}

    @property
    def state_size(self) -> int:
        """Owned values of a vector."""
        return self.dofmap.num_owned + self.states.size

    # What PETSc's callbacks use --------------------------------------------------------------------------

    def _place(self, x, t: float, u_t) -> None:
        """Take a state and its rates. Collective."""
        self.time, self._is_eliminated, self._is_at_linearization, self.holds_residual = t, False, False, True
        self.update_essential(self.state, t)
        self.state.keep(x)
        self.states.spread(x, self.states.interior, self.interior)
        self.states.spread(u_t, self.states.rates, self._aux)

    def residual(self, x, out, t: float = 0.0, u_t=None) -> None:
        """out = F(t, x, u_t) of trace and interior. Collective."""
        self.failure = ""  # of a linearization before, after which a step is tried again
        self._place(x, t, u_t)
        self._sum(out)

    def _sum(self, out) -> None:
        """out = F at the state. Collective."""
        self.local.sum(self.state, self.interior, self.time)
        self._sum_residual(out)
        self.states.collect(self.local.inner, out)

    def linearize(self, x, t: float = 0.0, u_t=None, shift: float = 0.0) -> None:
        """Condense at x. Collective. Raises SolveError, on all ranks, for a singular local problem."""
        self.linearizations += 1
        if shift != self.shift:
            self.shift = shift
            self._load_constants(self.constants[:-1])
        self._place(x, t, u_t)
        self._jacobian_time = t
        known = (shift, self.coefficients, t if self.discretization.reads_time else None) if self.is_linear else None
        if known is not None and known == self._matrix_of:
            return
        self._condense(self.state, self.interior, t, matrix=True, recovery=self.kept.buffer())
        self.local.keep_inverse()
        self._sum_residual(self.right_side)
        self._matrix_of, self._is_eliminated = known, True
        if not self.is_linear:
            self._keep_linearized(x, u_t)

    def keep_residual(self) -> None:
        """Keep the residual at the last linearization of a nonlinear physics, which eliminated it, if U is kept. A step
        of Newton's method takes no more; its cells are accurate next to the state, not in themselves. Collective."""
        if self.is_linear or not self.kept.is_kept:
            return
        self._newton = self._newton or self.arrays.empty(max(1, self.state_size))
        self._sum(self._newton)
        self._of_newton = self.linearizations

    def eliminates(self, b) -> bool:
        """True if b is the residual that was kept at the last linearization. Collective."""
        if not (self._is_eliminated and self._is_at_linearization and self._of_newton == self.linearizations):
            return False
        count, comm = self.state_size, self.discretization.mesh.comm
        squares = self.local.sums.of("condense_apart", count, b, self._newton)[0, :2] if count else np.zeros(2)
        apart, size = comm.allreduce(squares)
        return bool(apart <= SAME**2 * size)

    def _keep_linearized(self, x, u_t) -> None:
        """Copy the state, its rates and its stabilization, to which products may have to go back."""
        tau, size = self.stabilization, self.state_size
        given = [(x, size), (u_t, size), (tau and tau.buffer, tau and int(np.prod(tau.shape)))]
        for k, (buffer, count) in enumerate(given):
            if buffer is not None:
                self._linearized[k] = self._linearized[k] or self.arrays.empty(max(1, count))
                self.arrays.copy(buffer, self._linearized[k], count)
        self._has_rates, self._is_at_linearization = u_t is not None, True

    def linearized(self) -> tuple:
        """Trace, interior, time and stabilization of the last linearization; trace and interior may be any of a linear
        physics. Collective."""
        x, u_t, tau = self._linearized
        if not self.is_linear and not self._is_at_linearization:
            self._place(x, self._jacobian_time, u_t if self._has_rates else None)
            self._is_at_linearization, self.holds_residual = True, False
        return self.state, self.interior, self._jacobian_time, tau

    def eliminate(self, out) -> None:
        """out [owned] = s - B A⁻¹ r of the last residual. Collective."""
        if not self._is_eliminated:
            self.local.condense(self.state, self.interior, self.time)
            self._sum_residual(self.right_side)
            self._is_eliminated = True
        self.arrays.copy(self.right_side, out, self.dofmap.num_owned)

    def place_step(self, w, out) -> None:
        """The trace's part of a step in `out`, from w [owned]."""
        self.arrays.copy(w, out, self.dofmap.num_owned)

    def recover_step(self, minus_w, out) -> None:
        """The interior's part v of a step in `out`, from the trace's part, negative [owned]. Collective.

        Without U of the cells, A⁻¹ comes from the cells at the new trace: the same for linear physics.
        """
        arrays, count = self.arrays, self.dofmap.num_owned
        with stages.event("Recover"):
            if self.kept.is_kept:
                solution = self._recovered(minus_w)
            else:
                trace = arrays.empty(max(1, count))
                arrays.copy(self.state.owned, trace, count)
                self._add_to(count, count, minus_w, trace)
                self.local.condense(self.trace(trace, self.time), self.interior, self.time)
                solution, self._is_eliminated = self.local.solution, False
            self.states.collect(self.interior, out, solution)

    def _recovered(self, minus_w):
        """Buffer of the interior after the step: what its own residual makes of it, and U of the trace's step."""
        disc = self.discretization
        self.direction.use(minus_w)
        if self._particular is None:
            self._particular = self.arrays.zeros(max(1, disc.num_eliminated * disc.stride))
        self.kept.recover(self.direction, self.local.solution, self._particular)
        return self._particular

    def local_state(self, x, t: float = 0.0):
        """The interior [eliminated dof, stride] of a state, in a buffer that the next call changes."""
        self._is_eliminated = self._is_at_linearization = self.holds_residual = False
        self.states.spread(x, self.states.interior, self.interior)
        self.local._stabilize(self.trace(x, t), self.interior, t)
        return self.interior


class JointState:
    """The trace û, which the caller has, and the interior u of all cells beside it, here on the host.

    With the residual (r, s) of interior and trace and the matrix [A C; B G] at (u, û), a step (v, w) solves
        K w = s - B A⁻¹ r,    v = A⁻¹ (r - C w),    K = G - B A⁻¹ C,
    and leads to (u - v, û - w). No local problem is solved, so none need have a solution at the traces on the way.

    operator: CondensedOperator of a nonlinear physics.   interior [dof, cell].
    """

    def __init__(self, operator):
        self.op, self.disc, self.arrays = operator, operator.discretization, operator.arrays
        local, spec = operator.local, self.disc.condense_spec("condense_residual")
        local.kernels.update(kernels_of({"condense_residual": spec}, operator.device))
        if self.disc.options.check_kernels:
            with collectively(self.disc.mesh.comm):
                check_condensed(operator)
        self._recover = Kernel(self.disc.recover_spec(), operator.device)
        self._target = self.arrays.zeros(max(1, self.disc.num_eliminated * self.disc.stride))
        self.interior = read_interior(operator, operator.interior)

    def residual(self, x, interior: np.ndarray, out, t: float = 0.0) -> float:
        """out = the trace's part of the residual at (x, interior); gives the sum of squares of this rank's other part.

        Collective.
        """
        op = self.op
        write_interior(op, interior)
        op.local.sum(op.trace(x, t), op.interior, t)
        op._sum_residual(out)
        return float(np.sum(np.square(read_interior(op, op.local.inner))))

    @contextmanager
    def held(self):
        """In the block `linearize` of the operator condenses at `interior`."""
        write_interior(self.op, self.interior)
        self.op.holds_interior = True
        try:
            yield
        finally:
            self.op.holds_interior = False

    def condensed(self, out) -> None:
        """out = s - B A⁻¹ r of the last `linearize`. Collective."""
        self.op._sum_residual(out)

    def target(self, minus_w, t: float = 0.0) -> np.ndarray:
        """u - v [dof, cell] of the last `linearize` for the trace's part of a step, negative. Collective."""
        op, disc, local = self.op, self.disc, self.op.local
        op.direction.use(minus_w)
        matrices = self.arrays.empty(local.recovery_reals * padded(min(local.tile_cells, disc.mesh.num_cells)))

        def recover(_, first: int, count: int, batch: int) -> None:
            self._recover(
                disc.num_eliminated * count, count, first, disc.stride, op.dofmap.num_owned, op._dofs,
                op.direction.owned, op.direction.tail, batch, None, matrices, local.solution, self._target,
            )  # fmt: skip

        local.condense(op.state, op.interior, t, recover, matrices)
        local.release()
        return read_interior(self.op, self._target)


def read_interior(operator, buffer) -> np.ndarray:
    """Values [dof, cell] of this rank's cells in a buffer [dof, stride]."""
    disc = operator.discretization
    found = operator.arrays.to_host(buffer, (disc.num_eliminated, disc.stride), name="interior")
    return found[:, : disc.mesh.num_cells].astype(float)


def write_interior(operator, interior: np.ndarray) -> None:
    """Let local problems begin at an interior [dof, cell]."""
    disc, arrays = operator.discretization, operator.arrays
    values = np.zeros((disc.num_eliminated, disc.stride), arrays.real)
    values[:, : disc.mesh.num_cells] = interior
    operator.begin_at_interior()
    if values.size:
        arrays.upload(operator.interior, values, "interior")


def kept_interior(operator):
    """A copy of the interior in a buffer of its own, for `restore_interior` and `read_interior`."""
    arrays, count = operator.arrays, _size(operator)
    kept = arrays.empty(max(1, count))
    arrays.copy(operator.interior, kept, count)
    return kept


def restore_interior(operator, kept) -> None:
    """Let local problems begin at an interior that was kept."""
    operator.begin_at_interior()
    operator.arrays.copy(kept, operator.interior, _size(operator))


def _size(operator) -> int:
    return operator.discretization.num_eliminated * operator.discretization.stride
