"""The CG operator on a device: residual, Jacobian action, diagonal and matrices on buffers of owned values."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...device import Kernel, kernels_of
from ..check import fastest_on_ones
from ..overlap import OUTER, in_parts
from ..primal import PrimalOperator
from ..vectors import TailedVector
from .flux import ConsistentFlux
from .patch import PatchOperator


class CGOperator(PrimalOperator):
    """Kernels of a ContinuousGalerkin discretization bound to the buffers they work on."""

    def __init__(self, discretization, arrays, source=None):
        super().__init__(discretization, arrays, source)
        disc = discretization
        self._facets = self._numbers("_facets", lambda: disc.facets, "facets") if disc.num_facets else None
        self._fluxes: dict[str | None, ConsistentFlux] = {}

    @cached_property
    def _element(self):
        """Buffer of element vectors of cells, of facets, and of the sums of other ranks, where launches exchange."""
        return self.arrays.empty(self.num_entries + self.fuses * self.halo.plan.send_points.size)

    @property
    def num_entries(self) -> int:
        """Numbers in the element vectors of cells and facets."""
        disc = self.discretization
        return disc.num_dofs * (disc.stride + (disc.facet_stride if disc.num_facets else 0))

    # Kernels, compiled at first use ----------------------------------------------------------------------

    def _compile_products(self) -> None:
        self.kernels, self.patches and self.patches.kernels  # noqa: B018

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
        specs, shapes = self.needed(specs), self.needed(disc.element_shapes())
        found = {name: fastest_on_ones(self, choices, self._try_cells) for name, choices in shapes.items()}
        return kernels_of({name: spec for name, spec in specs.items() if name not in found}, self.device) | found

    @cached_property
    def matrix_kernels(self) -> dict[str, Kernel]:
        """`cg_matrix` and `cg_diagonal`."""
        return kernels_of(self.discretization.matrix_specs(), self.device)

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel compiled so far, by name."""
        return super().all_kernels() | (self.patches.kernels if self.patches else {})

    @property
    def fuses(self) -> bool:
        """True if a product and the vector update that follows it can be one launch: the kernel that sums the element
        vectors does both, where sums of other ranks come without the host."""
        return self.patches is None and (self.halo.has_peers or not self.halo.plan.active)

    @property
    def main_kernel(self) -> Kernel:
        """The kernel whose launch shape tells most."""
        return self.kernels["cg_residual"]

    # Vectors ---------------------------------------------------------------------------------------------

    def residual(self, u, out, t: float = 0.0, u_t=None) -> None:
        """out = F(t, u, u_t); all are buffers of owned values. Collective."""
        self.update_essential(self.current, t)
        rate = self.rest if u_t is None else self.current_rate
        if u_t is not None:
            self.update_essential(rate, t)
            rate.use(u_t)
        self._sum("residual", self.current, u, out, state=self.current, rate=rate, t=t)

    def action(self, du, out) -> None:
        """out = J du at the state of `linearize`. Collective."""
        self._sum("action", self.direction, du, out, du=self.direction)

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
        self._sum("action", self.direction, zero, out, self.sum_elements, du=self.direction)  # once: no patches for it
        self.arrays.fill(self.direction.tail)
        self.direction.essential_time = None

    def diagonal(self, out) -> None:
        """out = diagonal of J. Collective."""
        self.run_columns("cg_diagonal", self._element)
        self.run_facets("cg_facet_diagonal", self._element)
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
            self.run_facets("cg_facet_matrix", facets, first=0)
        return cells, facets

    def flux(self, label: str, u, t: float, side: str | None = None) -> np.ndarray:
        """The flux of the scheme through the facets of a named boundary [component], as the cells of a region see it.
        It balances the sources at a steady solution, those of the region on all of its facets. Collective."""
        if side not in self._fluxes:
            self._fluxes[side] = ConsistentFlux(self, self._flux_kernel, side)
        return self._fluxes[side](label, u, t)

    def set_auxiliary(self, name: str, values: np.ndarray) -> None:
        super().set_auxiliary(name, values)
        if vars(self).get("patches") is not None:
            self.patches.load_auxiliary()

    # Steps -----------------------------------------------------------------------------------------------

    def _try_cells(self, kernel: Kernel, out, **where) -> None:
        self._launch_cells(kernel, self._element, **where)  # element vectors are longer than `out`

    def run_facets(self, name: str, out, first: int | None = None, **where) -> None:
        """Launch a boundary kernel into `out` from `first` on (default: behind the cells' rows), if there are any."""
        if self.discretization.num_facets:
            self._launch_facets(self.kernels[name], out, first, **where)

    def _launch_facets(self, kernel: Kernel, out, first: int | None = None, **where) -> None:
        disc = self.discretization
        where["first"] = disc.num_dofs * disc.stride if first is None else first
        where |= {"facet_stride": disc.facet_stride, "facets": self._facets, "out": out}
        kernel.launch(disc.num_facets, self.arguments(kernel, disc.num_facets, **where))

    def _sum(self, what: str, vector: TailedVector, given, out, local=None, **where) -> None:
        """out = sum over all ranks' cells and facets of their `residual` or `action`, by `local` or in the quickest
        way; `given` are the owned values of `vector`. Collective."""
        local = local or (self.sum_elements if self.patches is None else self.patches.sum)

        def run(part):
            local(what, out, part, **where)

        in_parts(vector, given, run, out, self.ghost_sums)

    def sum_elements(self, what: str, out, part: int | None = None, **where) -> None:
        """out, and the ghost sums: this rank's cells and facets, by element vectors."""
        self.run_cells(f"cg_{what}", self._element, part, **where)
        if part in (None, OUTER):
            self.run_facets(f"cg_facet_{what}", self._element, **where)
        self.assemble(self._element, out, part)
