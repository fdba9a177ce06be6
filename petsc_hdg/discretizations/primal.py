"""Base of the schemes whose unknowns are nodal values of the fields in cells: continuous Galerkin, interior penalty."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..codegen import KernelSpec, Launch, in_roles, signature
from ..codegen.preamble import CONSTANT_BYTES, SCATTERED_BYTES
from ..reference import tabulate
from .base import Discretization
from .dofmap import AuxiliaryRows, field_spaces
from .lines import UNROLL, as_vectors, cpu_lanes
from .transposition import DeviceLimits, transposition

POINTWISE = signature("""
    int num_cells: cells, or facets in kernels of facets
    int stride; int n_owned: owned degrees of freedom of the vectors
    real t: time; real shift: derivative of u_t by u; const real *constants_ [NCONST]
    const int *dofs [NDOF, stride]: compact numbers, [cell, NDOF] with CELL_BY_CELL
    const real *nodes [node, DIM]: coordinates; const int *cell_nodes [NNODES, stride]
    const real *aux [NAUX, stride]: auxiliary rows
    const real *tables: those that constant memory does not hold, laid end to end
    const real *u_owned [n_owned]: state; const real *u_tail: ghosts, then essential values
    const real *ut_owned [n_owned]: rate u_t; const real *ut_tail
    const real *du_owned [n_owned]: direction; const real *du_tail
""")
CELLS = POINTWISE + signature("real *out: as each kernel says")
FACETS = POINTWISE + signature("""
    int facet_stride; int first: entry of `out` where the kernel begins
    const int *facets [3, facet_stride]: cell, facet of the reference cell, index of the condition
    real *out: as each kernel says
""")
LANES_LIMIT = 128  # unknowns of a cell up to which a CPU does several at once, by loops that take seconds to compile
OF_PRECISION = ("_plain_tables",)  # cached properties that depend on it


class PrimalDiscretization(Discretization):
    """Spaces, element vectors and kernel specs; pure data, no device. Subclasses give `dofmap`.

    limits: what kernels may take of the device they are meant for.
    spaces: of the fields.   auxiliary: rows of auxiliary data.
    variant: of the volume kernels, `cell` (one thread per cell) or `transpose` (thread transposition).
    cell_by_cell: whether numbers and element vectors stand cell by cell, [cell, dof], instead of [dof, stride].
    """

    variant = "cell"
    cell_by_cell = False

    def __init__(self, mesh, physics, options, limits: DeviceLimits | None = None):
        super().__init__(mesh, physics, options)
        self.limits = limits or DeviceLimits()
        self.spaces = field_spaces(mesh.cell, physics.fields, options.degree)
        self.auxiliary = AuxiliaryRows(physics.auxiliary, self.spaces[0].element)

    def in_precision(self, precision: str) -> PrimalDiscretization:
        """The same discretization for kernels of another precision."""
        other = copy(self)
        other.options = replace(self.options, precision=precision)
        for name in OF_PRECISION:
            vars(other).pop(name, None)
        return other

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

    def entries(self, dofs, cells):
        """Places of degrees of freedom of cells in element vectors: [cell, dof] if `cell_by_cell`, else
        [dof, stride]."""
        return cells * self.num_dofs + dofs if self.cell_by_cell else dofs * self.stride + cells

    def of_cells(self, vectors: np.ndarray) -> np.ndarray:
        """Element vectors [cell, dof] from the entries of a buffer."""
        dofs, cells = np.arange(self.num_dofs), np.arange(self.mesh.num_cells)
        return vectors.ravel()[self.entries(dofs, cells[:, None])]

    def element_numbers(self, numbers: np.ndarray | None = None) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Rows and columns of element matrices, numbers [dof, element] of cells, then of other items; -1: none. Both
        are one list where the matrices couple unknowns with themselves.

        numbers: of compact numbers [unknown], PETSc's by default.
        """
        numbers = self.dofmap.global_numbers if numbers is None else numbers
        found = np.full((self.num_dofs, self.stride), -1, dtype=numbers.dtype)
        found[:, : self.mesh.num_cells] = numbers[self.dofmap.cell_numbers].T
        return (parts := [found]), parts

    def matrix_numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """PETSc row and column of each entry of the element matrices [dof, dof, stride]; -1: dropped."""
        rows, columns = self.element_numbers()
        return (
            np.concatenate([np.repeat(part[:, None, :], self.num_dofs, axis=1).ravel() for part in rows]),
            np.concatenate([np.repeat(part[None], self.num_dofs, axis=0).ravel() for part in columns]),
        )

    @property
    def matrix_layout(self) -> tuple[int, int, int, int]:
        """Unknowns of a cell, and distances of cells, rows and columns in their matrices."""
        return self.num_dofs, 1, self.num_dofs * self.stride, self.stride

    # Costs ---------------------------------------------------------------------------------------------------------

    @property
    def cell_costs(self) -> np.ndarray:
        """As in Discretization: tables at quadrature points, inside and on facets that have terms. Curved cells cost
        what straight ones do beside them: the cells of a rank share a kernel."""
        inside, on_facet = self._point_costs
        return inside + on_facet * self.facet_sides().sum(axis=1)

    @property
    def _point_costs(self) -> tuple[float, float]:
        """Multiplications inside a cell, and for one side of one of its facets."""
        width = 2 * (1 + self.dim) * sum(space.element.num_basis for space in self.spaces)
        rule = self.facet_rules[0][0]
        return float(width * self.quadrature.num_points), float(width * rule.num_points)

    # Kernel specs ------------------------------------------------------------------------------------------------

    @cached_property
    def flops_per_cell(self) -> int:
        """Additions and multiplications of one residual without the physics: evaluate, transform, weigh, test."""
        q, d, c = self.quadrature.num_points, self.dim, self.physics.num_components
        return self._table_flops + q * c * (4 * d * d + d + 1)

    @property
    def _table_flops(self) -> int:
        """Additions and multiplications that tables take in one residual."""
        return 4 * self.quadrature.num_points * self.num_dofs * (1 + self.dim)

    @cached_property
    def flops_per_matrix(self) -> int:
        """The same of an element matrix: each trial function transformed, weighed, and tested by all functions."""
        n, q, d, c = self.num_dofs, self.quadrature.num_points, self.dim, self.physics.num_components
        return n * q * (2 * n * (1 + d) + c * (4 * d * d + d + 1))

    @property
    def flops_per_diagonal(self) -> int:
        """The same of its diagonal: a test function and a trial function of each unknown."""
        return self.flops_per_matrix // self.num_dofs

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
            "SPARSE": int(all(s.element.degree == 1 for s in self.spaces) and self.mesh.geometry.is_affine),
            "F0": int(self.physics.f0 is not None or self.physics.has_jacobian),
            "F1": int(self.physics.f1 is not None or self.physics.has_jacobian),
            **({"CELL_BY_CELL": 1} if self.cell_by_cell else {}),
        }

    @property
    def dof_components(self) -> np.ndarray:
        """Component [dof] int32 of each degree of freedom of a cell."""
        found = [s.first_component + np.tile(np.arange(s.components), s.element.num_basis) for s in self.spaces]
        return np.concatenate(found).astype(np.int32)

    def _dof_tables(self) -> dict[str, np.ndarray]:
        basis = [s.first_basis + np.repeat(np.arange(s.element.num_basis), s.components) for s in self.spaces]
        return {
            "DOF_BASIS": np.concatenate(basis).astype(np.int32),
            "DOF_COMP": self.dof_components,
            "AUX_START": self.auxiliary.starts,
        }

    def _basis_tables(self, points: np.ndarray, cell: str = "") -> tuple[np.ndarray, ...]:
        """Values [point, basis], gradients [point, basis, dim] of all fields in turn, and the same of the geometry;
        cell: shape, where there are several."""
        fields = [tabulate(s.element, points, cell) for s in self.spaces]
        geometry = tabulate(self.geometry_element, points, cell)
        values = np.concatenate([t.values for t in fields], axis=1)
        gradients = np.concatenate([t.gradients for t in fields], axis=1)
        return values, gradients, geometry.values, geometry.gradients

    def _cell_tables(self, quadrature) -> dict[str, np.ndarray]:
        names = ("BASIS", "GRAD", "GEO", "GEO_GRAD")
        tables = dict(zip(names, self._basis_tables(quadrature.points), strict=True))
        tables["GEO"] = self.seen_geometry(quadrature.points)
        return {**self._dof_tables(), **tables, "WEIGHTS": quadrature.weights}

    def facet_tables(self, rules, normals: np.ndarray) -> dict[str, np.ndarray]:
        """Tables at the points of rules on each facet, with the normals [F, dim] of the reference cell."""
        names = ("FACET_BASIS", "FACET_GRAD", "FACET_GEO", "FACET_GEO_GRAD")
        places = [(rule.points, cell) for rule, cell in zip(rules, self.facet_cells, strict=True)]
        per_facet = [self._basis_tables(*place) for place in places]
        tables = {name: np.stack([t[k] for t in per_facet]) for k, name in enumerate(names)}
        if self.has_steps:
            tables["FACET_SEEN"] = np.stack([self.seen_geometry(*place) for place in places])
        weights = np.stack([rule.weights for rule in rules])
        return {**self._dof_tables(), **tables, "FACET_WEIGHTS": weights, "FACET_NORMALS": normals}

    def _sources(self, *files: str) -> tuple[str, ...]:
        return ("geometry.clh", "point.clh", "gather_tvector.clh", "cg_point.clh", *files)

    def volume_specs(self) -> dict[str, KernelSpec]:
        """Specs of `cg_residual` and `cg_action`."""
        macros = {**self._macros(), "NQ": self.quadrature.num_points}
        tables = self._cell_tables(self.quadrature)
        names = ("cg_residual", "cg_action")
        if self.variant != "transpose":  # patches use `cell` for what they do not offer
            sources = self._sources("cell_lanes.clh", *in_roles("cg_cell.cl"))
            return {name: self._cell_spec(name, sources, macros, tables) for name in names}
        shape = self.transposition_shape()
        macros |= {"THREADS": shape.threads, "CELLS": shape.cells, "BATCHES": self.options.num_batches}
        sources = self._sources("cg_transpose.clh", *in_roles("cg_transpose.cl"))
        launch = Launch(shape.cells * self.options.num_batches, shape.threads)
        return {
            n: self._spec(n, sources, macros, tables, shape.threads, shape.local_bytes, launch=launch) for n in names
        }

    def _cell_spec(self, name, sources, macros, tables, size: int = 64, columns: int = 0) -> KernelSpec:
        """Spec of a kernel of cell_lanes.clh, on a GPU in work-groups of `size`; columns: of each cell, a work-item
        each."""
        lanes = 1 if self.limits.is_gpu or self.num_dofs > LANES_LIMIT else cpu_lanes(self)
        size = 1 if lanes > 1 else size if self.limits.is_gpu else 16
        launch = Launch(lanes, columns, "stride") if columns else Launch(lanes * size, size)
        macros = {**macros, "LANES": lanes, **({"UNROLLED": UNROLL} if lanes > 1 else {})}
        spec = self._spec(name, sources, macros, tables, size, launch=launch)
        return as_vectors(spec) if lanes > 1 else spec

    def transposition_shape(self):
        """Threads and cells of a work-group, for the Jacobian's action, which needs the most local memory."""
        vectors = 2 + int(self.physics.uses_time_derivative)
        reals = vectors * self.num_dofs + self.physics.num_components * (1 + self.dim) * self.quadrature.num_points
        return transposition(
            self.num_dofs, self.quadrature.num_points, reals * self.real_bytes, self.limits, self.options.num_blocks
        )

    def matrix_specs(self) -> dict[str, KernelSpec]:
        """Specs of `cg_matrix` and `cg_diagonal`."""
        macros = {**self._macros(), "NQ": self.quadrature.num_points}
        tables, kept = self._cell_tables(self.quadrature), ("cell_lanes.clh", "point_block.clh")
        matrix, diagonal = (self._sources(*kept, *in_roles("cg_cell.cl", role)) for role in ("matrix", "diagonal"))
        return {
            "cg_matrix": self._cell_spec("cg_matrix", matrix, macros, tables, 32, self.num_dofs),
            "cg_diagonal": self._cell_spec("cg_diagonal", diagonal, macros, tables),
        }

    def transposed_volume(self) -> dict[str, KernelSpec]:
        """Spec of `cg_transposed`: the transposed Jacobian's action in cells."""
        macros = {**self._macros(), "NQ": self.quadrature.num_points, "F0": 1, "F1": 1}
        sources = self._sources("transposed_point.clh", "cell_lanes.clh", *in_roles("cg_cell.cl", "transposed"))
        tables = self._cell_tables(self.quadrature)
        return {"cg_transposed": self._cell_spec("cg_transposed", sources, macros, tables)}

    def facet_spec(self, name: str, files: tuple[str, ...], tables: dict, columns: int = 0, rows=0, **macros):
        """KernelSpec of a kernel of facets from the tables of `facet_tables`, with macros of its own; columns: of each
        facet, a work-item each; rows: of the result."""
        macros = {**self._macros(), "NQF": tables["FACET_WEIGHTS"].shape[1], **macros}
        sources = self._sources("facet_normal.clh", "cg_facet.clh", *files)
        launch = Launch(1, columns, "facet_stride") if columns else Launch()
        size = self.limits.group(32)
        return self._spec(name, sources, macros, tables, size, arguments=FACETS, launch=launch, rows=rows)

    def _spec(self, name, sources, macros, tables, local_size, local_bytes=0, arguments=CELLS, **how) -> KernelSpec:
        """Spec of a kernel of the physics; how: `launch` and `rows`."""
        # In thread transposition a group's threads read different entries, which a constant cache serves one by one.
        most = SCATTERED_BYTES if self.limits.is_gpu and "cg_transpose.cl" in sources else CONSTANT_BYTES
        how = {"most": most, "arguments": arguments, **how}
        return self.kernel_spec(name, sources, macros, tables, local_size, local_bytes, **how)
