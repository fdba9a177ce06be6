"""Products of the Jacobian of trace and interior with any vectors, and its condensation for any right-hand sides."""

from __future__ import annotations

from ...device import Kernel
from ...discretizations.base import padded
from ...errors import collectively
from .check import check_products


class StateProducts:
    """[A C; B G] at the state of the last linearization, or its transpose, from the same text at each point.

    A right-hand side (r, s) has the solution (v, w) with
        K w = s - B A⁻¹ r,    v = A⁻¹ (r - C w),    K = G - B A⁻¹ C,
    and with the transpose the same of [Aᵀ Bᵀ; Cᵀ Gᵀ], whose condensed matrix is Kᵀ. Vectors: [owned trace | cell, dof].

    operator: CondensedInTime.   kernels: `condense_product` and `condense_given`, by name and by whether transposed.
    """

    def __init__(self, operator):
        self.op, self.disc, self.arrays = operator, operator.discretization, operator.arrays
        size = max(1, self.disc.num_eliminated * max(1, self.disc.stride))
        self._interior, self._given = (self.arrays.zeros(size) for _ in range(2))
        self._scratch = None
        self.kernels: dict[tuple[str, bool], Kernel] = {}

    def compile(self, transposed: bool) -> None:
        """Compile, and check at first use on a device. Collective."""
        if ("condense_given", transposed) in self.kernels:
            return
        for name in ("condense_product", "condense_given"):
            self.kernels[name, transposed] = Kernel(self.disc.product_spec(name, transposed), self.op.device)
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
        kernel = self.kernels["condense_product", transposed]
        self.op.local.launch(kernel, cells, *state, **given, residual=residual, inner=inner)

    def launch_given(self, transposed: bool, cells: tuple[int, int], state, given, residual, solution) -> None:
        """A⁻¹ r, and -B A⁻¹ r as element vectors of the trace. Not collective."""
        name, local = "condense_given", self.op.local
        entries = self.disc.shape_of(name).scratch_entries
        if entries and self._scratch is None:
            self._scratch = self.arrays.empty(entries * padded(local.tile_cells))
        given = {"scratch": self._scratch, "given": given, "residual": residual, "solution": solution}
        local.launch(self.kernels[name, transposed], cells, *state, **given)

    def _multiply(self, trace, transposed: bool) -> None:
        """Element vectors of the product with a trace [owned] and the interior that `_interior` holds. Collective."""
        op, cells = self.op, (0, self.disc.mesh.num_cells)
        vector = op.direction.use(trace), self._interior
        self.launch_product(transposed, cells, op.linearized(), vector, op.local.residual, op.local.inner)

    def _solve_cells(self, transposed: bool) -> None:
        """A⁻¹ of `_given` in the solution of the local stage, and -B A⁻¹ of it in its residual. Collective."""
        state, local = self.op.linearized(), self.op.local
        self.op.forget_elimination()
        for first, count in local.tiles():
            self.launch_given(transposed, (first, count), state, self._given, local.residual, local.solution)

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
