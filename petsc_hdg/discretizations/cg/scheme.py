"""Continuous Galerkin: Lagrange elements of degree 1 to 9, element kernels by sums along lines, thread transposition or
one thread per cell."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..base import cell_fastest, padded
from ..primal import PrimalDiscretization
from ..strong_conditions import StrongConditions
from .patches import Patches, build_patches, patch_cells
from .specs import CGSpecs
from .tensor import line_flops


class ContinuousGalerkin(CGSpecs, StrongConditions, PrimalDiscretization):
    """Numbering, arrays and (from CGSpecs) kernel specs of the scheme `cg_gpu`; pure data, no device."""

    name = "cg_gpu"
    degrees = (1, 9)
    follows_symmetry = False

    # Arrays, cell fastest ------------------------------------------------------------------------------------------

    def cell_dofs(self) -> np.ndarray:
        """Compact numbers of each cell's degrees of freedom, in the order of element vectors."""
        numbers = self.dofmap.cell_numbers
        return numbers if self.cell_by_cell else cell_fastest(numbers, self.stride)

    @cached_property
    def facets(self) -> np.ndarray:
        """Natural facets [3, facet_stride]."""
        return cell_fastest(np.ascontiguousarray(self.natural_facets.T), self.facet_stride)

    @property
    def num_facets(self) -> int:
        return self.natural_facets.shape[1]

    @property
    def facet_stride(self) -> int:
        return padded(self.num_facets)

    def places_of_rows(self) -> list[tuple]:
        """As in Discretization: those of cells, then those of natural facets [dof, facet_stride]."""
        size, cells, count = self.num_dofs, self.mesh.num_cells, self.num_facets
        places = [
            (None, size * cells, 1, 1, 0) if self.cell_by_cell else (None, size * self.stride, self.stride, cells, 0)
        ]
        if count:
            numbers = cell_fastest(self.dofmap.cell_numbers[self.natural_facets[0]], self.facet_stride)
            places.append((numbers, numbers.size, self.facet_stride, count, size * self.stride))
        return places

    def element_numbers(self, numbers: np.ndarray | None = None) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """As in PrimalDiscretization: of cells, then, if there are such, of natural facets' cells."""
        parts, _ = super().element_numbers(numbers)
        if not self.num_facets:
            return parts, parts
        (numbers,) = parts
        of_facets = np.full((self.num_dofs, self.facet_stride), -1, dtype=numbers.dtype)
        of_facets[:, : self.num_facets] = numbers[:, self.natural_facets[0]]
        return (parts := [numbers, of_facets]), parts

    @property
    def _point_costs(self) -> tuple[float, float]:
        inside, on_facet = super()._point_costs
        if self.variant == "tensor":
            inside = line_flops(self) * len(self.spaces) / (2 * self.physics.num_components)
        return float(inside), on_facet

    def facet_sides(self) -> np.ndarray:
        """Sides that a cell evaluates on each of its facets [num_cells, facet]: those of natural conditions."""
        sides = np.zeros((self.mesh.num_cells, self.num_facets_of_cell))
        np.add.at(sides, tuple(self.natural_facets[:2]), 1)
        return sides

    @cached_property
    def patches(self) -> Patches:
        """Patches of consecutive cells, for first-order elements: as many as a work-group's local memory takes."""
        cells = patch_cells(self.mesh.cell, self.physics.num_components)
        patches = self._patches(cells)
        while self.patch_bytes("action", patches) > self.limits.local_bytes and cells > 64:
            cells //= 2
            patches = self._patches(cells)
        return patches

    def _patches(self, cells: int) -> Patches:
        count, cluster = self.mesh.num_cells, self.cells_per_thread
        return build_patches(
            self.mesh.geometry.cell_nodes[:count],
            self.dofmap.cell_numbers,
            self.dofmap.num_owned,
            self.dofmap.num_owned + self.dofmap.num_ghosts,
            cells,
            cluster,
            self.mesh.topology.facet_cells if cluster > 1 else None,
            self.natural_facets[0],
            self.facet_stride,
        )
