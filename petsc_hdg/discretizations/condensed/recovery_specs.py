"""Kernel specs of what follows a condensed solve: gradient, superconvergent solution, errors."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...codegen import KernelSpec, Launch
from ...reference import ReferenceElement, cell_quadrature, facet_quadrature, tabulate
from .arguments import ARGUMENTS

STAR_THREADS = {True: 64, False: 1}  # of a work-group, on a GPU and on a CPU


class RecoverySpecs:
    """Macros, tables and launch shapes of the kernels hdg_collect, hdg_gradient, hdg_star, hdg_error and
    hdg_integral (integral_specs.py).

    disc: a condensed discretization.
    """

    def __init__(self, disc):
        self.disc = disc
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
        points, count = self.gradient_element.nodes, self.gradient_element.num_basis
        size = self.disc.limits.group(64)
        return self.spec("hdg_gradient", {"NPOINTS": count}, self.tables(points), size, items=count, row="stride")

    def star_spec(self) -> KernelSpec:
        """Spec of `hdg_star`: a work-group per cell, whose working memory is local where that suffices."""
        nbytes = self.disc.real_bytes * self.star_scratch
        local = nbytes <= self.disc.limits.local_bytes
        macros = {
            "NQ": self.star_quadrature.num_points,
            "NSTAR": self.star_element.num_basis,
            "THREADS": self.star_threads,
            "SCRATCH": "__local" if local else "__global",
            "SCRATCH_IS_LOCAL": int(local),
        }
        threads = self.star_threads
        return self.spec("hdg_star", macros, self._star_tables(), threads, nbytes * local, items=threads)

    def _star_tables(self) -> dict[str, np.ndarray]:
        """Tables of `hdg_star`: matrices of the reference cell where cells are affine, else tables at points."""
        rule = self.star_quadrature
        star = self.star_element.tabulate(rule.points)
        tables = {**self.tables(rule.points), "WEIGHTS": rule.weights}
        if not self.disc.is_affine:
            return {**tables, "STAR": star[0], "STAR_GRAD": np.moveaxis(star[1:], 0, 1)}
        lifted, free = np.moveaxis(tables["OP"], 1, 0), star[..., :-1]
        means = rule.weights @ np.concatenate([free[0], lifted[0]], axis=1) / rule.weights.sum()
        stiffness, lifted = self._metric_terms(free[1:], free[1:]), self._metric_terms(lifted[1:], free[1:])
        return {"AUX_START": tables["AUX_START"], "STIFFNESS": stiffness, "LIFTED": lifted, "MEANS": means}

    def _metric_terms(self, trial: np.ndarray, test: np.ndarray) -> np.ndarray:
        """∫ trial_r test_s on the reference cell [term, trial, test] for gradients [dim, point, function].

        A term is an entry r ≤ s of the metric; it has the products (r, s) and (s, r).
        """
        weighted, dim = self.star_quadrature.weights[:, None] * test, self.disc.dim
        pairs = [{(r, s), (s, r)} for r in range(dim) for s in range(r, dim)]
        return np.stack([sum(trial[r].T @ weighted[s] for r, s in pair) for pair in pairs])

    @property
    def star_scratch(self) -> int:
        """Reals of working memory that a cell takes in `hdg_star`."""
        n, c, d = self.star_element.num_basis - 1, self.disc.components, self.disc.dim
        at_points = self.star_quadrature.num_points * (d * d + c * d + 1 + c) + n
        return n * n + c * n + (0 if self.disc.is_affine else at_points)

    def jumps_spec(self) -> KernelSpec:
        """Spec of `hdg_jumps`, which reads no physics and no geometry."""
        disc, points = self.disc, self.jump_tables()[1].size
        sizes = {"NI": disc.num_interior, "NT": disc.num_trace, "NC": disc.components, "NPOINTS": points}
        sources = ("hdg_jumps.cl",)
        return KernelSpec("hdg_jumps", sources, sizes, precision=disc.options.precision, local_size=64)

    def jump_tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """u - û [function, point], weights [point] of all facets, and the mean [function] of u."""
        disc, degree = self.disc, 2 * self.disc.cell_element.degree
        rule = cell_quadrature(disc.mesh.cell, degree)
        mean = rule.weights @ disc.cell_element.tabulate(rule.points, 0)[0] / rule.weights.sum()
        weights = np.concatenate([facet.weights for facet in facet_quadrature(disc.mesh.cell, degree)[0]])
        jumps = disc.lift.jumps(degree).reshape(len(weights), -1)
        return np.ascontiguousarray(jumps.T), weights, mean

    def spec(self, name, macros: dict, tables: dict, local_size=0, local_bytes=0, files=(), items=1, row=""):
        """The KernelSpec of a kernel of `files` (that of its name), whose work-items share nothing without local_size.
        items, row: of its Launch."""
        disc = self.disc
        point = ("geometry.clh", "point.clh")
        sources = (*point, "hdg_recovery.clh", *(files or (f"{name}.cl",)))
        macros = {**disc.point_macros(), "NFUN": disc.num_functions, **macros}
        how = {"rows": macros.get("NOBJ", 0), "arguments": ARGUMENTS[name], "launch": Launch(1, items, row)}
        size = local_size or disc.limits.group(32)
        return disc.kernel_spec(name, sources, macros, tables, size, local_bytes, **how)
