"""Hybridizable DG: u in P_k or Q_k of each cell, its trace on the facets, the gradient lifted from both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from mpi4py import MPI

from ...codegen import KernelSpec
from ...database import is_number
from ...reference import ReferenceElement, cell_quadrature, facet_quadrature
from ..dofmap import element_nodes, entity_points
from ..trace.element import TraceElement
from .hdg_checks import check_flux, check_hdg, stabilized, warn_of_foreign_diffusion
from .scheme import CondensedDiscretization

MOST_DEGREE = {"triangle": 9, "quadrilateral": 9, "tetrahedron": 5, "hexahedron": 5}
NOTHING = 1e-10  # of the largest value, below which functions vanish
SHORTER = 1 / 3  # lengths over which solutions of nonlinear physics vary, of those of the mesh


@dataclass(frozen=True)
class Lift:
    """q̃ of (q̃, w) = (∇u, w) - <u - û, w·n> for all w, all in the frame of the reference cell.

    This is q of LDG-H (King et al. 2014, eq. 5c) with the mass matrix inverted once for all cells (eq. 10 and 11);
    the physical gradient is J^-T q̃, on curved cells as well.

    interior  element of u
    trace     element of û
    element   element of each component of q̃
    """

    interior: ReferenceElement
    trace: TraceElement
    element: ReferenceElement

    @property
    def num_functions(self) -> int:
        """Functions of u and of û."""
        return self.interior.num_basis + self.trace.num_basis

    @cached_property
    def gradient(self) -> np.ndarray:
        """Coefficients of q̃ [dim, basis, function], interior functions first."""
        return np.linalg.solve(self.mass, self.moments)

    @cached_property
    def moments(self) -> np.ndarray:
        """(∂_r u, w) - <u - û, w n_r> [dim, basis, function]."""
        degree = self.interior.degree + self.element.degree
        rule = cell_quadrature(self.interior.cell, degree)
        test = self.element.tabulate(rule.points, 0)[0]
        trial = self.interior.tabulate(rule.points)[1:]
        right = -self._boundary(degree)
        right[:, :, : self.interior.num_basis] += np.einsum("q,qi,rqj->rij", rule.weights, test, trial)
        return right

    @cached_property
    def mass(self) -> np.ndarray:
        """Mass matrix [basis, basis] of a component of q̃ on the reference cell."""
        rule = cell_quadrature(self.interior.cell, 2 * self.element.degree)
        test = self.element.tabulate(rule.points, 0)[0]
        return np.einsum("q,qi,qj->ij", rule.weights, test, test)

    def _boundary(self, degree: int) -> np.ndarray:
        """∮ w_i (u_j - û_j) n_r on the reference cell [dim, basis, function]."""
        rules, normals = facet_quadrature(self.interior.cell, degree)
        jumps = self.jumps(degree)
        total = np.zeros((normals.shape[1], self.element.num_basis, self.num_functions))
        for rule, normal, jump in zip(rules, normals, jumps, strict=True):
            test = self.element.tabulate(rule.points, 0)[0]
            total += normal[:, None, None] * np.einsum("q,qi,qj->ij", rule.weights, test, jump)
        return total

    def jumps(self, degree: int) -> np.ndarray:
        """u - û [facet, point, function] at the points of the facets' rules of a degree."""
        values = self.trace_values(degree)
        rules = facet_quadrature(self.interior.cell, degree)[0]
        inside = np.stack([self.interior.tabulate(rule.points, 0)[0] for rule in rules])
        values[:, :, : self.interior.num_basis] = inside
        values[:, :, self.interior.num_basis :] *= -1
        return values

    def trace_values(self, degree: int) -> np.ndarray:
        """û [facet, point, function] at the points of the facets' rules of a degree; interior functions have none."""
        on_facet = self.trace.facet_table(degree)
        count, nodes = on_facet.shape
        facets = self.trace.num_basis // nodes
        values = np.zeros((facets, count, self.num_functions))
        for facet in range(facets):
            first = self.interior.num_basis + facet * nodes
            values[facet, :, first : first + nodes] = on_facet
        return values

    def table(self, points: np.ndarray) -> np.ndarray:
        """q̃ [dim, point, function] at points [point, dim] of the reference cell."""
        return np.einsum("qk,rkj->rqj", self.element.tabulate(points, 0)[0], self.gradient, optimize=True)


class HybridizedDG(CondensedDiscretization):
    """Numbering, arrays, tables and kernel specs of the scheme `hdg_gpu`; pure data, no device.

    For all v in the cells and μ on the skeleton, with q(u, û) the lifted gradient (see Lift):
        ∫ v·f0(u, q) + q(v, μ):f1(u, q) dx + ∮ τ (u - û)·(v - μ) ds + ∫_Γ μ·f0_bd(û, q) + q(v, μ):f1_bd(û, q) ds = 0,
    û = P g on Γ_D.
    Where f1 is linear with constant coefficients this is LDG-H (King et al. 2014, eq. 4 and 5); the trace system is
    symmetric wherever the physics is.
    """

    name = "hdg_gpu"
    has_jumps = True

    @classmethod
    def prepared(cls, physics, options, dim: int):
        """The physics with the stabilization of `-hdg_tau`, if that is no number."""
        return physics if is_number(options.hdg_tau) else stabilized(physics, options, dim)

    @property
    def degrees(self) -> tuple[int, int]:
        """Degrees the scheme takes on this cell shape."""
        return 0, MOST_DEGREE[self.mesh.cell]

    def _check_physics(self) -> None:
        check_hdg(self.physics, self.dim)
        if self.mesh.comm.rank == 0:
            warn_of_foreign_diffusion(self.physics, self.dim)
        check_flux(self.physics, self.options)
        super()._check_physics()

    @cached_property
    def trace_element(self) -> TraceElement:
        return TraceElement(self.mesh.cell, self.options.degree)

    @cached_property
    def lift(self) -> Lift:
        """The lift into P_k, on tensor cells into Q_{k+1}: with Q_k the gradient converges with order k + 1/2 only."""
        enriched = self.options.hdg_enrich and not self.mesh.shape.is_simplex
        element = ReferenceElement(self.mesh.cell, self.options.degree + int(enriched))
        return Lift(self.cell_element, self.trace_element, element)

    @property
    def num_interior(self) -> int:
        return self.cell_element.num_basis

    @property
    def product_degree(self) -> int:
        return self.lift.element.degree

    @cached_property
    def block_size(self) -> int:
        """Unknowns of a facet, unless a facet is essential in some of its components only. Collective."""
        mixed = self.constrained_components[0]
        mixed = (mixed.any(axis=1) & ~mixed.all(axis=1)).any()
        if self.mesh.comm.allreduce(bool(mixed), MPI.LOR):
            return 1
        return self.trace_element.num_facet_basis * self.components

    @cached_property
    def lengths(self) -> np.ndarray:
        """Lengths [dim] by which a diffusivity becomes a stabilization: the extents of the box around the mesh, or
        SHORTER times those for nonlinear physics. Collective at first use."""
        return np.ptp(self.mesh.corners, axis=0) * (1 if self.physics.is_linear else SHORTER)

    def operator_table(self, points: np.ndarray) -> np.ndarray:
        """Values of u and reference gradients q̃ [point, 1 + dim, function] at reference points [point, dim]."""
        values = np.zeros((1, len(points), self.num_functions))
        values[0, :, : self.num_interior] = self.cell_element.tabulate(points, 0)[0]
        return np.ascontiguousarray(np.moveaxis(np.concatenate([values, self.lift.table(points)]), 0, 1))

    def facet_operator_table(self, degree: int) -> np.ndarray:
        """Values of û and gradients q̃ [facet, point, 1 + dim, function] at the points of facets' rules of a degree."""
        rules = facet_quadrature(self.mesh.cell, degree)[0]
        tables = np.stack([self.operator_table(rule.points) for rule in rules])
        tables[:, :, 0] = self.lift.trace_values(degree)
        return tables

    def test_table(self) -> np.ndarray:
        """Values and plain reference gradients of u [point, 1 + dim, function] inside the cell; 0 of the trace."""
        points = self.quadrature.points
        table = np.zeros((len(points), 1 + self.dim, self.num_functions))
        table[:, :, : self.num_interior] = np.moveaxis(self.cell_element.tabulate(points), 0, 1)
        return table

    def side_table(self) -> np.ndarray:
        """û, gradients q̃ and u [facet, point, 2 + dim, function] at the points of facets."""
        inside = np.array(self.jump_table())
        inside[:, :, self.num_interior :] = 0
        return np.concatenate([self.facet_operator_table(self.quadrature_degree), inside[:, :, None]], axis=2)

    def jump_table(self) -> np.ndarray:
        """u - û [facet, point, function]."""
        return self.lift.jumps(self.quadrature_degree)

    def facet_functions(self) -> np.ndarray:
        """Functions [facet, count] that do not vanish on each facet; any others too where other facets have more."""
        size = np.abs(self.jump_table()).max(axis=1)
        on_facet = size > NOTHING * size.max()
        order = np.argsort(~on_facet, axis=1, kind="stable")
        return np.sort(order[:, : on_facet.sum(axis=1).max()], axis=1).astype(np.int32)

    def essential_points(self) -> tuple[np.ndarray, ...]:
        """Of each constrained value, for `essential_projections`: condition, component, node of its facet and row
        of the coordinates [row, point, dim] of the facets' quadrature points.
        """
        count, nc, nodes = self.dofmap.num_constrained, self.components, self.trace_element.num_facet_basis
        condition, component, node, row = np.zeros((4, count), dtype=np.int32)
        cells, facets, numbers = self._essential_sides()
        points = entity_points(self.mesh, self.dim - 1)[cells, facets]
        for k in range(nodes):
            for c in range(nc):
                at = numbers[:, k, c]
                here = at >= 0
                condition[at[here]] = self.constrained_components[1][points[here], c]
                component[at[here]], node[at[here]], row[at[here]] = c, k, np.flatnonzero(here)
        rules = facet_quadrature(self.mesh.cell, self.projection_degree)[0]
        x = np.zeros((len(cells), rules[0].num_points, self.dim))
        for facet, rule in enumerate(rules):
            x[facets == facet] = element_nodes(self.mesh, rule.points, cells[facets == facet])
        return condition, component, node, row, x

    def _essential_sides(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cells, their facets [side], and numbers [side, node, component] of constrained values, negative of others."""
        nodes = self.trace_element.num_facet_basis
        numbers = self.dofmap.cell_numbers - (self.dofmap.num_owned + self.dofmap.num_ghosts)
        numbers = numbers.reshape(self.mesh.num_cells, self.num_facets_of_cell, nodes, self.components)
        cells, facets = np.nonzero((numbers >= 0).any(axis=(2, 3)))
        return cells, facets, numbers[cells, facets]

    def essential_auxiliary(self, rows_of_parts: list[np.ndarray]) -> np.ndarray:
        """Auxiliary values [side, point, component] at the points of `essential_points`, inside the mesh the mean of
        both cells. Collective."""
        cells, facets, _ = self._essential_sides()
        rules = facet_quadrature(self.mesh.cell, self.projection_degree)[0]
        found = np.zeros((len(cells), rules[0].num_points, self.physics.num_auxiliary))
        for facet, rule in enumerate(rules):
            values = self.auxiliary.at(rule.points, rows_of_parts[0], cells[facets == facet])
            found[facets == facet] = values[:, :, : found.shape[2]]
        return self._mean_of_sides(found, entity_points(self.mesh, self.dim - 1)[cells, facets])

    def _mean_of_sides(self, values: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Means over the sides of each facet, of all ranks, of values [side, point, component] at sides with plex
        points [side]. Collective."""
        exchange, size = self.mesh.exchange, np.ptp(self.mesh.exchange.chart)
        count = exchange.sum(np.bincount(points, minlength=size).astype(float))[points]
        if not self.mesh.comm.allreduce(bool((count > 1).any()), MPI.LOR):
            return values
        for place in np.ndindex(values.shape[1:]):
            sums = np.bincount(points, values[(slice(None), *place)], minlength=size)
            values[(slice(None), *place)] = exchange.sum(sums)[points] / count
        return values

    def essential_spec(self, name: str = "essential_projections") -> KernelSpec:
        """Spec of `essential_projections`."""
        table = self.projection()
        macros = {**self.essential_macros, "NQF": table.shape[1]}
        tables, precision, size = {"PROJECTION": table}, self.options.precision, self.limits.group(32)
        return KernelSpec(name, ("essential_projection.cl",), macros, tables, self.physics_text, precision, size)

    @property
    def projection_degree(self) -> int:
        """Degree of the rule for the projection: with that of the residual q loses half an order on tetrahedra."""
        return self.quadrature_degree + 2

    def projection(self) -> np.ndarray:
        """L2 projection onto the trace of one facet, in the facet's frame [node, point]."""
        table = self.trace_element.facet_table(self.projection_degree)
        weights = facet_quadrature(self.mesh.cell, self.projection_degree)[0][0].weights
        return np.linalg.solve(table.T @ (weights[:, None] * table), table.T * weights)
