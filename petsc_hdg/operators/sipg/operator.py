"""The interior penalty operator on a device: volume and flux kernels, penalties, cell blocks and couplings."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from mpi4py.MPI import MAX, MIN

from ...device import Kernel, kernels_of
from ...discretizations.base import cell_fastest, padded
from ...discretizations.sipg.neighbours import facets_of
from ...errors import OptionError, collectively
from ..facet_numbers import FacetNumbers
from ..primal import PrimalOperator
from .check import check_diagonal
from .passes import AffinePass, AffineSimplexPass, FusedPass


class SIPGOperator(PrimalOperator):
    """Kernels of an InteriorPenalty discretization bound to the buffers they work on.

    Penalties of linear physics belong to its data; those of nonlinear physics are found at the first state after
    `restart` and follow where `suits` finds that they do not suit.

    multiplies: whether kernels compute products, not a matrix
    """

    multiplies = True

    def __init__(self, discretization, arrays, source=None):
        super().__init__(discretization, arrays, source)
        disc, kinds = discretization, discretization.neighbours.kinds
        self.neighbour = self._numbers("neighbour", disc.neighbour_rows, "neighbours")
        self.code = self._numbers("code", lambda: disc.code_rows(walls=True), "neighbours")
        self.kinds = arrays.to_device(kinds if kinds.size else np.zeros(1, np.int32), "boundary kinds")
        self.penalty = SIPGPenalty(self)
        self.fused, self.fast = fused_pass(self), fast_pass(self)

    @property
    def product(self) -> str:
        """Name of the kernels that compute a product."""
        return "affine" if self.fast else "fused" if self.fused else "split"

    # Kernels, compiled at first use ----------------------------------------------------------------------

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`assemble`, `sipg_penalty`; without a fused pass `cg_residual`, `cg_action` and `sipg_facet_` of both."""
        disc = self.discretization
        specs = {"assemble": disc.assemble_spec()}
        if self.fused is None:
            plain = disc.plain_specs()
            specs |= disc.volume_specs() | {n: plain[n] for n in ("sipg_facet_residual", "sipg_facet_action")}
        return kernels_of(self.needed(specs), self.device) | ({} if self.source else self.penalty_kernels)

    @cached_property
    def penalty_kernels(self) -> dict[str, Kernel]:
        """`sipg_penalty`, and `sipg_least` where penalties see the least diffusivity of cells."""
        return kernels_of(self.discretization.penalty_specs(), self.device)

    def make_ready(self) -> None:
        if self.multiplies and not self.discretization.physics.is_linear:
            self.block_kernels  # noqa: B018

    @property
    def _passes(self) -> list:
        return [p for p in (self.fused, self.fast if self.multiplies else None) if p is not None]

    def _compile_products(self) -> None:
        self.kernels  # noqa: B018
        for fused in self._passes:
            fused.kernels  # noqa: B018

    def compile_variants(self) -> None:
        """Compile what other meshes would take, too. Not collective."""
        if hasattr(self.fast, "compile_variants"):
            self.fast.compile_variants()

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel compiled so far, by name."""
        found = super().all_kernels()
        found |= vars(self).get("diagonal_kernels", {})
        for fused in self._passes:
            found |= fused.kernels
        return found

    @property
    def main_kernel(self) -> Kernel:
        """The kernel whose launch shape tells most."""
        return self.kernels["cg_residual"] if self.fused is None else self.fused.kernels["sipg_residual"]

    @cached_property
    def matrix_kernels(self) -> dict[str, Kernel]:
        """`sipg_facet_coupling`, and where products do not give blocks `cg_matrix` and `sipg_facet_matrix`."""
        plain, names = self.discretization.plain_specs(), ["sipg_facet_coupling"]
        if not self.blocks_by_products:
            plain, names = plain | self.discretization.matrix_specs(), ["cg_matrix", "sipg_facet_matrix", *names]
        return kernels_of({name: plain[name] for name in names if name in plain}, self.device)

    @property
    def blocks_by_products(self) -> bool:
        """True if columns of diagonal blocks are products with own values alone, cheap by sum factorization."""
        return self.fused is not None and self.discretization.is_tensor

    @cached_property
    def block_kernels(self) -> dict[str, Kernel]:
        """`column`, `turn`, `invert` and `apply` of diagonal blocks; a copy has inverses in its source's precision."""
        inverse = self.source.arrays.precision if self.source else ""
        return kernels_of(self.discretization.cell_block_specs(inverse), self.device)

    @cached_property
    def diagonal_kernels(self) -> dict[str, Kernel]:
        """`cg_diagonal` and `sipg_facet_diagonal`, compiled and checked where they are first asked for. Collective."""
        disc = self.discretization
        specs = {**disc.matrix_specs(), **disc.plain_specs()}
        names = [name for name in ("cg_diagonal", "sipg_facet_diagonal") if name in specs]
        found = kernels_of({name: specs[name] for name in names}, self.device)
        self.__dict__["diagonal_kernels"] = found  # which the check takes
        if disc.options.check_kernels:
            with collectively(disc.mesh.comm):
                check_diagonal(self)
        return found

    # Data that may change between solves -----------------------------------------------------------------

    def set_constants(self, values) -> None:
        super().set_constants(values)
        self.restart()

    def set_auxiliary(self, name: str, *values: np.ndarray) -> None:
        """Replace an auxiliary field by values [cell, row, component] of owned cells. Collective."""
        super().set_auxiliary(name, self.discretization.neighbours.extended(np.asarray(values[0], dtype=float)))
        self.restart()

    @property
    def follows_solution(self) -> bool:
        """True if penalties depend on the solution."""
        return not self.discretization.physics.is_linear

    def restart(self) -> None:
        """Forget the penalties: the next residual or linearization finds them anew."""
        self.penalty.is_known = False

    def strengthen(self, factor: float) -> None:
        if self.follows_solution and factor != self.penalty.factor:
            self.penalty.factor = factor
            self.restart()

    def suits(self, u) -> bool:
        """Return True if the penalties suit a state u; otherwise update them. Collective."""
        return self.penalty.serve(self.current.use(u), self.rest.use(self._zero), self.time)

    def penalties(self) -> np.ndarray:
        """Penalties [component, facet, owned cell] on the host, 0 where a facet has no term."""
        return self.penalty.owned()

    def details(self, complete: bool = True) -> list[str]:
        """The scheme, the penalty's formula, and its range once it is known. Collective."""
        disc = self.discretization
        lines = [f"  interior penalty, theta {disc.theta}; product: {self.product}; penalty {disc.penalty_formula}"]
        if complete and disc.physics.is_linear:
            self.penalty.ensure(self.current.use(self._zero), self.rest.use(self._zero), 0.0)
        low, high = self.penalty.range()
        return [*lines, f"  penalty from {low:.4g} to {high:.4g}"] if high > 0 else lines

    @cached_property
    def _zero(self):
        return self.arrays.zeros(max(1, self.dofmap.num_owned))

    # Vectors ---------------------------------------------------------------------------------------------

    def linearize(self, u, t: float = 0.0, u_t=None, shift: float = 0.0) -> None:
        """Keep the state at which `action`, `diagonal` and `matrices` differentiate. Collective."""
        super().linearize(u, t, u_t, shift)
        if self.discretization.physics.is_linear:
            self.penalty.update(self.state, self.rate, t)
        else:
            self.penalty.ensure(self.state, self.rate, t)
        if self.fast is not None and self.multiplies:
            self.fast.update()

    def follow(self) -> None:
        super().follow()
        mine, theirs = self.penalty, self.source.penalty
        theirs.arrays.convert(theirs.buffer, mine.buffer, mine.size, mine.arrays)
        mine.is_known = True
        if self.fast is not None:
            self.fast.update()

    def residual(self, u, out, t: float = 0.0, u_t=None) -> None:
        """out = F(t, u, u_t). Collective."""
        rate = self._at_rest if u_t is None else self.current_rate.use(u_t)
        if not self.penalty.is_known:
            self.penalty.update(self.current.use(u), rate, t)
        self._sum_sides("residual", self.fused, self.current, u, out, state=self.current, rate=rate, t=t)

    def action(self, du, out) -> None:
        """out = J du at the state of `linearize`; inner cells are computed while the halo is under way. Collective."""
        self._sum_sides("action", self.fast or self.fused, self.direction, du, out, du=self.direction)

    def transposed(self, w, out) -> None:
        """out = Jᵀ w at the state of `linearize`. Collective."""
        self.direction.begin(w).end()
        self.fill_elements("transposed", du=self.direction)
        self.run_around(self._transposed_kernels["sipg_facet_transposed"], self._element, du=self.direction)
        self.assemble(self._element, out)

    def fill_elements(self, what: str, part: int | None = None, **where) -> None:
        """Element vectors of cells without their facets: `residual`, `action`, `transposed` or `diagonal`."""
        kernels = self._transposed_kernels if what == "transposed" else self.kernels
        kernels = self.diagonal_kernels if what == "diagonal" else kernels
        self._launch_cells(kernels[f"cg_{what}"], self._element, part, **where)

    def _sum_sides(self, what: str, runner, vector, given, out, **where) -> None:
        """out = `residual` or `action`; `given` are the owned values of `vector`. What needs no cells of other ranks is
        computed while these are under way. Collective."""
        vector.begin(given)
        if runner is None:
            self.fill_elements(what, **where)
            vector.end()
            self.run_around(self.kernels[f"sipg_facet_{what}"], self._element, **where)
            self.assemble(self._element, out)
            return
        if self.halo.alone or not self.halo.plan.active:
            vector.end()
            runner.run(what, out, None, **where)
            return
        runner.run(what, out, 0, **where)
        with self.device.beside():
            vector.end()
            runner.run(what, out, 1, **where)

    @property
    def _at_rest(self):
        """The rate of a steady problem: no ghosts to fetch, all are zero."""
        self.rest.owned = self._zero
        return self.rest

    def diagonal(self, out) -> None:
        """out = diagonal of J. Collective."""
        self.fill_elements("diagonal")
        self.run_around(self.diagonal_kernels["sipg_facet_diagonal"], self._element)
        self.assemble(self._element, out)

    def cell_blocks(self):
        """Buffer of the diagonal blocks [test dof, trial dof, stride] of J, one a cell."""
        disc = self.discretization
        blocks, cells = self._matrix_buffer("cells", disc.num_dofs**2 * disc.stride), disc.mesh.num_cells
        if not self.blocks_by_products:
            self.run_columns("cg_matrix", blocks)
            self.run_around(self.matrix_kernels["sipg_facet_matrix"], blocks)
            return blocks
        own, product = (self._matrix_buffer(name, disc.num_dofs * cells) for name in ("own", "product"))
        kernel, stride, others = self.block_kernels["column"], disc.stride, self._at_rest
        for j in range(-1, disc.num_dofs):
            if j >= 0:
                self.fused.run("action", product, None, du=others, own=own)
            kernel(disc.num_dofs * stride if cells else 0, cells, stride, j, product, blocks, own)
        return blocks

    def matrix_buffers(self) -> tuple:
        """Buffers of cell blocks [dof, dof, stride] and of couplings [dof, dof, padded side]."""
        disc, count = self.discretization, self.discretization.sides.shape[1]
        couplings = self._matrix_buffer("facets", disc.num_dofs**2 * padded(count))
        kernel = self.matrix_kernels["sipg_facet_coupling"]
        kernel.launch(count, self.arguments(kernel, count, out=couplings))
        return self._blocks_of_cells(), couplings

    @cached_property
    def _sides(self):
        """Buffer of the discretization's `sides` [2, padded]."""
        sides = self.discretization.sides
        return self.arrays.to_device(cell_fastest(np.ascontiguousarray(sides.T), padded(sides.shape[1])), "facets")

    def _blocks_of_cells(self):
        return self.cell_blocks()

    def flux(self, label: str, u, t: float, side: str | None = None) -> np.ndarray:
        """The numerical flux ∫ f1·n over the facets of a named boundary [component] out of their cells, with `side` of
        a region's, which balances the sources to rounding. Collective. Raises MeshError for facets inside without."""
        disc, components = self.discretization, self.discretization.physics.num_components
        cells, local = disc.mesh.boundary_facets(label, side is not None, side)
        facets = np.stack([cells, facets_of(disc.mesh)[1][cells] + local], axis=1)
        self.current.use(u)
        self.penalty.ensure(self.current, self.rest, t)
        rows = self.over_facets(self._flux_kernel, facets, components, self.current, self.rest, t=t)
        return disc.mesh.comm.allreduce(rows.sum(axis=1))

    # Steps -----------------------------------------------------------------------------------------------

    def run_around(self, kernel: Kernel, out, **where) -> None:
        """Launch a kernel that goes around the facets of cells; `where`: see `arguments`."""
        cells = self.discretization.mesh.num_cells
        kernel.launch(cells, self.arguments(kernel, cells, out=out, **where))

    def _makers(self, kernel: Kernel) -> dict:
        """As in PrimalOperator, with what lies behind facets (discretizations/sipg/arguments.py)."""
        return super()._makers(kernel) | {
            "neighbour": lambda: self.neighbour,
            "code": lambda: self.code,
            "sigma_": lambda: self.penalty.buffer,
            "kinds": lambda: self.kinds,
            "num_ghosts": lambda: self.discretization.neighbours.num_ghosts,
            "facets": lambda: self._sides,
            "facet_stride": lambda: padded(self.discretization.sides.shape[1]),
        }


FAST = (AffinePass, AffineSimplexPass)


def fused_pass(operator) -> FusedPass | None:
    """One pass over the cells for any physics, if it is wanted and a cell fits local memory. Raises OptionError."""
    disc = operator.discretization
    options = disc.options
    if options.sipg_kernel == "fused" and not disc.has_fused:
        raise OptionError(
            f"-{options.prefix}sipg_kernel fused integrates {disc.mesh.cell} cells at the nodes that all fields share; "
            f"leave -{options.prefix}fe_quadrature_degree and degree_offset out or give "
            f"-{options.prefix}sipg_kernel split"
        )
    if options.sipg_kernel not in ("auto", "affine", "fused") or not disc.has_fused:
        return None
    try:
        disc.fused_specs()
    except OptionError:
        if options.sipg_kernel == "fused":
            raise
        return None
    return FusedPass(operator)


def fast_pass(operator) -> FusedPass | None:
    """A pass for constant coefficients on affine cells, if it is wanted and fits on all ranks. Raises OptionError.

    Collective.
    """
    disc = operator.discretization
    options = disc.options
    if options.sipg_kernel not in ("auto", "affine"):
        return None
    votes = disc.mesh.comm.allgather([kind.matches(disc) for kind in FAST])
    found = next((kind for k, kind in enumerate(FAST) if all(vote[k] for vote in votes)), None)
    if found is None and options.sipg_kernel == "affine":
        raise OptionError(
            f"-{options.prefix}sipg_kernel affine takes one component, constant coefficients, and rectangles, boxes or "
            f"straight simplices; give -{options.prefix}sipg_kernel auto"
        )
    return found and found(operator)


class SIPGPenalty(FacetNumbers):
    """The penalties [component, facet of the cell, stride] of an interior penalty operator, and the launch that finds
    them: 0 where a facet has no term, negative where the diffusivity is.
    """

    keeps_larger = True

    def __init__(self, operator):
        disc = operator.discretization
        shape = disc.physics.num_components, disc.num_facets_of_cell, disc.stride
        super().__init__(operator, shape, components_first=True)
        self.factor = 1.0  # of what the formula gives

    @cached_property
    def _side_numbers(self):
        """Buffer [facet of the cell, stride] of the discretization's `side_numbers`, or None."""
        if self.disc.side_numbers is None:
            return None
        return self.arrays.to_device(cell_fastest(self.disc.side_numbers.T, self.disc.stride), "penalties")

    @cached_property
    def least(self):
        """Buffer [component, stride] of the least trace of the diffusivity in extended cells, or None."""
        disc = self.disc
        return self.arrays.zeros(disc.physics.num_components * disc.stride) if disc.sees_least else None

    def update(self, vector, rate, t: float, alone: bool = False) -> None:
        """Find the penalties of a state. Collective, unless `alone`: each base cell of polytopes then sees the least
        diffusivity of its own."""
        op, disc, kernels = self.op, self.disc, self.op.penalty_kernels
        cells, given = disc.mesh.num_cells, {"numbers": self._side_numbers, "least": self.least}
        if disc.sees_least:
            extended, kernel = cells + disc.neighbours.num_ghosts, kernels["sipg_least"]
            kernel.launch(extended, op.arguments(kernel, extended, vector, rate, t=t, **given))
            if disc.element_of_cell is not None and not alone:
                values = disc.least_of_elements(self.least_values()[:, :cells])
                self.arrays.upload(self.least, cell_fastest(values.T, disc.stride), "penalties")
        kernel = kernels["sipg_penalty"]
        kernel.launch(cells, op.arguments(kernel, cells, vector, rate, t=t, **given))
        if self.factor != 1:
            self.write(self.factor * self.values())
        self.is_known = True

    def least_values(self) -> np.ndarray:
        """The least traces [component, stride] on the host."""
        return self.arrays.to_host(self.least, (self.disc.physics.num_components, self.disc.stride), name="penalties")

    def owned(self) -> np.ndarray:
        """Penalties of owned cells [component, facet of the cell, cell] on the host."""
        return self.values()[:, :, : self.disc.mesh.num_cells]

    def range(self) -> tuple[float, float]:
        """The least penalty of a facet and the largest, of all ranks; the largest is 0 if none is known. Collective."""
        comm = self.disc.mesh.comm
        found = np.abs(self.owned()) if self.is_known else np.zeros(0)
        low = comm.allreduce(found[found > 0].min(initial=np.inf), MIN)
        return low, comm.allreduce(found.max(initial=0.0), MAX)
