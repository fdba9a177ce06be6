"""Continuous Galerkin with the interior of each cell eliminated (static condensation), in the pipeline of HDG."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...errors import OptionError
from ...reference import ReferenceElement, facet_quadrature
from .scheme import CondensedDiscretization


@dataclass(frozen=True)
class SkeletonElement:
    """The functions of a Lagrange element that belong to vertices, edges and faces, which come first in it."""

    whole: ReferenceElement

    @property
    def degree(self) -> int:
        return self.whole.degree

    @property
    def num_basis(self) -> int:
        return self.whole.num_basis - len(self.whole.entity_dofs[-1][0])

    @property
    def nodes(self) -> np.ndarray:
        """Nodes [basis, dim] in reference coordinates."""
        return self.whole.nodes[: self.num_basis]

    @property
    def entity_dofs(self) -> list[list[list[int]]]:
        """Basis functions of each sub-entity; the interior has none here."""
        return [*self.whole.entity_dofs[:-1], [[]]]


class CondensedCG(CondensedDiscretization):
    """The scheme `cg_gpu` with `-cg_condense`: Lagrange elements whose cells' interiors are eliminated."""

    name = "cg_gpu"
    degrees = (1, 9)

    @property
    def title(self) -> str:
        return f"{self.name} with -{self.options.prefix}cg_condense"

    def _check_physics(self) -> None:
        if any(f.degree_offset != self.physics.fields[0].degree_offset for f in self.physics.fields):
            raise OptionError("-cg_condense takes fields of one degree; leave it out for this physics")
        if self.physics.uses_time_derivative:
            raise OptionError("-cg_condense takes a steady physics; leave it out where u_t is used")
        super()._check_physics()

    @cached_property
    def trace_element(self) -> SkeletonElement:
        return SkeletonElement(ReferenceElement(self.mesh.cell, self.options.degree))

    @property
    def num_interior(self) -> int:
        return self.cell_element.num_basis - self.num_trace

    @property
    def product_degree(self) -> int:
        return self.options.degree

    def operator_table(self, points: np.ndarray) -> np.ndarray:
        """Values and reference gradients [point, 1 + dim, function], interior functions first."""
        table = np.roll(self.cell_element.tabulate(points), self.num_interior, axis=2)
        return np.ascontiguousarray(np.moveaxis(table, 0, 1))

    def facet_operator_table(self, degree: int) -> np.ndarray:
        """The same [facet, point, 1 + dim, function] at the points of facets' rules of a degree."""
        rules = facet_quadrature(self.mesh.cell, degree)[0]
        return np.stack([self.operator_table(rule.points) for rule in rules])
