"""The CG operator on a device: residual, Jacobian action, diagonal and matrices on buffers of owned values."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...device import Kernel, build_programs, kernels_of
from ...discretizations import CellField
from ...discretizations.base import cell_fastest, padded
from ...discretizations.integral_specs import cell_error_spec, cell_integral_spec
from ..base import DeviceOperator
from ..overlap import OUTER, element_cells, in_parts
from ..vectors import TailedVector
from .flux import ConsistentFlux
from .launch_shapes import fastest_on_ones
from .patch import PatchOperator


class CGOperator(DeviceOperator):
    """Kernels of a ContinuousGalerkin discretization bound to the buffers they work on.

    arrays: device arrays (also says device and precision).   dofmap: the discretization's numbering.
    All buffers of vectors hold this rank's owned values [num_owned] as `real`.
    """

    norms = ("L2", "H1")  # what the rows of `errors` are squares of

    def __init__(self, discretization, arrays):
        super().__init__(discretization, arrays)
        self.current, self.current_rate = TailedVector(self), TailedVector(self, is_rate=True)
        self.state, self.kept_rate, self.direction = (
            TailedVector(self),
            TailedVector(self, is_rate=True),
            TailedVector(self),
        )
        self.rate = self.kept_rate
        self.time, self.shift = 0.0, 0.0
        self._matrix_buffers: dict = {}
        self._fluxes: dict[str | None, ConsistentFlux] = {}
        self._upload()

    def _upload(self) -> None:
        disc, to_device = self.discretization, self.arrays.to_device
        self._facets = to_device(disc.facets, "facets") if disc.num_facets else None
        self._element = self.arrays.empty(disc.num_dofs * (disc.stride + (disc.facet_stride if disc.num_facets else 0)))

    @property
    def _essential_vectors(self):
        return self.current, self.current_rate, self.state, self.kept_rate

    # Kernels, compiled at first use ----------------------------------------------------------------------

    def compile(self, matrices: bool = False, products: bool = True) -> None:
        """Compile what residuals and products need, and the element matrices if asked for. Not collective."""
        build_programs(self.device, self._first_specs(matrices, products))
        if products:
            self.kernels, self.patches and self.patches.kernels  # noqa: B018
        if matrices:
            self.matrix_kernels  # noqa: B018

    def _first_specs(self, matrices: bool, products: bool) -> list:
        """Specs whose programs are worth compiling side by side."""
        disc = self.discretization
        found = [*disc.element_specs().values(), disc.assemble_spec()] if products else []
        return found + (list(disc.matrix_specs().values()) if matrices else [])

    @cached_property
    def patches(self) -> PatchOperator | None:
        return PatchOperator(self) if self.discretization.variant == "patch" else None

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`cg_residual`, `cg_action`, `assemble`, and those of the boundary where there are natural conditions."""
        disc = self.discretization
        specs = {**disc.element_specs(), "assemble": disc.assemble_spec()}
        if disc.physics.natural:
            specs |= disc.facet_specs()
        shapes = disc.element_shapes()
        found = {name: fastest_on_ones(self, choices, self._try_cells) for name, choices in shapes.items()}
        return kernels_of({name: spec for name, spec in specs.items() if name not in found}, self.device) | found

    @cached_property
    def matrix_kernels(self) -> dict[str, Kernel]:
        """`cg_matrix` and `cg_diagonal`."""
        return kernels_of(self.discretization.matrix_specs(), self.device)

    @property
    def flops(self) -> int:
        """Flops of this rank's residual without the physics; a product does twice as many (state and direction)."""
        return self.discretization.mesh.num_cells * self.discretization.flops_per_cell

    @property
    def matrix_flops(self) -> int:
        """Flops of this rank's element matrices without the physics."""
        return self.discretization.mesh.num_cells * self.discretization.flops_per_matrix

    @property
    def diagonal_flops(self) -> int:
        """Flops of the diagonals of this rank's element matrices without the physics."""
        return self.discretization.mesh.num_cells * self.discretization.flops_per_diagonal

    @property
    def has_matrices(self) -> bool:
        """Whether the kernels of element matrices are compiled."""
        return "matrix_kernels" in self.__dict__

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel compiled so far, by name."""
        found = dict(self.kernels)
        for group in (self.has_matrices and self.matrix_kernels, self.patches and self.patches.kernels):
            found |= group or {}
        return found

    @cached_property
    def error_kernel(self) -> Kernel:
        return Kernel(cell_error_spec(self.discretization), self.device)

    def integral_kernel(self, objective) -> Kernel:
        """What `integrals` takes for an Objective. Not collective."""
        return Kernel(cell_integral_spec(self.discretization, objective), self.device)

    @cached_property
    def _flux_kernel(self) -> Kernel:
        return Kernel(self.discretization.flux_spec(), self.device)

    @property
    def main_kernel(self) -> Kernel:
        """The kernel whose launch shape tells most."""
        return self.kernels["cg_residual"]

    @cached_property
    def rest(self) -> TailedVector:
        """The rate u_t = 0 of a steady problem."""
        vector = TailedVector(self, is_rate=True)
        if self.discretization.physics.uses_time_derivative:
            vector.owned = self.arrays.zeros(max(1, self.dofmap.num_owned))
        return vector

    # Vectors ---------------------------------------------------------------------------------------------

    def arguments(self, kernel: Kernel, count: int, state=None, rate=None, du=None, t=None) -> tuple:
        """Arguments that all CG kernels share (CG_ARGUMENTS in cg_point.clh); count: cells or facets.

        state, rate: TailedVectors, those of `linearize` by default; a rate that is not set is not read by the kernels.
        """
        disc, state, rate = self.discretization, state or self.state, rate or self.rate
        du = du or state
        return (
            count, disc.stride, self.dofmap.num_owned, float(self.time if t is None else t), float(self.shift),
            self._constants,
            self._dofs, self._nodes, self._cell_nodes, None, self._aux, self._tables(kernel.spec.name),
            state.owned, state.tail, rate.owned, rate.tail, du.owned, du.tail,
        )  # fmt: skip

    def residual(self, u, out, t: float = 0.0, u_t=None) -> None:
        """out = F(t, u, u_t); all are buffers of owned values. Collective."""
        self.update_essential(self.current, t)
        rate = self.rest if u_t is None else self.current_rate
        if u_t is not None:
            self.update_essential(rate, t)
            rate.use(u_t)
        self._sum("residual", self.current, u, out, state=self.current, rate=rate, t=t)

    def linearize(self, u, t: float = 0.0, u_t=None, shift: float = 0.0) -> None:
        """Keep the state at which `action`, `diagonal` and `matrices` differentiate. Collective."""
        self.time, self.shift = t, shift
        self.linearizations += 1
        self.update_essential(self.state, t)
        self.state.keep(u)
        self.rate = self.rest if u_t is None else self.kept_rate
        if u_t is not None:
            self.update_essential(self.rate, t)
            self.rate.keep(u_t)

    def action(self, du, out) -> None:
        """out = J du at the state of `linearize`. Collective."""
        self._sum("action", self.direction, du, out, du=self.direction)

    @cached_property
    def _transposed_kernels(self) -> dict[str, Kernel]:
        return kernels_of(self.discretization.transposed_specs(), self.device)

    def transposed(self, w, out) -> None:
        """out = Jᵀ w at the state of `linearize`. Collective."""
        kernels = self._transposed_kernels

        def run(part):
            self._launch_cells(kernels["cg_transposed"], self._element, part, du=self.direction)
            if part in (None, OUTER) and self.discretization.num_facets:
                self._launch_facets(kernels["cg_facet_transposed"], self._element, du=self.direction)
            self.assemble(self._element, out, part)

        in_parts(self.direction, w, run, out, self.ghost_sums)

    def data_action(self, out) -> None:
        """out = J d at the state of `linearize`, where d is the essential values alone. Collective."""
        zero = self.arrays.zeros(max(1, self.dofmap.num_owned))
        self.update_essential(self.direction, self.time)
        self.action(zero, out)
        self.arrays.fill(self.direction.tail)
        self.direction.essential_time = None

    def diagonal(self, out) -> None:
        """out = diagonal of J. Collective."""
        self.run_columns("cg_diagonal", self._element)
        self.run_facets("cg_facet_diagonal", self._element, columns=self.discretization.num_dofs)
        self.assemble(self._element, out)
        self.halo.reverse_add(self.ghost_sums, out)

    def matrix_buffers(self) -> tuple:
        """Buffers of element matrices [dof, dof, stride] of cells, and of facets, None if there are none."""
        disc, facets = self.discretization, None
        square = disc.num_dofs**2
        cells = self._matrix_buffer("cells", square * disc.stride)
        self.run_columns("cg_matrix", cells)
        if disc.num_facets:
            facets = self._matrix_buffer("facets", square * disc.facet_stride)
            self.run_facets("cg_facet_matrix", facets, first=0, columns=disc.num_dofs)
        return cells, facets

    def matrices(self) -> np.ndarray:
        """Element matrices of cells, then of facets, flat: the values for `matrix_numbers`."""
        disc, (cells, facets) = self.discretization, self.matrix_buffers()
        square = disc.num_dofs**2
        parts = [self.arrays.to_host(cells, square * disc.stride, name="matrices")]
        if facets is not None:
            parts.append(self.arrays.to_host(facets, square * disc.facet_stride, name="matrices"))
        return np.concatenate(parts)

    def errors(self, u, t: float) -> np.ndarray:
        """Squared errors [2, component] over this rank's cells: L2, then the gradient's. Collective."""
        return self.integrals(self.error_kernel, u, t).sum(axis=1).reshape(2, -1)

    def integrals(self, kernel: Kernel, u, t: float) -> np.ndarray:
        """Integrals [component, cell] of a pointwise function over this rank's cells. Collective."""
        disc = self.discretization
        shape = (kernel.spec.macros["NOBJ"], disc.stride)
        self.update_essential(self.current, t)
        self.current.use(u)
        sums = self.arrays.zeros(int(np.prod(shape)))
        kernel(disc.mesh.num_cells, *self.arguments(kernel, disc.mesh.num_cells, self.current, t=t), sums)
        return self.arrays.to_host(sums, shape, name="integrals")[:, : disc.mesh.num_cells].astype(float)

    def flux(self, label: str, u, t: float, side: str | None = None) -> np.ndarray:
        """The flux of the scheme through the facets of a named boundary [component], as the cells of a region see it.
        It balances the sources at a steady solution, those of the region on all of its facets. Collective."""
        if side not in self._fluxes:
            self._fluxes[side] = ConsistentFlux(self, self._flux_kernel, side)
        return self._fluxes[side](label, u, t)

    def boundary_integrals(self, kernel: Kernel, label: str, u, t: float, side: str | None = None) -> np.ndarray:
        """Integrals [component, facet] of a pointwise function over this rank's facets of a named boundary, of u and
        its gradient in the cells, those of a region. Collective."""
        disc, rows = self.discretization, kernel.spec.macros["NOBJ"]
        cells, local = disc.mesh.boundary_facets(label, side is not None, side)
        self.update_essential(self.current, t)
        self.current.use(u)
        self.update_essential(self.rest, t)
        stride, count = padded(len(cells)), len(cells)
        facets = self.arrays.to_device(cell_fastest(np.stack([cells, local, 0 * local], axis=1), stride), "facets")
        out = self.arrays.zeros(rows * stride)
        kernel(count, *self.arguments(kernel, count, self.current, self.rest, t=t), stride, 0, facets, out)
        return self.arrays.to_host(out, (rows, stride), name="boundary")[:, :count].astype(float)

    def cell_fields(self, u, t: float) -> list[CellField]:
        """The fields of a vector in this rank's cells, essential values included. Collective."""
        values = self.values(u, t)[self.dofmap.compact[self.dofmap.cell_dofs]]
        return [
            CellField(
                s.name,
                s.element,
                values[:, s.first_dof : s.first_dof + s.num_dofs].reshape(-1, s.element.num_basis, s.components),
            )
            for s in self.discretization.spaces
        ]

    def set_auxiliary(self, name: str, values: np.ndarray) -> None:
        super().set_auxiliary(name, values)
        if vars(self).get("patches") is not None:
            self.patches.load_auxiliary()

    # Steps -----------------------------------------------------------------------------------------------

    def run_cells(self, name: str, out, part: int | None = None, **where) -> None:
        """Launch an element kernel into `out` [dof, stride], for a part of the cells; `where`: see `arguments`."""
        self._launch_cells(self.kernels[name], out, part, **where)

    def _launch_cells(self, kernel: Kernel, out, part: int | None = None, **where) -> None:
        disc = self.discretization
        cells, items = disc.cells_of_group(kernel.spec)
        ends = element_cells(part, disc.mesh.num_inner, disc.mesh.num_cells, cells, self.device)
        first, last = (end // cells * items for end in ends)
        kernel.of_part(part)(last, *self.arguments(kernel, disc.mesh.num_cells, **where), out, first=first)

    def _try_cells(self, kernel: Kernel, out, **where) -> None:
        self._launch_cells(kernel, self._element, **where)  # element vectors are longer than `out`

    def run_columns(self, name: str, out, **where) -> None:
        """Launch `cg_matrix` or `cg_diagonal` into `out`; `where`: see `arguments`."""
        disc, kernel = self.discretization, self.matrix_kernels[name]
        kernel(disc.work_items(kernel.spec), *self.arguments(kernel, disc.mesh.num_cells, **where), out)

    def run_facets(self, name: str, out, first: int | None = None, columns: int = 1, **where) -> None:
        """Launch a boundary kernel into `out` from `first` on (default: behind the cells' rows), if there are any."""
        if self.discretization.num_facets:
            self._launch_facets(self.kernels[name], out, first, columns, **where)

    def _launch_facets(self, kernel: Kernel, out, first: int | None = None, columns: int = 1, **where) -> None:
        disc = self.discretization
        first = disc.num_dofs * disc.stride if first is None else first
        items = disc.num_facets if columns == 1 else columns * disc.facet_stride
        kernel(items, *self.arguments(kernel, disc.num_facets, **where), disc.facet_stride, first, self._facets, out)

    def _sum(self, what: str, vector: TailedVector, given, out, **where) -> None:
        """out = sum over all ranks' cells and facets of their `residual` or `action`; `given` are the owned values of
        `vector`. Collective."""
        local = self.sum_elements if self.patches is None else self.patches.sum

        def run(part):
            local(what, out, part, **where)

        in_parts(vector, given, run, out, self.ghost_sums)

    def sum_elements(self, what: str, out, part: int | None = None, **where) -> None:
        """out, and the ghost sums: this rank's cells and facets, by element vectors."""
        self.run_cells(f"cg_{what}", self._element, part, **where)
        if part in (None, OUTER):
            self.run_facets(f"cg_facet_{what}", self._element, **where)
        self.assemble(self._element, out, part)

    def _matrix_buffer(self, name: str, count: int):
        if name not in self._matrix_buffers:
            self._matrix_buffers[name] = self.arrays.zeros(count)  # kernels leave out padding, which the host reads
        return self._matrix_buffers[name]
