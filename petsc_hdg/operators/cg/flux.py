"""The consistent flux of continuous Galerkin: what the rows of the residual at essential nodes say of f1·n.

A test function that is 1 makes ∫ f0 out of the residual's volume terms. The rows of free nodes vanish at a solution;
those of essential nodes are ∫ φ f1·n by the scheme itself, and with what natural conditions give they balance the
sources to rounding (Hughes et al., J. Comput. Phys. 163, 2000). Facets have their own ∫ φ f1·n, and all facets around
a node where it is essential equal shares of what is left: names that meet at a node share it so.

From the side of a region the same is done with its cells alone. Its facets that have a cell of the mesh behind them
take part in all components, whatever conditions they have.
"""

from __future__ import annotations

import numpy as np

from ...device import Kernel
from ...discretizations.dofmap import entity_points

GIVEN_BY = -1  # condition of facets whose flux is f1·n


class ConsistentFlux:
    """Fluxes of a CGOperator through named boundaries. Making one is collective. Raises MeshError.

    kernel: of the discretization's `flux_spec`.   side: name of the region that sees the facets; None: the whole mesh.
    """

    def __init__(self, operator, kernel: Kernel, side: str | None = None):
        self.operator, self._kernel, self._side = operator, kernel, side
        self.disc = disc = operator.discretization
        mesh = disc.mesh
        self._inside = np.ones(mesh.num_cells, bool) if side is None else mesh.cell_mask(side)
        facets, mine = mesh.topology.entity[mesh.dim - 1][: mesh.num_cells], self._inside[:, None]
        seen = mesh.exchange_facets(np.bincount(facets[self._inside].ravel(), minlength=mesh.num_facets))
        border = mine & (seen == 1)[facets] & ~mesh.exterior[facets]  # between the region and others
        essential = self._of_sides(disc.constrained_components[0])  # both sides of interior ones
        self._open = mine[..., None] & essential | border[..., None]  # [cell, facet of the cell, component]: f1·n
        natural = disc.natural_facets
        natural = natural[:, self._inside[natural[0]] & ~border[natural[0], natural[1]]]
        cells, local = np.nonzero(self._open.any(axis=2))
        found = np.stack([cells, local, np.full_like(cells, GIVEN_BY)]).astype(np.int32)
        self._cells, self._local, self._condition = np.concatenate([found, natural], axis=1)
        self._around = [mesh.facets_around(self._open[..., c]) for c in range(disc.physics.num_components)]

    def __call__(self, label: str, u, t: float) -> np.ndarray:
        """The flux through the facets of a named boundary [component]. Collective. Raises MeshError."""
        disc, mesh = self.disc, self.disc.mesh
        there = np.zeros(self._open.shape[:2], bool)
        there[mesh.boundary_facets(label, self._side is not None, self._side)] = True
        state, rest = self.operator.current.use(u), self.operator.rest
        self.operator.update_essential(state, t), self.operator.update_essential(rest, t)
        rows = self._facet_rows(state, rest, t)  # [facet, dof]
        through = rows[there[self._cells, self._local]].sum(axis=0)
        if not disc.physics.uses_time_derivative:
            through = through + self._left_over(there, rows, state, rest, t)
        total = np.bincount(disc.dof_components, weights=through, minlength=disc.physics.num_components)
        return mesh.comm.allreduce(total)

    def _left_over(self, there: np.ndarray, rows: np.ndarray, state, rest, t: float) -> np.ndarray:
        """Rests of the rows at nodes of facets with f1·n beside these: the share of sides [cell, facet of the cell],
        from this rank's cells [dof]. Collective."""
        operator, disc = self.operator, self.disc
        operator.run_cells("cg_residual", operator._element, state=state, rate=rest, t=t)
        size = disc.num_dofs * disc.stride
        volumes = disc.of_cells(operator.arrays.to_host(operator._element, size, name="fluxes").astype(float))
        volumes[~self._inside] = 0.0
        np.subtract.at(volumes, self._cells, rows)
        return np.einsum("cd,cd->d", self._shares(there), volumes)

    def _facet_rows(self, state, rest, t: float) -> np.ndarray:
        """∫ φ j of each facet and each function of its cell [facet, dof]: j is f1·n, or what is given."""
        flags = self._open[self._cells, self._local]
        facets = np.column_stack([self._cells, self._local, self._condition, flags])
        return self.operator.over_facets(self._kernel, facets, self.disc.num_dofs, state, rest, t=t).T

    def _of_sides(self, on_points: np.ndarray) -> np.ndarray:
        """Values of points [point, …] by sides of this rank's cells [cell, facet of the cell, …]."""
        return on_points[entity_points(self.disc.mesh, self.disc.dim - 1)]

    def _shares(self, there: np.ndarray) -> np.ndarray:
        """Part [cell, dof] of the node of each function that some sides [cell, facet of the cell] have. Collective."""
        disc = self.disc
        shares, everything = np.zeros((disc.mesh.num_cells, disc.num_dofs)), slice(None)
        for space in disc.spaces:
            for c in range(space.components):
                component = space.first_component + c
                mine = disc.mesh.facets_around(there & self._open[..., component])
                part = mine / np.maximum(self._around[component], 1)
                for basis, points in disc.basis_points(space, everything):
                    shares[:, space.first_dof + basis * space.components + c] = part[points]
        return shares
