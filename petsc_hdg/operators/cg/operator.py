"""The CG operator on a device: residual, Jacobian action, diagonal and matrices on buffers of owned values.

First-order elements have residual and action patch by patch.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np

from ...device import Kernel, kernels_of
from ...device.platforms import opencl
from ..overlap import FIRST, LAST, OUTER, in_parts, part_range
from ..primal import PrimalOperator
from ..vectors import TailedVector

GIVEN_BY = -1  # condition of facets whose flux is f1·n


class CGOperator(PrimalOperator):
    """Kernels of a ContinuousGalerkin discretization bound to the buffers they work on."""

    def __init__(self, discretization, arrays, source=None):
        super().__init__(discretization, arrays, source)
        self._fluxes: dict[str | None, ConsistentFlux] = {}

    def _load_cells(self) -> None:
        super()._load_cells()
        disc = self.discretization
        self._facets = self._numbers("_facets", lambda: disc.facets, "facets") if disc.num_facets else None

    @cached_property
    def _element(self):
        """Buffer of element vectors of cells, of facets, and of the sums of other ranks, where launches exchange."""
        return self.arrays.empty(self.num_entries + self.fuses * self.halo.plan.send_points.size)

    @property
    def num_entries(self) -> int:
        """Numbers in the element vectors of cells and facets."""
        return self.discretization.num_entries

    # Kernels, compiled at first use ----------------------------------------------------------------------

    def _compile_products(self) -> None:
        self.kernels, self.patches and self.patches.kernels  # noqa: B018

    @cached_property
    def patches(self) -> PatchOperator | None:
        return PatchOperator(self) if self.discretization.variant == "patch" else None

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`cg_residual`, `cg_action`, `assemble`, and those of the boundary where there are natural conditions."""
        disc = self.discretization
        specs = {**disc.element_specs(), "assemble": disc.assemble_spec()}
        if disc.physics.natural and disc.has_facets:
            specs |= disc.facet_specs()
        return kernels_of(self.needed(specs), self.device)

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
        self._sum("transposed", self.direction, w, out, self.sum_elements, du=self.direction)

    def data_action(self, out) -> None:
        """out = J d at the state of `linearize`, where d is the essential values alone. Collective."""
        zero = self.arrays.zeros(max(1, self.dofmap.num_owned))
        self.update_essential(self.direction, self.time)
        self._sum("action", self.direction, zero, out, self.sum_elements, du=self.direction)  # once: no patches for it
        self.arrays.fill(self.direction.tail)
        self.direction.essential_time = None

    def diagonal(self, out) -> None:
        """out = diagonal of J. Collective."""
        self.sum_elements("diagonal", out)
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

    @property
    def flux_takes_rate(self) -> bool:
        """True if `flux` needs u_t."""
        return self.discretization.physics.uses_time_derivative

    def flux(self, label: str, u, t: float, side: str | None = None, u_t=None) -> np.ndarray:
        """The flux of the scheme through the facets of a named boundary [component], as the cells of a region see it.
        It balances sources and rates at a solution, those of the region on all of its facets. Collective."""
        if side not in self._fluxes:
            self._fluxes[side] = ConsistentFlux(self, side)
        return self._fluxes[side](label, u, t, u_t)

    def load_auxiliary(self, name: str, values: np.ndarray) -> bool:
        changes = super().load_auxiliary(name, values)
        if vars(self).get("patches") is not None:
            self.patches.load_auxiliary()
        return changes

    # Steps -----------------------------------------------------------------------------------------------

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
        """out = sum over all ranks' cells and facets of their `residual`, `action` or `transposed`, by `local` or in
        the quickest way; `given` are the owned values of `vector`. Collective."""
        local = local or (self.sum_elements if self.patches is None else self.patches.sum)

        def run(part):
            local(what, out, part, **where)

        in_parts(vector, given, run, out, self.ghost_sums)

    def sum_elements(self, what: str, out, part: int | None = None, **where) -> None:
        """out, and the ghost sums: this rank's cells and facets, by element vectors."""
        self.fill_elements(what, part, **where)
        self.assemble(self._element, out, part)

    def fill_elements(self, what: str, part: int | None = None, **where) -> None:
        """Element vectors of this rank's cells and facets: `residual`, `action`, `transposed` or `diagonal`."""
        kernels = self._transposed_kernels if what == "transposed" else self.kernels
        if what == "diagonal":
            self.run_columns("cg_diagonal", self._element, **where)
        else:
            self._launch_cells(kernels[f"cg_{what}"], self._element, part, **where)
        if part in (None, OUTER) and self.discretization.num_facets:
            self._launch_facets(kernels[f"cg_facet_{what}"], self._element, **where)


class ConsistentFlux:
    """Fluxes of a CGOperator through named boundaries: what the rows of the residual at essential nodes say of f1·n.
    Making one is collective. Raises MeshError.

    A test function that is 1 makes ∫ f0 out of the residual's volume terms. The rows of free nodes vanish at a
    solution; those of essential nodes are ∫ φ f1·n by the scheme itself, and with what natural conditions give they
    balance the sources to rounding (Hughes et al., J. Comput. Phys. 163, 2000). Facets have their own ∫ φ f1·n, and all
    facets around a node where it is essential equal shares of what is left: names that meet at a node share it so.

    From the side of a region the same is done with its cells alone. Its facets that have a cell of the mesh behind them
    take part in all components, whatever conditions they have.

    side: name of the region that sees the facets; None: the whole mesh.
    """

    def __init__(self, operator, side: str | None = None):
        self.operator, self._side = operator, side
        self.disc = disc = operator.discretization
        mesh = disc.mesh
        self._inside = np.ones(mesh.num_cells, bool) if side is None else mesh.cell_mask(side)
        mine, (first, last) = self._inside[:, None], mesh.topology.stratum[mesh.dim - 1]
        seen = mesh.count_sides(self._inside)
        border = mine & mesh.on_sides((seen == 1) & ~mesh.exterior)  # between the region and others
        start = mesh.dm.getChart()[0]
        essential = mesh.on_sides(
            disc.constrained_components[0][first - start : last - start]
        )  # both sides of inner ones
        self._open = mine[..., None] & essential | border[..., None]  # [cell, facet of the cell, component]: f1·n
        natural = disc.natural_facets
        natural = natural[:, self._inside[natural[0]] & ~border[natural[0], natural[1]]]
        cells, local = np.nonzero(self._open.any(axis=2))
        found = np.stack([cells, local, np.full_like(cells, GIVEN_BY)]).astype(np.int32)
        self._cells, self._local, self._condition = np.concatenate([found, natural], axis=1)
        self._around = [mesh.facets_around(self._open[..., c]) for c in range(disc.physics.num_components)]

    def __call__(self, label: str, u, t: float, u_t=None) -> np.ndarray:
        """The flux through the facets of a named boundary [component]; ∫ f1·n alone of unsteady physics without u_t.
        Collective. Raises MeshError."""
        disc, mesh = self.disc, self.disc.mesh
        there = np.zeros(self._open.shape[:2], bool)
        there[mesh.boundary_facets(label, self._side is not None, self._side)] = True
        state, rate = self.operator.current.use(u), self.operator.rest
        if u_t is not None:
            rate = self.operator.current_rate.use(u_t)
        self.operator.update_essential(state, t), self.operator.update_essential(rate, t)
        shares = None if disc.physics.uses_time_derivative and u_t is None else self._shares(there)
        total = sum(self._of_part(part, there, shares, state, rate, t) for part in self.operator.parts)
        return mesh.comm.allreduce(total)

    def _of_part(self, operator, there: np.ndarray, shares, state, rate, t: float) -> np.ndarray:
        """The flux [component] that the cells of a part of the mesh contribute.

        there: chosen sides [cell, facet of the cell] of all cells.   shares [component, point]: the part of each node's
        row that these sides have, or None.
        """
        disc, own = operator.discretization, operator.discretization.mesh.cells
        here = (self._cells >= own.start) & (self._cells < own.stop)
        cells, local, condition = self._cells[here] - own.start, self._local[here], self._condition[here]
        facets = np.column_stack([cells, local, condition, self._open[own][cells, local]])
        rows = operator.over_facets(operator._flux_kernel, facets, disc.num_dofs, state, rate, t=t).T
        through = rows[there[own][cells, local]].sum(axis=0)  # rows [facet, dof]: ∫ φ j, j is f1·n, or what is given
        if shares is not None:
            operator.run_cells("cg_residual", operator._element, state=state, rate=rate, t=t)
            size = disc.num_dofs * disc.stride
            volumes = disc.of_cells(operator.arrays.to_host(operator._element, size, name="fluxes").astype(float))
            volumes[~self._inside[own]] = 0.0
            np.subtract.at(volumes, cells, rows)
            for space in disc.spaces:
                for basis, points in disc.basis_points(space, slice(None)):
                    for c in range(space.components):
                        dof, component = space.first_dof + basis * space.components + c, space.first_component + c
                        through[dof] += shares[component][points] @ volumes[:, dof]
        return np.bincount(disc.dof_components, weights=through, minlength=disc.physics.num_components)

    def _shares(self, there: np.ndarray) -> list[np.ndarray]:
        """Part of each node that some sides [cell, facet of the cell] have, of each component [point]. Collective."""
        counts = [self.disc.mesh.facets_around(there & self._open[..., c]) for c in range(len(self._around))]
        return [mine / np.maximum(around, 1) for mine, around in zip(counts, self._around, strict=True)]


class PatchOperator:
    """The patches of a CGOperator on its device, and the kernels that run on them."""

    def __init__(self, operator):
        self.operator = operator
        disc, arrays = operator.discretization, operator.arrays
        patches = disc.patches
        self.count, self.num_rows = patches.count, len(patches.rows)
        self.border_values = patches.num_border * disc.physics.num_components
        sizes = ("places", "clusters", "num_rounds", "most_places", "most_words", "most_slots")
        counts = (len(patches.place_node), len(patches.members), patches.rounds.shape[2], *patches.local)
        self._arguments = dict(zip(sizes, counts, strict=True))
        tables = {
            "heads": patches.heads,
            "rounds": patches.rounds,
            "place_dofs": patches.place_dofs.T,
            "place_x": disc.mesh.geometry.nodes[patches.place_node].T,
            "words": patches.words.view(np.int32),
        }
        self._arguments |= {name: arrays.to_device(table, "patches") for name, table in tables.items()}
        rows = (patches.rows, patches.row_start, patches.row_entry)
        self._first_ghost = int(np.searchsorted(patches.rows, operator.dofmap.num_owned))
        self._rows = [arrays.to_device(table, "patches") for table in rows]
        facets = disc.num_dofs * disc.facet_stride if disc.num_facets else 0
        self._local: dict = {}
        self._aux = arrays.zeros(max(1, disc.auxiliary.num_rows * patches.members.size))
        self.load_auxiliary()
        self.border = arrays.empty(self.border_values + facets)

    def load_auxiliary(self) -> None:
        """Take the operator's rows of auxiliary data [row, stride], in the order of the clusters' cells and corners."""
        disc, rows = self.operator.discretization, self.operator.aux_rows
        starts, members = disc.auxiliary.starts, disc.patches.members.T
        parts = []
        for start, end in pairwise(starts):
            order = start if end - start == 1 else start + self._corner_rows
            parts.append(np.where(members >= 0, rows[order, members], 0.0).reshape(end - start, -1))
        if parts:
            values = np.ascontiguousarray(np.concatenate(parts), dtype=self.operator.arrays.real)
            self.operator.arrays.upload(self._aux, values, "auxiliary")

    @cached_property
    def _corner_rows(self) -> np.ndarray:
        disc = self.operator.discretization
        return disc.patches.corner_rows(disc.mesh.geometry.cell_nodes[: disc.mesh.num_cells], disc.dim - 1)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`cg_patch_residual`, `cg_patch_action` and `assemble_rows`."""
        disc = self.operator.discretization
        specs = {**disc.patch_specs(), "assemble_rows": disc.assemble_spec("assemble_rows")}
        return kernels_of(specs, self.operator.device)

    def _launch(self, kernel: Kernel, out, part: int | None = None, **where) -> None:
        first, last = self._patches(part) if self._arguments["places"] else (0, 0)
        size = kernel.spec.local_bytes
        local = self._local.setdefault(size, opencl().LocalMemory(size))  # the same object, which need not be set anew
        mine = {**self._arguments, "owned": out, "border": self.border, "patch_aux": self._aux, "local_": local}
        cells = self.operator.discretization.mesh.num_cells
        kernel.of_part(part).launch(last, self.operator.arguments(kernel, cells, **where, **mine), first=first)

    def _patches(self, part: int | None) -> tuple[int, int]:
        """First and last patch of a part, see overlap.py."""
        disc, cells = self.operator.discretization, self.operator.discretization.patches.cells
        ends = part_range(part, disc.mesh.num_inner, self.count * cells, cells, self.operator.device)
        return ends[0] // cells, ends[1] // cells

    def sum(self, what: str, out, part: int | None = None, **where) -> None:
        """out, and the operator's ghost sums: this rank's cells and facets, their `residual` or `action`."""
        operator = self.operator
        self._launch(self.kernels[f"cg_patch_{what}"], out, part, **where)
        if part in (None, OUTER):
            operator.run_facets(f"cg_facet_{what}", self.border, first=self.border_values, **where)
        self._sum_border(out, part)

    def _sum_border(self, out, part: int | None) -> None:
        """Rows that patches leave: those of ghosts in OUTER, others once all patches are done."""
        operator, kernel = self.operator, self.kernels["assemble_rows"]
        group = kernel.spec.local_size
        first, last = {
            None: (0, self.num_rows),
            FIRST: (0, 0),
            OUTER: (self._first_ghost // group * group, self.num_rows),
            LAST: (0, self._first_ghost),
        }[part]
        rows = (last, operator.dofmap.num_owned, *self._rows)
        kernel.of_part(part)(last, *rows, self.border, out, operator.ghost_sums, first=first)
