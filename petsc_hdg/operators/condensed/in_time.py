"""Condensed schemes in time: the interior of cells is part of the state, and eliminated in each linear solve."""

from __future__ import annotations

import numpy as np

from ... import stages
from .cell_states import CellStates
from .operator import CondensedOperator
from .state_products import StateProducts

CHECK_SHIFT = 1.3  # before the first linearization, so that kernels are checked with one


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
        self._known: tuple | None = None  # what the matrix belongs to, where that is no state
        # Copies of the state, its rates and its stabilization at the last linearization of a nonlinear physics.
        self._linearized: list = [None, None, None]
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

    def _set_shift(self, shift: float) -> None:
        if shift != self.shift:
            self.shift = shift
            self._load_constants(self.constants[:-1])

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
        self._place(x, t, u_t)
        self.local.sum(self.state, self.interior, t)
        self._sum_residual(out)
        self.states.collect(self.local.inner, out)

    def linearize(self, x, t: float = 0.0, u_t=None, shift: float = 0.0) -> None:
        """Condense at x. Collective. Raises SolveError, on all ranks, for a singular local problem."""
        self.linearizations += 1
        self._set_shift(shift)
        self._place(x, t, u_t)
        self._jacobian_time = t
        known = (shift, self.coefficients, t if self.discretization.reads_time else None) if self.is_linear else None
        if known is not None and known == self._known:
            return
        self._condense(self.state, self.interior, t, matrix=True, recovery=self.kept.buffer())
        self._sum_residual(self.right_side)
        self._known, self._is_eliminated = known, True
        if not self.is_linear:
            self._keep_linearized(x, u_t)

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

    def forget_elimination(self) -> None:
        """Make the next `eliminate` condense again, after other results were written to the local stage's buffers."""
        self._is_eliminated = False

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
            if self.is_linear and self.kept.is_kept:
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
