"""Continuous Galerkin: Lagrange P1…P4 and Q1…Q9, element kernels by sums along lines, thread transposition or one
thread a cell."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..auxiliary import AuxiliaryRows
from ..base import Discretization, cell_fastest, padded, summation_rows
from ..dofmap import build_dofmap, field_spaces
from ..transposition import DeviceLimits
from .patches import Patches, build_patches, patch_cells
from .specs import CGSpecs


class ContinuousGalerkin(CGSpecs, Discretization):
    """Numbering, arrays and (from CGSpecs) kernel specs of the scheme `cg_gpu`; pure data, no device.

    limits: what kernels may take of the device they are meant for.
    """

    name = "cg_gpu"
    degrees = (1, 9)
    simplex_degrees: tuple[int, int] | None = (1, 4)  # None: as `degrees`

    def __init__(self, mesh, physics, options, limits: DeviceLimits | None = None):
        super().__init__(mesh, physics, options)
        self.limits = limits or DeviceLimits()
        self.spaces = field_spaces(mesh.cell, physics.fields, options.degree)
        self.dm = mesh.dm.clone()
        self.global_tables: dict[str, np.ndarray] = {}  # kernel -> tables that are too large for constant memory
        self.auxiliary = AuxiliaryRows(physics.auxiliary, self.spaces[0].element)

    def _check_degree(self) -> None:
        if self.mesh.shape.is_simplex and self.simplex_degrees:
            self._check_degrees(
                *self.simplex_degrees,
                f" on {self.mesh.cell} cells; more, up to {self.degrees[1]}, go with quadrilaterals and hexahedra or "
                f"-{self.options.prefix}cg_condense",
            )
        else:
            super()._check_degree()

    @cached_property
    def dofmap(self):
        """Numbering of degrees of freedom; gives `dm` its section (collective)."""
        return build_dofmap(self.mesh, self.dm, self.spaces, self.constrained_components[0])

    @property
    def num_dofs(self) -> int:
        """Degrees of freedom of a cell, all fields."""
        return sum(s.num_dofs for s in self.spaces)

    @property
    def quadrature_degree(self) -> int:
        """Degree the rule integrates exactly: what the user gives, else twice the degree of the fields."""
        chosen = self.options.quadrature_degree
        return chosen if chosen >= 0 else 2 * max(s.element.degree for s in self.spaces)

    # Arrays, cell fastest ------------------------------------------------------------------------------------------

    def cell_dofs(self) -> np.ndarray:
        """Compact numbers of each cell's degrees of freedom, in the order of element vectors."""
        numbers = self.dofmap.cell_numbers
        return numbers if self.cell_by_cell else cell_fastest(numbers, self.stride)

    def entries(self, dofs, cells):
        """Places of degrees of freedom of cells in element vectors: [cell, dof] if `cell_by_cell`, else
        [dof, stride]."""
        return cells * self.num_dofs + dofs if self.cell_by_cell else dofs * self.stride + cells

    def of_cells(self, vectors: np.ndarray) -> np.ndarray:
        """Element vectors [cell, dof] from the entries of a buffer."""
        dofs, cells = np.arange(self.num_dofs), np.arange(self.mesh.num_cells)
        return vectors.ravel()[self.entries(dofs, cells[:, None])]

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

    def assembly_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Which element-vector entries add to each owned and ghost value: start [row + 1], entry [nnz].

        Entries count through the cells' element vectors, then the facets' [dof, facet_stride].
        """
        dofs, columns = self.dofmap.cell_numbers, np.arange(self.num_dofs, dtype=np.int32)
        places = self.entries(columns, np.arange(self.mesh.num_cells, dtype=np.int32)[:, None]).ravel()
        rows = dofs.ravel()
        if self.num_facets:
            facets = np.arange(self.num_facets, dtype=np.int32)[:, None]
            of_facets = self.num_dofs * self.stride + columns * self.facet_stride + facets
            places = np.concatenate([places, of_facets.ravel()])
            rows = np.concatenate([rows, dofs[self.natural_facets[0]].ravel()])
        return summation_rows(rows, places, self.dofmap.num_owned + self.dofmap.num_ghosts)

    def element_numbers(self) -> list[np.ndarray]:
        """PETSc numbers [dof, stride] of the unknowns of cells, then, if there are such, of natural facets' cells; -1:
        none."""
        numbers = np.full((self.num_dofs, self.stride), -1, dtype=self.dofmap.global_numbers.dtype)
        numbers[:, : self.mesh.num_cells] = self.dofmap.global_numbers[self.dofmap.cell_numbers].T
        if not self.num_facets:
            return [numbers]
        of_facets = np.full((self.num_dofs, self.facet_stride), -1, dtype=numbers.dtype)
        of_facets[:, : self.num_facets] = numbers[:, self.natural_facets[0]]
        return [numbers, of_facets]

    def matrix_numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """PETSc row and column of each entry of the matrices [dof, dof, stride] of cells, then facets; -1: dropped."""
        parts = self.element_numbers()
        shape = [(self.num_dofs,) + p.shape for p in parts]
        rows = np.concatenate([np.broadcast_to(p[:, None, :], s).ravel() for p, s in zip(parts, shape, strict=True)])
        columns = np.concatenate([np.broadcast_to(p[None, :, :], s).ravel() for p, s in zip(parts, shape, strict=True)])
        return rows, columns

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
