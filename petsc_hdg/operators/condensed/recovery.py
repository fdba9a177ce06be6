"""Recovery after a condensed solve: u in the cells, its gradient, the superconvergent u*, errors, integrals;
the interior from the trace of a linear physics, by matrices U that stay on the device."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from mpi4py import MPI

from ...device import Kernel, kernels_of
from ...discretizations import CellField
from ...discretizations.base import cell_fastest, padded
from ...discretizations.condensed.recovery_specs import RecoverySpecs
from ...discretizations.integral_specs import condensed_error_spec, condensed_integral_spec
from ...errors import OptionError
from ...reference import ReferenceElement, facet_cell

POOL_BYTES = {True: 1 << 29, False: 1 << 26}  # working memory of u* on a GPU, on a CPU
KEPT_SHARE = 0.25  # of the free memory, of which a tile takes half, that the matrices U may take


class Recovery:
    """Kernels that recover cell by cell from a trace; x is a buffer of owned trace values [num_owned].

    op: a condensed operator, which solves the local problems (`local_state`) and gives the trace (`trace`).
    All methods are collective.
    """

    def __init__(self, op):
        self.op = op
        self.disc = op.discretization
        self.arrays = op.arrays
        self.specs = RecoverySpecs(self.disc)
        self._kernels: dict[str, Kernel] = {}
        self._jump_tables = None

    @property
    def has_star(self) -> bool:
        """True if there is a superconvergent solution: with hybridizable DG."""
        return self.disc.has_jumps

    @property
    def norms(self) -> tuple[str, ...]:
        """Norms whose squares are the rows of `errors`."""
        return ("L2", "H1", "star") if self.has_star else ("L2", "H1")

    # Kernels ---------------------------------------------------------------------------------------------

    def kernel(self, name: str) -> Kernel:
        """The kernel `hdg_<name>`, compiled at first use."""
        if name not in self._kernels:
            specs = self.specs
            is_error = name == "error"
            spec = condensed_error_spec(specs, self.has_star) if is_error else getattr(specs, f"{name}_spec")()
            self._kernels[name] = Kernel(spec, self.arrays.device)
        return self._kernels[name]

    @cached_property
    def _flux_kernel(self) -> Kernel:
        """`condense_residual` for `fluxes`."""
        return Kernel(self.disc.flux_spec(), self.arrays.device)

    def integral_kernel(self, objective) -> Kernel:
        """Kernel of an Objective, for `integrals`. Not collective."""
        return Kernel(condensed_integral_spec(self.specs, objective), self.arrays.device)

    def _launch(self, kernel: Kernel, count: int, x_e, t: float, **others) -> None:
        """Launch a kernel over `count` cells or facets with coefficients x_e; `others`: arguments beside these."""
        op, disc = self.op, self.disc
        kernel.launch(count, {
            "num_cells": disc.mesh.num_cells, "stride": disc.stride, "t": float(t), "constants_": op._constants,
            "nodes": op._nodes, "cell_nodes": op._cell_nodes, "aux": op._aux,
            "tables": self.arrays.tables_of(kernel.spec), "x_e": x_e, **others,
        })  # fmt: skip

    # Buffers on the device -------------------------------------------------------------------------------

    def coefficients(self, x, t: float):
        """Coefficients of u, then of the trace [function, component, stride], solving the local problems."""
        disc = self.disc
        interior = self.op.local_state(x, t)
        trace = self.op.trace(x, t)
        rows = disc.num_eliminated + disc.num_trace_dofs
        out, dofs = self.arrays.empty(rows * disc.stride), self.op._dofs
        arguments = (disc.mesh.num_cells, disc.stride, disc.dofmap.num_owned, dofs, interior, trace.owned, trace.tail)
        self.kernel("collect")(rows * disc.stride, *arguments, out)
        return out

    def gradient(self, x_e, t: float):
        """Physical gradients [node, component, dim, stride] at the nodes of `specs.gradient_element`."""
        disc, kernel, nodes = self.disc, self.kernel("gradient"), self.specs.gradient_element.num_basis
        out = self.arrays.empty(nodes * disc.components * disc.dim * disc.stride)
        self._launch(kernel, disc.mesh.num_cells, x_e, t, out=out)
        return out

    def star(self, x_e, t: float):
        """Coefficients of u* [node, component, stride]: (∇u*, ∇v) = (q, ∇v) for all v, with the mean of u."""
        disc, kernel = self.disc, self.kernel("star")
        count = disc.mesh.num_cells
        out = self.arrays.empty(self.specs.star_element.num_basis * disc.components * disc.stride)
        if kernel.spec.macros["SCRATCH_IS_LOCAL"]:
            self._launch(kernel, count, x_e, t, first=0, last=count, pool=None, out=out)
            return out
        size = self.specs.star_scratch
        most = POOL_BYTES[self.arrays.device.is_gpu] // (size * self.arrays.real.itemsize)
        tile = max(1, min(count, most))
        pool = self.arrays.empty(tile * size)
        for first in range(0, count, tile):
            last = min(first + tile, count)
            self._launch(kernel, last - first, x_e, t, first=first, last=last, pool=pool, out=out)
        return out

    # Results on the host ---------------------------------------------------------------------------------

    def fields(self, x, t: float = 0.0, star: bool = True) -> list[CellField]:
        """Each field u; with hybridizable DG its gradient `grad_u` (component, then direction), and `u_star` too."""
        if not self.has_star:
            return self.solution_fields(x, t)
        disc, specs, x_e = self.disc, self.specs, self.coefficients(x, t)
        gradients = self._by_field("grad_{}", specs.gradient_element, self.gradient(x_e, t), disc.dim)
        stars = self._by_field("{}_star", specs.star_element, self.star(x_e, t), 1) if star else []
        return [*self._solution(x_e), *gradients, *stars]

    def solution_fields(self, x, t: float = 0.0) -> list[CellField]:
        """Each field u alone."""
        return self._solution(self.coefficients(x, t))

    def _solution(self, x_e) -> list[CellField]:
        turned = 0 if self.has_star else self.disc.num_interior
        return self._by_field("{}", self.disc.cell_element, x_e, 1, turned)

    def _by_field(self, name: str, element, buffer, width: int, turned: int = 0) -> list[CellField]:
        """Values of a buffer [node, component, width, stride] as one CellField for each of the physics' fields.

        turned: how many nodes stand first in the buffer and last in the element.
        """
        disc = self.disc
        shape = (element.num_basis, disc.components, width, disc.stride)
        values = self.arrays.to_host(buffer, shape, name="output")[..., : disc.mesh.num_cells].astype(float)
        values = np.roll(np.moveaxis(values, -1, 0), -turned, axis=1)
        found = []
        for f in disc.physics.fields:
            part = values[:, :, f.offset : f.offset + f.components]
            part = part.reshape(*part.shape[:2], f.components * width)
            found.append(CellField(name.format(f.name), element, part))
        return found

    def trace_fields(self, x, t: float = 0.0) -> tuple[np.ndarray, np.ndarray, list[CellField]]:
        """The trace on each facet once over all ranks: cells [facet], local facets [facet], and each field on them.

        The values are at the nodes of an element of the facet's shape (degree 0: constants, at the vertices).
        """
        disc, topology = self.disc, self.disc.mesh.topology
        start, (first, last) = disc.mesh.dm.getChart()[0], topology.stratum[disc.dim - 1]
        mine = disc.mesh.exchange.owned()[first - start : last - start] & (topology.facet_cells[:, 0] >= 0)
        cells, local = topology.facet_cells[mine, 0], topology.facet_local[mine, 0].astype(np.int64)
        dofs = disc.dofmap.compact[disc.dofmap.cell_dofs[cells]]
        values = self.op.values(x, t)[dofs].reshape(
            len(cells), disc.num_facets_of_cell, disc.trace_element.num_facet_basis, disc.components
        )
        element = ReferenceElement(facet_cell(disc.mesh.cell), max(1, disc.trace_element.degree))
        at_nodes = disc.trace_element.tabulate_facet(element.nodes) @ values[np.arange(len(cells)), local]
        parts = [(f.name, at_nodes[..., f.offset : f.offset + f.components]) for f in disc.physics.fields]
        return cells, local, [CellField(f"{name}_trace", element, part) for name, part in parts]

    def errors(self, x, t: float = 0.0) -> np.ndarray:
        """Squared errors [norm, component] over this rank's cells: of u, of its gradient, of u*."""
        return self.integrals(self.kernel("error"), x, t).sum(axis=1).reshape(len(self.norms), -1)

    def integrals(self, kernel: Kernel, x, t: float = 0.0) -> np.ndarray:
        """Integrals [component, cell] of a pointwise function over this rank's cells: of u and of its gradient."""
        disc, x_e = self.disc, self.coefficients(x, t)
        star = self.star(x_e, t) if kernel.spec.macros["NSTAR"] else None
        shape = (kernel.spec.rows, disc.stride)
        sums = self.arrays.zeros(int(np.prod(shape)))
        self._launch(kernel, disc.mesh.num_cells, x_e, t, star=star, out=sums)
        return self.arrays.to_host(sums, shape, name="integrals")[:, : disc.mesh.num_cells].astype(float)

    def boundary_integrals(self, kernel: Kernel, label: str, x, t: float, side: str | None = None) -> np.ndarray:
        """Integrals [component, facet] of a pointwise function over this rank's facets of a named boundary: of the
        trace û and of the gradient of the cell, that of a region, as a Robin condition reads them."""
        facets = np.stack(self.disc.mesh.boundary_facets(label, side is not None, side), axis=1)
        stride, count = padded(len(facets)), len(facets)
        shape = (kernel.spec.rows, stride)
        sums = self.arrays.zeros(int(np.prod(shape)))
        x_e, facets = self.coefficients(x, t), self.arrays.to_device(cell_fastest(facets, stride), "facets")
        self._launch(kernel, count, x_e, t, num_cells=count, facets=facets, facet_stride=stride, out=sums)
        return self.arrays.to_host(sums, shape, name="boundary")[:, :count].astype(float)

    def jumps(self, x, t: float = 0.0) -> np.ndarray:
        """‖u - û‖ on the facets over the size of û and of the mean of u in the cells [field], over all ranks' cells.

        In the frame of the reference cell; 0 where both are.
        """
        disc, kernel, cells = self.disc, self.kernel("jumps"), self.disc.mesh.num_cells
        if self._jump_tables is None:
            self._jump_tables = [self.arrays.to_device(table, "tables") for table in self.specs.jump_tables()]
        shape = (2, disc.components, disc.stride)
        sums, x_e = self.arrays.zeros(int(np.prod(shape))), self.coefficients(x, t)
        if cells:
            kernel(cells * disc.components, cells, disc.stride, *self._jump_tables, x_e, sums)
        squares = self.arrays.to_host(sums, shape, name="jumps")[..., :cells].astype(float).sum(axis=2)
        apart, size = disc.mesh.comm.allreduce(squares)
        parts = [slice(f.offset, f.offset + f.components) for f in disc.physics.fields]
        return np.array([np.sqrt(apart[p].sum() / size[p].sum()) if size[p].any() else 0.0 for p in parts])

    def fluxes(self, x, t: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """∫ f̂·n out of each cell through each of its facets [cell, facet, component], and ∫ f0 [cell, component].

        f̂·n is f1·n - τ (u - û), as a Neumann condition gives it, lifted where f1 is not linear. A flux is the residual
        of a facet's functions, whose sum is one there, and ∫ f0 that of all functions of the cell.
        """
        disc, local, to_host = self.disc, self.op.local, self.arrays.to_host
        interior = self.op.local_state(x, t)
        local.sum(self.op.trace(x, t), interior, t, self._flux_kernel)
        buffers = (local.residual, disc.num_trace), (local.inner, disc.num_interior)
        found = [to_host(rows, (count, disc.components, disc.stride), name="fluxes") for rows, count in buffers]
        trace, inner = (np.moveaxis(rows[..., : disc.mesh.num_cells].astype(float), -1, 0) for rows in found)
        facets = disc.num_facets_of_cell
        shape = disc.mesh.num_cells, facets, disc.num_trace // facets, disc.components
        return trace.reshape(shape).sum(axis=2), trace.sum(axis=1) + inner.sum(axis=1)

    def flux(self, label: str, x, t: float, side: str | None = None) -> np.ndarray:
        """∫ f̂·n over the facets of a named boundary [component], out of the cells of a region. Raises OptionError
        without facet fluxes."""
        if not self.disc.has_jumps:
            raise OptionError(
                f"{self.disc.name} with -cg_condense has no fluxes of facets; leave -cg_condense out or give hdg_gpu"
            )
        cells, facets = self.disc.mesh.boundary_facets(label, side is not None, side)
        return self.disc.mesh.comm.allreduce(self.fluxes(x, t)[0][cells, facets].sum(axis=0))


class KeptRecovery:
    """interior = U λ + f (King et al. 2014, section 4.3), with U of all cells, or of their shapes.

    matrices: buffer of U, None as long as none was asked for, and where cells of one shape share it.
    """

    def __init__(self, operator):
        self.op, self.disc, self.matrices = operator, operator.discretization, None

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`condense_recover`, where U may be kept."""
        specs = {"condense_recover": self.disc.recover_spec()} if self._is_asked_for else {}
        return kernels_of(specs, self.op.device)

    @property
    def _is_asked_for(self) -> bool:
        serves = self.op.is_linear or (self.disc.in_time and not self.disc.keeps_inverse)
        return serves and self.disc.options.hdg_keep and self.disc.num_eliminated > 0

    @cached_property
    def is_kept(self) -> bool:
        """True if U of all cells stays on the device: one tile, and memory enough, on all ranks. Collective."""
        local, device = self.op.local, self.op.device
        nbytes = self.op.arrays.real.itemsize * local.recovery_reals * self.disc.stride
        fits = self.matrices is not None or nbytes <= min(KEPT_SHARE * device.memory.free, device.largest_buffer)
        one_tile = local.tile_cells >= self.disc.mesh.num_cells
        shared = local.classes is not None
        return self._is_asked_for and self.disc.mesh.comm.allreduce(shared or (fits and one_tile), MPI.LAND)

    def buffer(self):
        """Buffer for U of all cells, or None. Collective."""
        if self.matrices is None and self.is_kept and not self.op.local.classes:
            self.matrices = self.op.arrays.empty(self.op.local.recovery_reals * self.disc.stride)
        return self.matrices

    def recover(self, trace, particular, interior) -> None:
        """interior [dof, stride] = U of a TailedVector + particular. Not collective."""
        op, disc, classes, given = self.op, self.disc, self.op.local.classes, (None, self.matrices)
        batch = classes.shapes.count if classes else disc.stride
        if classes:
            given = classes.shape, classes.recovery
        self.kernels["condense_recover"](
            disc.num_eliminated * disc.mesh.num_cells, disc.mesh.num_cells, 0, disc.stride, op.dofmap.num_owned,
            op._dofs, trace.owned, trace.tail, batch, *given, particular, interior,
        )  # fmt: skip
