"""The consistent flux of continuous Galerkin: what the rows of the residual at essential nodes say of f1·n.

A test function that is 1 makes ∫ f0 out of the residual's volume terms. The rows of free nodes vanish at a solution;
those of essential nodes are ∫ φ f1·n by the scheme itself, and with what natural conditions give they balance the
sources to rounding (Hughes et al., J. Comput. Phys. 163, 2000). Facets have their own ∫ φ f1·n, and all facets around
a node where it is essential equal shares of what is left: names that meet at a node share it so.
"""

from __future__ import annotations

import numpy as np

from ...device import Kernel
from ...discretizations.base import cell_fastest, padded
from ...discretizations.dofmap import entity_points

GIVEN_BY = -1  # condition of facets whose flux is f1·n


class ConsistentFlux:
    """Fluxes of a CGOperator through named boundaries. Making one is collective."""

    def __init__(self, operator):
        self.operator = operator
        self.disc = disc = operator.discretization
        self._essential = self._of_sides(disc.constrained_components[0])  # [cell, facet of the cell, component]
        cells, local = np.nonzero(self._essential.any(axis=2))  # both sides of interior ones
        essential = np.stack([cells, local, np.full_like(cells, GIVEN_BY)]).astype(np.int32)
        self._cells, self._local, self._condition = np.concatenate([essential, disc.natural_facets], axis=1)
        self._around = [disc.mesh.facets_around(self._essential[..., c]) for c in range(disc.physics.num_components)]
        self._kernel = Kernel(disc.flux_spec(), operator.device)

    def __call__(self, label: str, u, t: float) -> np.ndarray:
        """The flux through the exterior facets of a named boundary [component]. Collective."""
        disc, mesh = self.disc, self.disc.mesh
        there = np.zeros(self._essential.shape[:2], bool)
        there[mesh.boundary_facets(label)] = True
        state, rest = self.operator.current.use(u), self.operator.rest
        self.operator.update_essential(state, t), self.operator.update_essential(rest, t)
        rows = self._facet_rows(state, rest, t)  # [facet, dof]
        through = rows[there[self._cells, self._local]].sum(axis=0)
        if not disc.physics.uses_time_derivative:
            through = through + self._left_over(there, rows, state, rest, t)
        total = np.bincount(disc.dof_components, weights=through, minlength=disc.physics.num_components)
        return mesh.comm.allreduce(total)

    def _left_over(self, there: np.ndarray, rows: np.ndarray, state, rest, t: float) -> np.ndarray:
        """What facets leave of the rows at essential nodes: the part that sides [cell, facet of the cell] have,
        from this rank's cells [dof]. Collective."""
        operator, disc = self.operator, self.disc
        operator.run_cells("cg_residual", operator._element, state=state, rate=rest, t=t)
        size = disc.num_dofs * disc.stride
        volumes = disc.of_cells(operator.arrays.to_host(operator._element, size, name="fluxes").astype(float))
        np.subtract.at(volumes, self._cells, rows)
        return np.einsum("cd,cd->d", self._shares(there), volumes)

    def _facet_rows(self, state, rest, t: float) -> np.ndarray:
        """∫ φ j of each facet and each function of its cell [facet, dof]: j is f1·n, or what is given."""
        operator, disc, count = self.operator, self.disc, len(self._cells)
        stride = padded(count)
        flags = self._essential[self._cells, self._local]
        numbers = np.column_stack([self._cells, self._local, self._condition, flags]).astype(np.int32)
        facets = operator.arrays.to_device(cell_fastest(numbers, stride), "facets")
        out = operator.arrays.zeros(disc.num_dofs * stride)
        self._kernel(count, *operator.arguments(self._kernel, count, state, rest, t=t), stride, 0, facets, out)
        return operator.arrays.to_host(out, (disc.num_dofs, stride), name="fluxes")[:, :count].T.astype(float)

    def _of_sides(self, on_points: np.ndarray) -> np.ndarray:
        """What points have [point, …] by sides of this rank's cells [cell, facet of the cell, …]."""
        return on_points[entity_points(self.disc.mesh, self.disc.dim - 1)]

    def _shares(self, there: np.ndarray) -> np.ndarray:
        """Part [cell, dof] of each essential node that some sides [cell, facet of the cell] have. Collective."""
        disc = self.disc
        shares, everything = np.zeros((disc.mesh.num_cells, disc.num_dofs)), slice(None)
        for space in disc.spaces:
            for c in range(space.components):
                component = space.first_component + c
                mine = disc.mesh.facets_around(there & self._essential[..., component])
                part = mine / np.maximum(self._around[component], 1)
                for basis, points in disc.basis_points(space, everything):
                    shares[:, space.first_dof + basis * space.components + c] = part[points]
        return shares
