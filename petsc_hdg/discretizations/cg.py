"""Continuous Galerkin: Lagrange P1…P4 and Q1…Q4, element kernels by thread transposition or one thread a cell."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..codegen import KernelSpec
from ..errors import OptionError
from ..reference import ReferenceElement, cell_quadrature, facet_quadrature, symmetric_quadrature, tabulate
from .auxiliary import AuxiliaryRows
from .base import Discretization, cell_fastest, padded
from .dofmap import build_dofmap, dof_nodes, entity_points, field_spaces
from .large_tables import place_tables
from .patches import Patches, build_patches, cells_per_patch
from .transposition import DeviceLimits, transposition

CELL_KERNEL_LIMIT = 10  # degrees of freedom up to which one thread a cell keeps its vectors in registers


class ContinuousGalerkin(Discretization):
    """Tables, numbering and kernel specs of the scheme `cg_gpu`; pure data, no device."""

    name = "cg_gpu"
    degrees = (1, 4)

    def __init__(self, mesh, physics, options):
        super().__init__(mesh, physics, options)
        self.spaces = field_spaces(mesh.cell, physics.fields, options.degree)
        self.dm = mesh.dm.clone()
        self.global_tables: dict[str, np.ndarray] = {}  # kernel -> tables that are too large for constant memory
        self.auxiliary = AuxiliaryRows(physics.auxiliary, self.spaces[0].element)

    @cached_property
    def dofmap(self):
        """Numbering of degrees of freedom; gives `dm` its section (collective)."""
        return build_dofmap(self.mesh, self.dm, self.spaces, self.constrained_components[0])

    @property
    def num_dofs(self) -> int:
        """Degrees of freedom of a cell, all fields."""
        return sum(s.num_dofs for s in self.spaces)

    @cached_property
    def geometry_element(self) -> ReferenceElement:
        return ReferenceElement(self.mesh.cell, self.mesh.geometry.degree)

    @property
    def quadrature_degree(self) -> int:
        """Degree the rule integrates exactly: what the user gives, else twice the degree of the fields."""
        chosen = self.options.quadrature_degree
        return chosen if chosen >= 0 else 2 * max(s.element.degree for s in self.spaces)

    @cached_property
    def quadrature(self):
        return cell_quadrature(self.mesh.cell, self.quadrature_degree)

    # Arrays, cell fastest ------------------------------------------------------------------------------------------

    def cell_dofs(self) -> np.ndarray:
        """Compact numbers [dof, stride] of each cell's degrees of freedom."""
        return cell_fastest(self.dofmap.compact[self.dofmap.cell_dofs], self.stride)

    def cell_nodes(self) -> np.ndarray:
        """Geometry nodes [node, stride] of each cell."""
        return cell_fastest(self.mesh.geometry.cell_nodes[: self.mesh.num_cells].astype(np.int32), self.stride)

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

        Entries count through the cells' element vector [dof, stride], then the facets' [dof, facet_stride].
        """
        dofs = self.dofmap.compact[self.dofmap.cell_dofs]
        cells, facets = np.arange(self.mesh.num_cells), np.arange(self.num_facets)
        columns = np.arange(self.num_dofs)
        place = np.concatenate(
            [
                (columns * self.stride + cells[:, None]).ravel(),
                (self.num_dofs * self.stride + columns * self.facet_stride + facets[:, None]).ravel(),
            ]
        )
        rows = np.concatenate([dofs.ravel(), dofs[self.natural_facets[0]].ravel()])
        num_rows = self.dofmap.num_owned + self.dofmap.num_ghosts
        order = np.argsort(rows, kind="stable")
        order = order[: np.searchsorted(rows[order], num_rows)]
        start = np.concatenate([[0], np.cumsum(np.bincount(rows[order], minlength=num_rows))])
        return start.astype(np.int32), place[order].astype(np.int32)

    def matrix_numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """PETSc row and column of each entry of the element matrices [dof, dof, stride] of cells, then of facets; -1: dropped."""
        numbers = np.full((self.num_dofs, self.stride), -1, dtype=self.dofmap.global_numbers.dtype)
        numbers[:, : self.mesh.num_cells] = self.dofmap.global_numbers[self.dofmap.compact[self.dofmap.cell_dofs]].T
        of_facets = np.full((self.num_dofs, self.facet_stride), -1, dtype=numbers.dtype)
        of_facets[:, : self.num_facets] = numbers[:, self.natural_facets[0]]
        parts = [numbers] + ([of_facets] if self.num_facets else [])
        shape = [(self.num_dofs,) + p.shape for p in parts]
        rows = np.concatenate([np.broadcast_to(p[:, None, :], s).ravel() for p, s in zip(parts, shape)])
        columns = np.concatenate([np.broadcast_to(p[None, :, :], s).ravel() for p, s in zip(parts, shape)])
        return rows, columns

    def constrained_points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each constrained value: condition, component [value], coordinates [value, dim]."""
        count = self.dofmap.num_constrained
        condition, component, x = np.full(count, -1, dtype=np.int32), np.zeros(count, dtype=np.int32), np.zeros((count, self.dim))
        first = self.dofmap.num_owned + self.dofmap.num_ghosts
        compact = self.dofmap.compact[self.dofmap.cell_dofs]
        touched = np.flatnonzero((compact >= first).any(axis=1))
        on_point = self.constrained_components[1]
        for space in self.spaces:
            nodes = dof_nodes(self.mesh, space, touched)
            for c in range(space.components):
                numbers = compact[touched, space.first_dof + c : space.first_dof + space.num_dofs : space.components] - first
                for basis, points in self._basis_points(space, touched):
                    inside = numbers[:, basis] >= 0
                    at = numbers[inside, basis]
                    condition[at] = on_point[points[inside], space.first_component + c]
                    component[at] = space.first_component + c
                    x[at] = nodes[inside, basis]
        return condition, component, x

    def _basis_points(self, space, cells):
        """(basis function, plex point [cell] it belongs to) of a field."""
        for dimension, entities in enumerate(space.element.entity_dofs):
            if entities[0]:
                points = entity_points(self.mesh, dimension)[cells]
                for number, on_entity in enumerate(entities):
                    for basis in on_entity:
                        yield basis, points[:, number]

    # Kernel specs --------------------------------------------------------------------------------------------------

    @cached_property
    def variant(self) -> str:
        """`cell` (one thread a cell), `transpose` (thread transposition) or `patch` (one first-order field, see `patches`)."""
        if self.options.kernel == "patch" and not self.is_first_order:
            raise OptionError(
                f"-{self.options.prefix}fe_kernel patch takes one field of degree 1 on straight cells; use cell, transpose or auto"
            )
        if self.options.kernel != "auto":
            return self.options.kernel
        return "cell" if self.num_dofs <= CELL_KERNEL_LIMIT else "transpose"

    @property
    def is_first_order(self) -> bool:
        """One field whose nodes are the cells' vertices."""
        return len(self.spaces) == 1 and self.spaces[0].element.degree == self.mesh.geometry.degree == 1

    @cached_property
    def patches(self) -> Patches:
        """Patches of consecutive cells, for first-order elements."""
        cells = self.mesh.num_cells
        return build_patches(
            self.mesh.geometry.cell_nodes[:cells],
            self.dofmap.compact[self.dofmap.cell_dofs],
            self.dofmap.num_owned,
            self.dofmap.num_owned + self.dofmap.num_ghosts,
            self.cells_per_patch,
            self.natural_facets[0],
            self.facet_stride,
        )

    patch_threads = 256

    @cached_property
    def cells_per_patch(self) -> int:
        return cells_per_patch(self.geometry_element.num_basis, self.physics.num_components, self.real_bytes)

    @property
    def real_bytes(self) -> int:
        return 8 if self.options.precision == "double" else 4

    def patch_specs(self, limits: DeviceLimits) -> dict[str, KernelSpec]:
        """Specs of `cg_patch_residual` and `cg_patch_action`."""
        threads = self.patch_threads if limits.is_gpu else 64
        macros = {**self._macros(), "NQ": self.quadrature.num_points, "THREADS": threads, "CELLS": self.cells_per_patch}
        tables = self._cell_tables(self.quadrature)
        sources = self._sources("cg_patch.cl")
        return {n: self._spec(n, sources, macros, tables, threads) for n in ("cg_patch_residual", "cg_patch_action")}

    @cached_property
    def physics_text(self) -> str:
        return self.physics.device_source(self.dim)

    def _macros(self) -> dict[str, int]:
        return {
            "DIM": self.dim,
            "NNODES": self.geometry_element.num_basis,
            "AFFINE": int(self.mesh.geometry.is_affine),
            "NDOF": self.num_dofs,
            "NBASIS": sum(s.element.num_basis for s in self.spaces),
            "NC": self.physics.num_components,
            "NA": self.auxiliary.num_components,
            "NAUX": self.auxiliary.num_rows,
            "NCONST": len(self.physics.constants),
            "TIME": int(self.physics.uses_time_derivative),
        }

    def _dof_tables(self) -> dict[str, np.ndarray]:
        basis, component = [], []
        for s in self.spaces:
            basis.append(s.first_basis + np.repeat(np.arange(s.element.num_basis), s.components))
            component.append(s.first_component + np.tile(np.arange(s.components), s.element.num_basis))
        return {
            "DOF_BASIS": np.concatenate(basis).astype(np.int32),
            "DOF_COMP": np.concatenate(component).astype(np.int32),
            "AUX_START": self.auxiliary.starts,
        }

    def _basis_tables(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Values [point, basis], gradients [point, basis, dim] of all fields in turn, and the same of the geometry."""
        fields = [tabulate(s.element, points) for s in self.spaces]
        geometry = tabulate(self.geometry_element, points)
        values = np.concatenate([t.values for t in fields], axis=1)
        gradients = np.concatenate([t.gradients for t in fields], axis=1)
        return values, gradients, geometry.values, geometry.gradients

    def _cell_tables(self, quadrature) -> dict[str, np.ndarray]:
        names = ("BASIS", "GRAD", "GEO", "GEO_GRAD")
        tables = dict(zip(names, self._basis_tables(quadrature.points)))
        return {**self._dof_tables(), **tables, "WEIGHTS": quadrature.weights}

    def _facet_tables(self) -> dict[str, np.ndarray]:
        rules, normals = facet_quadrature(self.mesh.cell, self.quadrature_degree)
        names = ("FACET_BASIS", "FACET_GRAD", "FACET_GEO", "FACET_GEO_GRAD")
        per_facet = [self._basis_tables(rule.points) for rule in rules]
        tables = {name: np.stack([t[k] for t in per_facet]) for k, name in enumerate(names)}
        weights = np.stack([rule.weights for rule in rules])
        return {**self._dof_tables(), **tables, "FACET_WEIGHTS": weights, "FACET_NORMALS": normals}

    def _sources(self, file: str, stored: bool = False, evector: bool = False) -> tuple[str, ...]:
        geometry = "geometry_stored.clh" if stored else "geometry_nodes.clh"
        gather = "gather_evector.clh" if evector else "gather_tvector.clh"
        return ("geometry.clh", geometry, gather, "cg_point.clh", file)

    def element_specs(self, limits: DeviceLimits, stored: bool = False, evector: bool = False) -> dict[str, KernelSpec]:
        """Specs of `cg_residual` and `cg_action`; stored geometry and element vectors as in the paper, by choice."""
        macros = {**self._macros(), "NQ": self.quadrature.num_points}
        tables = self._cell_tables(self.quadrature)
        local = dict.fromkeys(("cg_residual", "cg_action"), 0)
        size = 64 if limits.is_gpu else 16
        variant = "cell" if self.variant == "patch" else self.variant  # patches use it for what they do not offer
        if variant == "transpose":
            shape = self.transposition_shape(limits)
            macros |= {"THREADS": shape.threads, "CELLS": shape.cells, "BATCHES": self.options.num_batches}
            local = dict.fromkeys(local, shape.local_bytes)
            size = shape.threads
        sources = self._sources(f"cg_{variant}.cl", stored, evector)
        return {name: self._spec(name, sources, macros, tables, size, local[name]) for name in local}

    def transposition_shape(self, limits: DeviceLimits):
        """Threads and cells of a work-group, for the Jacobian's action, which needs the most local memory."""
        vectors = 2 + int(self.physics.uses_time_derivative)
        reals = vectors * self.num_dofs + self.physics.num_components * (1 + self.dim) * self.quadrature.num_points
        return transposition(self.num_dofs, self.quadrature.num_points, reals * self.real_bytes, limits, self.options.num_blocks)

    def work_items(self, spec: KernelSpec) -> int:
        """Work-items of an element kernel over all cells."""
        if "THREADS" not in spec.macros:
            return self.mesh.num_cells
        chunk = spec.macros["CELLS"] * spec.macros["BATCHES"]
        return -(-self.mesh.num_cells // chunk) * spec.macros["THREADS"]

    def matrix_specs(self) -> dict[str, KernelSpec]:
        """Specs of `cg_matrix` and `cg_diagonal`."""
        macros = {**self._macros(), "NQ": self.quadrature.num_points}
        tables = self._cell_tables(self.quadrature)
        return {n: self._spec(n, self._sources("cg_matrix.cl"), macros, tables, 32) for n in ("cg_matrix", "cg_diagonal")}

    def facet_specs(self) -> dict[str, KernelSpec]:
        """Specs of the boundary integrals: residual, action, matrix, diagonal."""
        tables = self._facet_tables()
        macros = {**self._macros(), "NQF": tables["FACET_WEIGHTS"].shape[1]}
        names = [f"cg_facet_{what}" for what in ("residual", "action", "matrix", "diagonal")]
        return {n: self._spec(n, self._sources("cg_facet.cl"), macros, tables, 32) for n in names}

    def error_spec(self, extra_degree: int = 4) -> KernelSpec:
        """Spec of `cg_error`, with a rule that integrates `extra_degree` more than the residual's."""
        rule = symmetric_quadrature(self.mesh.cell, self.quadrature_degree + extra_degree)
        macros = {**self._macros(), "NQ": rule.num_points}
        return self._spec("cg_error", self._sources("cg_error.cl"), macros, self._cell_tables(rule), 32)

    def essential_spec(self, name: str = "essential_values") -> KernelSpec:
        """Spec of `essential_values` or `essential_rates`."""
        macros = {"DIM": self.dim, "NCOMP": self.physics.num_components, "NCONST": len(self.physics.constants)}
        options = self.options.precision
        return KernelSpec(name, ("essential.cl",), macros, {}, self.physics_text, options, 32)

    def assemble_spec(self, name: str = "assemble") -> KernelSpec:
        """Spec of `assemble` or `assemble_rows`, which sum element vectors."""
        return KernelSpec(name, ("assemble.cl",), precision=self.options.precision, local_size=64)

    def _spec(self, name, sources, macros, tables, local_size, local_bytes=0) -> KernelSpec:
        tables, placed = place_tables(tables, self.real_bytes)
        self.global_tables[name] = placed.values
        macros = {**macros, **placed.macros}
        return KernelSpec(name, sources, macros, tables, self.physics_text, self.options.precision, local_size, local_bytes)
