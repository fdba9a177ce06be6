"""Kernel specs of what follows a condensed solve: gradient, superconvergent solution, errors, fluxes."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...codegen import KernelSpec
from ...reference import ReferenceElement, cell_quadrature, tabulate
from ..large_tables import place_tables

STAR_THREADS = {True: 64, False: 1}  # of a work-group, on a GPU and on a CPU


class RecoverySpecs:
    """Macros, tables and launch shapes of the kernels hdg_collect, hdg_gradient, hdg_star, hdg_flux, hdg_error and
    hdg_integral (integral_specs.py).

    disc: a condensed discretization.   global_tables: kernel → tables too large for constant memory.
    """

    def __init__(self, disc):
        self.disc = disc
        self.global_tables: dict[str, np.ndarray] = {}
        self.star_threads = STAR_THREADS[disc.limits.is_gpu]

    @cached_property
    def gradient_element(self) -> ReferenceElement:
        """The element at whose nodes the gradient is given: in straight simplices it holds the gradient itself."""
        return self.disc.lift.element if self.disc.has_jumps else self.disc.cell_element

    @cached_property
    def star_element(self) -> ReferenceElement:
        """The element of u*."""
        return ReferenceElement(self.disc.mesh.cell, self.disc.cell_element.degree + 1)

    @cached_property
    def star_quadrature(self):
        """A rule for products of gradients of u*."""
        degree = max(self.disc.quadrature_degree, 2 * self.star_element.degree)
        return cell_quadrature(self.disc.mesh.cell, degree)

    def collect_spec(self) -> KernelSpec:
        """Spec of `hdg_collect`."""
        macros = {"NINT": self.disc.num_eliminated, "NDOF": self.disc.num_trace_dofs}
        sources = ("gather_tvector.clh", "hdg_collect.cl")
        return KernelSpec("hdg_collect", sources, macros, precision=self.disc.options.precision, local_size=64)

    def tables(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """Tables of the functions and of the geometry at points [point, dim]."""
        geometry = tabulate(self.disc.geometry_element, points)
        return {
            "AUX_START": self.disc.auxiliary.starts,
            "OP": self.disc.operator_table(points),
            "GEO": geometry.values,
            "GEO_GRAD": geometry.gradients,
        }

    def gradient_spec(self) -> KernelSpec:
        """Spec of `hdg_gradient`, at the nodes of `gradient_element`."""
        points = self.gradient_element.nodes
        return self.spec("hdg_gradient", {"NPOINTS": len(points)}, self.tables(points), 64)

    def star_spec(self) -> KernelSpec:
        """Spec of `hdg_star`: a work-group a cell, whose working memory is local where that suffices."""
        rule, limits = self.star_quadrature, self.disc.limits
        star = tabulate(self.star_element, rule.points)
        gradients = np.ascontiguousarray(np.swapaxes(star.gradients, 1, 2))
        tables = {**self.tables(rule.points), "STAR": star.values, "STAR_GRAD": gradients, "WEIGHTS": rule.weights}
        local = self.disc.real_bytes * self.star_scratch <= limits.local_bytes
        macros = {
            "NQ": rule.num_points,
            "NSTAR": self.star_element.num_basis,
            "THREADS": self.star_threads,
            "SCRATCH": "__local" if local else "__global",
            "SCRATCH_IS_LOCAL": int(local),
        }
        return self.spec(
            "hdg_star", macros, tables, macros["THREADS"], self.disc.real_bytes * self.star_scratch * local
        )

    @property
    def star_scratch(self) -> int:
        """Reals of working memory that a cell takes in `hdg_star`."""
        n, q, c, d = self.star_element.num_basis, self.star_quadrature.num_points, self.disc.components, self.disc.dim
        return n * n + c * n + n + q * (d * d + c * d + 1 + c) + 1 + c

    def flux_spec(self) -> KernelSpec:
        """Spec of `hdg_flux`."""
        disc = self.disc
        tables = {**disc.cell_tables(disc.quadrature), **disc.facet_tables()}
        gradients = tables["OP"][:, 1:, disc.num_interior :]
        shape = (*gradients.shape[:2], disc.num_facets_of_cell, -1)
        tables["ONES"] = np.ascontiguousarray(gradients.reshape(shape).sum(axis=-1))
        macros = {"NQ": disc.quadrature.num_points, "NQF": tables["FACET_WEIGHTS"].shape[1]}
        return self.spec("hdg_flux", macros, tables, 32, headers=("gather_tvector.clh", "condense_point.clh"))

    def spec(self, name: str, macros: dict, tables: dict, local_size: int, local_bytes=0, headers=(), files=()):
        """The KernelSpec of a kernel of `files` (that of its name); tables too large go to `global_tables`."""
        disc = self.disc
        tables, placed = place_tables(tables, disc.real_bytes)
        self.global_tables[name] = placed.values
        point = ("geometry.clh", "geometry_nodes.clh", "point.clh")
        sources = (*point, *headers, "hdg_recovery.clh", *(files or (f"{name}.cl",)))
        macros = {**disc.point_macros(), "NFUN": disc.num_functions, **macros, **placed.macros}
        text, precision = disc.physics_text, disc.options.precision
        return KernelSpec(name, sources, macros, tables, text, precision, local_size, local_bytes)
