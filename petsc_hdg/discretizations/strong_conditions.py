"""Numbering where functions satisfy essential conditions strongly, and the facets of natural conditions."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from mpi4py import MPI

from ..codegen import KernelSpec
from ..errors import PhysicsError
from .dofmap import build_dofmap, create_section, dof_nodes, entity_points, point_offsets


def require_facets(mesh, physics) -> None:
    """Raise PhysicsError, on all ranks, for a Dirichlet condition or a boundary flux whose facets all have others that
    are before it in the physics' list. Collective."""
    ordered = sorted((*physics.dirichlet, *physics.boundary_fluxes), key=lambda condition: condition.place)
    held = np.zeros((mesh.num_facets, physics.num_components), bool)
    for condition in ordered if len(ordered) > 1 else ():
        mask = mesh.facet_mask(condition.label)
        mine = np.ix_(mask, [condition.field.offset + c for c in condition.components])
        free, count = mesh.comm.allreduce(np.array([held[mine].size - held[mine].sum(), mask.sum()]))
        if count and not free:
            raise PhysicsError(
                f"physics '{physics.name}': the {condition.kind} condition on '{condition.label}', number "
                f"{condition.place} of the list, holds nowhere: the first condition on a facet holds, and those before "
                "have all of its facets; give the names of parts before the name of the whole"
            )
        held[mine] = True


class StrongConditions:
    """The part of a Discretization that numbers degrees of freedom, some of them essential, and finds the facets of
    natural conditions."""

    @cached_property
    def constrained_components(self) -> tuple[np.ndarray, np.ndarray]:
        """Essential components: mask [point, component] and the condition that sets each [point, component] (-1: none).

        Where conditions meet, the first in the physics' list holds.
        """
        (start, end), (first, last) = self.mesh.dm.getChart(), self.mesh.topology.stratum[self.dim - 1]
        condition = np.full((end - start, self.physics.num_components), -1, dtype=np.int32)
        for number, dirichlet in enumerate(self.physics.dirichlet):
            mask = self.mesh.closure_mask(dirichlet.label)
            mask[first - start : last - start] &= self._without_flux_before(dirichlet)
            for component in (dirichlet.field.offset + c for c in dirichlet.components):
                free = mask & (condition[:, component] < 0)
                condition[free, component] = number
        return condition >= 0, condition

    def _without_flux_before(self, condition) -> np.ndarray:
        """Facets [facet] bool without a boundary flux that is before a condition in the physics' list. Collective."""
        free = np.ones(self.mesh.num_facets, bool)
        for other in self.physics.boundary_fluxes:
            if other.place < condition.place:
                free &= ~self.mesh.facet_mask(other.label)
        return free

    @cached_property
    def dofmap(self):
        """Numbering of degrees of freedom, of a trace those of facets (collective)."""
        return build_dofmap(self.mesh, self.spaces, self.constrained_components[0])

    def _create_section(self, dm):
        return create_section(self.mesh, self.spaces, self.constrained_components[0], dm)

    @cached_property
    def natural_facets(self) -> np.ndarray:
        """Facets of natural conditions [3, facet]: cell, facet of the reference cell, index of the condition. Inside
        the mesh those of conditions with a side, or with one value there. Of boundary fluxes the first holds."""
        rows, numbers = [np.zeros((3, 0), dtype=np.int32)], self.mesh.topology.entity[self.dim - 1]
        for number, condition in enumerate(self.physics.natural):
            cells, facets = self.mesh.boundary_facets(condition.label, condition.may_be_inside, condition.side)
            if condition.kind == "BoundaryFlux":
                holds = self._without_flux_before(condition)[numbers[cells, facets]]
                cells, facets = cells[holds], facets[holds]
            rows.append(np.stack([cells, facets, np.full(len(cells), number)]).astype(np.int32))
        return np.concatenate(rows, axis=1)

    def essential_points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Condition, component and coordinates [value, dim] of each constrained value, for `essential_values`."""
        count = self.dofmap.num_constrained
        condition, component = np.full(count, -1, dtype=np.int32), np.zeros(count, dtype=np.int32)
        x = np.zeros((count, self.dim))
        first = self.dofmap.num_owned + self.dofmap.num_ghosts
        on_point = self.constrained_components[1]
        for part in self.parts:
            compact = part.dofmap.cell_numbers
            touched = np.flatnonzero(compact.ravel() >= first) // compact.shape[1]
            touched = touched[np.append(True, touched[1:] != touched[:-1])[: len(touched)]]  # they ascend
            for space in part.spaces:
                nodes = dof_nodes(part.mesh, space, touched)
                for c in range(space.components):
                    mine = slice(space.first_dof + c, space.first_dof + space.num_dofs, space.components)
                    numbers = compact[touched, mine] - first
                    for basis, points in part.basis_points(space, touched):
                        inside = numbers[:, basis] >= 0
                        at = numbers[inside, basis]
                        condition[at] = on_point[points[inside], space.first_component + c]
                        component[at] = space.first_component + c
                        x[at] = nodes[inside, basis]
        return condition, component, x

    @property
    def essential_auxiliary_components(self) -> int:
        """Components of auxiliary fields, 0 where no essential condition reads them."""
        reads = any("a" in condition.term.program.inputs for condition in self.physics.dirichlet)
        return self.physics.num_auxiliary if reads else 0

    @property
    def essential_macros(self) -> dict[str, int]:
        """Macros of kernels of essential values."""
        return {
            "DIM": self.dim,
            "NCOMP": self.physics.num_components,
            "NCONST": len(self.physics.constants),
            "NA": self.essential_auxiliary_components,
        }

    def essential_auxiliary(self, rows_of_parts: list[np.ndarray]) -> np.ndarray:
        """Auxiliary values [constrained value, component] from rows [row, stride] of each part: the mean of the cells
        around each node. Collective."""
        dofmap, count = self.dofmap, self.dofmap.num_constrained
        sums, on_point = np.zeros((count, 1 + self.physics.num_auxiliary)), np.zeros(count, np.int64)
        for part, rows in zip(self.parts, rows_of_parts, strict=True):
            numbers = part.dofmap.cell_numbers - (dofmap.num_owned + dofmap.num_ghosts)
            touched = np.flatnonzero((numbers >= 0).any(axis=1))
            for space in part.spaces:
                values = part.auxiliary.at(space.element.nodes, rows, touched)[:, :, : self.physics.num_auxiliary]
                for basis, points in part.basis_points(space, touched):
                    for component in range(space.components):
                        at = numbers[touched, space.first_dof + basis * space.components + component]
                        inside = at >= 0
                        np.add.at(sums, at[inside], np.insert(values[inside, basis], 0, 1.0, axis=1))
                        on_point[at[inside]] = points[inside]
        sums = self._over_ranks(sums, on_point)
        return sums[:, 1:] / sums[:, :1]

    def _over_ranks(self, sums: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Sums [constrained value, column] of all ranks that hold the plex point [constrained value]. Collective."""
        exchange = self.mesh.exchange
        if not exchange.active:
            return sums
        known, which = np.unique(points, return_inverse=True)
        offsets = point_offsets(self.mesh, [part.spaces for part in self.parts])[1][known].astype(np.int64)
        places = self.dofmap.constrained - offsets[which] if len(known) else points
        found, (start, end) = sums.copy(), exchange.chart
        for place in range(self.mesh.comm.allreduce(int(places.max(initial=-1)), MPI.MAX) + 1):
            here = places == place
            for column in range(sums.shape[1]):
                on_points = np.zeros(end - start)
                on_points[points[here]] = sums[here, column]
                found[here, column] = exchange.sum(on_points)[points[here]]
        return found

    def basis_points(self, space, cells):
        """(basis function, plex point [cell] it belongs to) of a field."""
        for dimension, entities in enumerate(space.element.entity_dofs):
            if any(entities):
                points = entity_points(self.mesh, dimension)[cells]
                for number, on_entity in enumerate(entities):
                    for basis in on_entity:
                        yield basis, points[:, number]

    def essential_spec(self, name: str = "essential_values") -> KernelSpec:
        """Spec of `essential_values` or `essential_rates`."""
        macros, precision, size = self.essential_macros, self.options.precision, self.limits.group(32)
        return KernelSpec(name, ("essential.cl",), macros, {}, self.physics_text, precision, size)
