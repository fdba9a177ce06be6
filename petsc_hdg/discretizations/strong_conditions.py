"""Essential conditions that functions satisfy strongly, and the facets of natural conditions."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..codegen import KernelSpec
from .dofmap import dof_nodes, entity_points


class StrongConditions:
    """The part of a Discretization that finds essential degrees of freedom and the facets of natural conditions."""

    @cached_property
    def constrained_components(self) -> tuple[np.ndarray, np.ndarray]:
        """Essential components: mask [point, component] and the condition that sets each [point, component] (-1: none).

        Where conditions meet, the first in the physics' list holds.
        """
        start, end = self.mesh.dm.getChart()
        condition = np.full((end - start, self.physics.num_components), -1, dtype=np.int32)
        for number, dirichlet in enumerate(self.physics.dirichlet):
            mask = self.mesh.closure_mask(dirichlet.label)
            for component in (dirichlet.field.offset + c for c in dirichlet.components):
                free = mask & (condition[:, component] < 0)
                condition[free, component] = number
        return condition >= 0, condition

    @cached_property
    def natural_facets(self) -> np.ndarray:
        """Facets of natural conditions [3, facet]: cell, facet of the reference cell, index of the condition. Inside
        the mesh those of conditions with a side, or with one value there."""
        rows = [np.zeros((3, 0), dtype=np.int32)]
        for number, condition in enumerate(self.physics.natural):
            cells, facets = self.mesh.boundary_facets(condition.label, condition.may_be_inside, condition.side)
            rows.append(np.stack([cells, facets, np.full(len(cells), number)]).astype(np.int32))
        return np.concatenate(rows, axis=1)

    def essential_points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Condition, component and coordinates [value, dim] of each constrained value, for `essential_values`."""
        count = self.dofmap.num_constrained
        condition, component = np.full(count, -1, dtype=np.int32), np.zeros(count, dtype=np.int32)
        x = np.zeros((count, self.dim))
        first = self.dofmap.num_owned + self.dofmap.num_ghosts
        compact = self.dofmap.cell_numbers
        touched = np.unique(np.flatnonzero(compact.ravel() >= first) // compact.shape[1])
        on_point = self.constrained_components[1]
        for space in self.spaces:
            nodes = dof_nodes(self.mesh, space, touched)
            for c in range(space.components):
                mine = slice(space.first_dof + c, space.first_dof + space.num_dofs, space.components)
                numbers = compact[touched, mine] - first
                for basis, points in self.basis_points(space, touched):
                    inside = numbers[:, basis] >= 0
                    at = numbers[inside, basis]
                    condition[at] = on_point[points[inside], space.first_component + c]
                    component[at] = space.first_component + c
                    x[at] = nodes[inside, basis]
        return condition, component, x

    def basis_points(self, space, cells):
        """(basis function, plex point [cell] it belongs to) of a field."""
        for dimension, entities in enumerate(space.element.entity_dofs):
            if entities[0]:
                points = entity_points(self.mesh, dimension)[cells]
                for number, on_entity in enumerate(entities):
                    for basis in on_entity:
                        yield basis, points[:, number]

    def essential_spec(self, name: str = "essential_values") -> KernelSpec:
        """Spec of `essential_values` or `essential_rates`."""
        macros = {"DIM": self.dim, "NCOMP": self.physics.num_components, "NCONST": len(self.physics.constants)}
        return KernelSpec(name, ("essential.cl",), macros, {}, self.physics_text, self.options.precision, 32)
