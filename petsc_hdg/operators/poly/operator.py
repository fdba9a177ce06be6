"""The polytopic operator on a device: interior penalty on the base cells, seen by the functions of the polytopes."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cached_property

import numpy as np
from mpi4py.MPI import MAX, MIN

from ...device import Kernel, kernels_of
from ...device.halo import Halo
from ...discretizations.forwarded import Forwarded, forwarded
from ...discretizations.poly.outline import find_outline
from ...errors import MeshError, PhysicsError, collectively
from ...value_checks import plural
from ..sipg.check import check_sipg, linearization_kept
from ..sipg.operator import SIPGOperator
from ..vectors import TailedVector
from .matrices import PolytopicMatrices


class PolytopicAction:
    """The kernels `poly_action` of a PolytopicOperator, one a degree; making one is collective."""

    def __init__(self, operator):
        self.operator, self.arrays, self.dofmap = operator, operator.arrays, operator.dofmap
        disc, dofmap = operator.discretization, operator.dofmap
        self.halo = Halo(disc.mesh.comm, dofmap.num_owned, dofmap.ghost_rank, dofmap.ghost_index, operator.arrays)
        self.direction = TailedVector(self)

    @cached_property
    def launches(self) -> list:
        """Kernel, and number of items and their rows [item, 5] of polytopes without ghost neighbours and of others, for
        each degree."""
        operator, disc = self.operator, self.operator.discretization
        outer = np.zeros(disc.polytopes.count, bool)
        outer[disc.polytopes.of_cell[: disc.mesh.num_cells][disc.fine.neighbours.has_ghost]] = True
        found = []
        for items in disc.blocks.everything():
            facets = float((items.rows[:, 4] - items.rows[:, 3]).mean())
            kernel = Kernel(disc.action_spec(items.degree, facets), operator.device)
            of_ghosts = outer[items.rows[:, 0]]
            parts = [items.rows[~of_ghosts], items.rows[of_ghosts]]
            found.append((kernel, [(len(rows), self.arrays.to_device(rows, "polytopes")) for rows in parts]))
        return found

    @cached_property
    def _faces(self):
        return self.arrays.to_device(self.operator.discretization.blocks.faces, "polytopes")

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel compiled so far, by name and degree."""
        compiled = self.__dict__.get("launches", ())
        return {f"poly_action_{kernel.spec.macros['DEGREE']}": kernel for kernel, *_ in compiled}

    def run(self, du, out) -> None:
        """out = J du at the state of the operator's `linearize`; polytopes without ghost neighbours are computed while
        the halo is under way. Collective."""
        self.direction.begin(du)
        self._run(out, 0)
        with nullcontext() if self.halo.alone else self.operator.device.beside():
            self.direction.end()
            self._run(out, 1)

    def _run(self, out, part: int) -> None:
        operator, cells = self.operator, self.operator.discretization.mesh.num_cells
        lists = {"boxes": operator.boxes, "cells": operator.cells, "facets": self._faces}
        lists |= {"of_cell": operator.of_cell, "begin": operator.first, "n_unknowns": self.dofmap.num_owned}
        lists |= {"direction": self.direction.owned, "direction_tail": self.direction.tail, "out": out}
        for kernel, parts in self.launches:
            count, rows = parts[part]
            mine = operator.fine.arguments(kernel, cells, num_items=count, items=rows, **lists)
            kernel.of_part(part).launch(count, mine)


class _OfExpanded(Forwarded):
    """A method of the fine operator, of a function of the polytopes as argument number `place`."""

    def __init__(self, place: int):
        super().__init__("fine")
        self._place = place

    def __get__(self, whole, owner=None):
        method, place = super().__get__(whole), self._place
        return lambda *given: method(*given[:place], whole.expand(given[place]), *given[place + 1 :])


MANY = 8  # base cells of a polytope from which on products on the polytopes are faster on CPUs too


class PolytopicOperator:
    """Kernels of a PolytopicDG discretization bound to the buffers they work on; interface as PrimalOperator.

    fine: SIPGOperator on the base cells, which works on expanded vectors (owned values of its own numbering).
    assembly: PolytopicMatrices, products: PolytopicAction, which integrate directly on the polytopes.
    """

    norms, repeats = SIPGOperator.norms, True

    def __init__(self, discretization, arrays):
        self.discretization = disc = discretization
        self.arrays, self.device, self.dofmap = arrays, arrays.device, disc.dofmap
        self.fine = SIPGOperator(disc.fine, arrays)
        to_device = arrays.to_device
        start, cells = disc.polytopes.cells
        self.first = to_device(disc.numbering.first, "polytopes")
        self.boxes = to_device(disc.box_rows(), "polytopes")
        self.of_cell = to_device(disc.polytope_rows(), "polytopes")
        self.start, self.cells = to_device(start, "polytopes"), to_device(cells, "polytopes")
        self._expanded = {name: arrays.zeros(max(1, self.fine.dofmap.num_owned)) for name in ("u", "u_t", "out")}
        self.assembly = PolytopicMatrices(self)
        self.products = PolytopicAction(self)
        counts = disc.mesh.comm.allreduce(np.array([disc.mesh.num_cells, disc.polytopes.count]))
        self._is_direct = self.device.is_gpu or counts[0] >= MANY * counts[1]

    # As the fine operator ----------------------------------------------------------------------------------------

    failure, follows_solution, constants, aux_rows = forwarded("fine", 4)
    version, auxiliary_version, coefficients, linearizations, main_kernel, flops = forwarded("fine", 6)
    set_constants, set_auxiliary, restart, strengthen = forwarded("fine", 4)
    make_ready, compile_variants = forwarded("fine", 2)
    integral_kernel, trace_fields, auxiliary_onto, flux_takes_rate = forwarded("fine", 4)
    suits, errors, integrals, boundary_integrals = _OfExpanded(0), _OfExpanded(0), _OfExpanded(1), _OfExpanded(2)
    cell_fields, solution_fields = _OfExpanded(0), _OfExpanded(0)

    @property
    def parts(self) -> tuple:
        """The operator itself: the cells have one shape."""
        return (self,)

    members = parts

    @property
    def matrix_flops(self) -> int:
        """Flops of this rank's matrices of polytopes: the products of functions at all points."""
        return self.assembly.flops("volume") + self.assembly.flops("facets")

    @property
    def diagonal_flops(self) -> int:
        """Flops of the diagonal blocks, of which the diagonal is picked."""
        return self.assembly.flops("volume")

    def details(self, complete: bool = True) -> list[str]:
        """Lines for `-fe_view`. Collective."""
        disc, comm = self.discretization, self.discretization.mesh.comm
        counts = comm.allreduce(np.array([disc.polytopes.count, disc.mesh.num_cells]))
        line = (
            f"  {plural(counts[0], 'polytope')}, "
            f"{plural(counts[1] / counts[0], 'base cell', text='{:.3g}'.format)} each; {disc.space} degree up to "
            f"{disc.largest}; balance {disc.polytopes.balance:.3g}"
        )
        return [line, *(self._shapes() if complete else ()), *self.fine.details(complete)]

    def _shapes(self) -> list[str]:
        """Sizes of the polytopes, in a line for `-fe_view`. Collective."""
        disc = self.discretization
        outline, comm = find_outline(disc.mesh, disc.polytopes, disc.measures), disc.mesh.comm
        found = [outline.diameters(), outline.radii(disc.polytopes), np.diff(outline.start).astype(float)]
        low = [comm.allreduce(float(values.min(initial=np.inf)), MIN) for values in found]
        high = [comm.allreduce(float(values.max(initial=0)), MAX) for values in found]
        (h, H), (r, R), (f, F) = zip(low, high, strict=True)
        return [f"  h from {h:.3g} to {H:.3g}, d |K| / |∂K| from {r:.3g} to {R:.3g}, {f:.0f} to {F:.0f} facets each"]

    # Kernels -----------------------------------------------------------------------------------------------------

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`poly_expand` and `poly_restrict`."""
        return kernels_of(self.discretization.transfer_specs(), self.device)

    def compile(self, matrices: bool = False) -> None:
        """Compile what residuals need, and the matrices if asked for, else what products need. Not collective."""
        self.fine.multiplies = not (matrices or self._is_direct)
        self.kernels  # noqa: B018
        self.fine.kernels  # noqa: B018
        for fused in self.fine._passes:
            fused.kernels  # noqa: B018
        if matrices:
            self.assembly.compile()
        elif self._is_direct:
            self.products.launches  # noqa: B018

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel compiled so far, by name."""
        of_matrices = {**self.assembly.all_kernels(), **self.products.all_kernels()}
        return {**self.kernels, **self.fine.all_kernels(), **of_matrices}

    # Base cells and back -----------------------------------------------------------------------------------------

    def expand(self, u, name: str = "u"):
        """Buffer of the nodal values on owned base cells of a function of the polytopes. Not collective."""
        disc, kernel, out = self.discretization, self.kernels["poly_expand"], self._expanded[name]
        fine, cells = disc.fine, disc.mesh.num_cells
        geometry = (cells, fine.stride, self.fine._nodes, self.fine._cell_nodes)
        items = fine.num_chunks * 32 * fine.num_nodes
        kernel(items, *geometry, self.of_cell, self.first, self.boxes, u, out)
        return out

    def restrict(self, fine, out) -> None:
        """out = the transpose of `expand` of values on owned base cells. Not collective."""
        disc, kernel = self.discretization, self.kernels["poly_restrict"]
        count, macros = disc.polytopes.count, kernel.spec.macros
        geometry = (disc.mesh.num_cells, disc.fine.stride, self.fine._nodes, self.fine._cell_nodes)
        lists = (self.start, self.cells, self.first, self.boxes)
        groups = -(-count // (macros["GROUP"] // macros["LANES"])) * macros["NC"]
        kernel(groups * macros["GROUP"], count, *geometry, *lists, fine, out)

    # Vectors -----------------------------------------------------------------------------------------------------

    def residual(self, u, out, t: float = 0.0, u_t=None) -> None:
        """out = F(t, u, u_t); all are buffers of owned values. Collective."""
        rate = None if u_t is None else self.expand(u_t, "u_t")
        self.fine.residual(self.expand(u), self._expanded["out"], t, rate)
        self.restrict(self._expanded["out"], out)

    def linearize(self, u, t: float = 0.0, u_t=None, shift: float = 0.0) -> None:
        """Keep the state at which `action`, `diagonal` and `matrices` differentiate. Collective."""
        rate = None if u_t is None else self.expand(u_t, "u_t")
        self.fine.linearize(self.expand(u), t, rate, shift)
        self._check_diffusivity()

    def _check_diffusivity(self) -> None:
        """Raise PhysicsError where normal diffusivities have both signs: no penalty can serve. Collective."""
        sigma = self.fine.penalties()
        signs = np.array([(sigma < 0).any(axis=(1, 2)), (sigma > 0).any(axis=(1, 2))], dtype=np.int32)
        both = self.discretization.mesh.comm.allreduce(signs).all(axis=0)
        if both.any():
            physics = self.discretization.physics
            raise PhysicsError(
                f"physics '{physics.name}': the diffusivity of component {np.flatnonzero(both)[0]} (the derivative of "
                "f1 by the gradient) is positive in some places and negative in others; poly_gpu takes one sign on the "
                "whole mesh: check f1 and the data it reads"
            )

    def action(self, du, out) -> None:
        """out = J du at the state of `linearize`: on the polytopes, or on CPUs on the base cells where these are few.
        Collective."""
        if self._is_direct:
            self.products.run(du, out)
            return
        if not self.fine.multiplies:
            self._multiply_by_kernels()
        self.fine.action(self.expand(du), self._expanded["out"])
        self.restrict(self._expanded["out"], out)

    def _multiply_by_kernels(self) -> None:
        """Compile and check the kernels of products, which matrices spared. Collective."""
        fine, disc = self.fine, self.discretization
        fine.multiplies = True
        if disc.options.check_kernels:
            with collectively(disc.mesh.comm), linearization_kept(fine):
                check_sipg(fine)
        if fine.fast is not None:
            fine.fast.update()

    def transposed(self, w, out) -> None:
        """out = Jᵀ w at the state of `linearize`. Collective."""
        self.fine.transposed(self.expand(w), self._expanded["out"])
        self.restrict(self._expanded["out"], out)

    def diagonal(self, out) -> None:
        """out = diagonal of J."""
        self.assembly.diagonal(out)

    def matrices(self) -> np.ndarray:
        """Values of J in the order of the discretization's `matrix_numbers`."""
        return self.assembly.values()

    # Results -----------------------------------------------------------------------------------------------------

    def flux(self, label: str, u, t: float, side: str | None = None) -> np.ndarray:
        """The numerical flux ∫ f1·n over the facets of a named boundary [component], with `side` out of the cells of a
        region. Collective. Raises MeshError for facets inside polytopes."""
        disc = self.discretization
        facets = disc.mesh.boundary_facets(label, side is not None, side)
        inside = disc.mesh.comm.allreduce(int(disc.fine.cut[facets].sum()))
        with collectively(disc.mesh.comm):
            if inside:
                raise MeshError(
                    f"'{label}' holds facets inside polytopes ({inside}), through which poly_gpu has no flux; take "
                    "polytopes that end there (groups= of agglomerate), or problem.integral(…, over=, side=)"
                )
        return self.fine.flux(label, self.expand(u), t, side)
