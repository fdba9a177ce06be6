"""Kernel specs of static condensation: macros, tables, launch shapes; data for the device layer."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from ...codegen import KernelSpec, Launch
from ...codegen.preamble import CONSTANT_BYTES, SCATTERED_BYTES
from ...database import is_number
from ...reference import cell_quadrature, facet_quadrature, tabulate
from ..symmetry import has_symmetric_derivative
from .arguments import ARGUMENTS
from .hdg_checks import has_point_flux
from .launch_shapes import (
    CELLS,
    LEAST_ROWS,
    MOST_BYTES,
    MOST_REALS,
    MOST_TENSOR_BYTES,
    WHOLE,
    ThreadShape,
    TileShape,
    WarpShape,
    tile_shape,
    warp_shape,
)
from .tensor_factors import TensorFactors, tensor_factors
from .warp_tables import constant_terms, warp_constant, warp_points, warp_tensor

CHUNK = 1 << 16  # cells looked at together
TOLERANCE = 16  # units of rounding of the largest coordinate
PTX = 90  # compute capability from which GPUs multiply matrices in double precision as mma.clh does
LEAST_DEGREE = 3  # of hexahedra, from which sums along lines are faster than products at all points
# In this order.
CONDENSE_POINT = ("gather_tvector.clh", "facet_normal.clh", "normal_derivatives.clh", "condense_point.clh")
_POINTS = ("geometry.clh", "point.clh", *CONDENSE_POINT)
UNIFORM = {"LINE"}  # tables of which all work-items read the same entry: constants, however large the others are


def are_parallelepipeds(nodes: np.ndarray, cell_nodes: np.ndarray) -> bool:
    """True if cells with corners cell_nodes [cell, 2^dim] (first axis fastest), at nodes [node, dim], are affine images
    of the unit square or cube, to the rounding of their coordinates.
    """
    dim = nodes.shape[1]
    corners = np.arange(1 << dim)[:, None] >> np.arange(dim) & 1
    most = TOLERANCE * np.finfo(float).eps * np.abs(nodes).max(initial=0.0)
    for start in range(0, len(cell_nodes), CHUNK):
        x = nodes[cell_nodes[start : start + CHUNK]]
        edges = x[:, 1 << np.arange(dim)] - x[:, :1]
        if np.abs(x[:, :1] + corners @ edges - x).max() > most:
            return False
    return True


class CondensedSpecs:
    """The part of CondensedDiscretization that describes its kernels; see there for the attributes it reads."""

    @property
    def stabilization_mode(self) -> int:
        """TAU in condense_point.clh. 0: a number, 1: automatic, 2: an expression, 3: automatic at a state, 4: an
        expression of the state or a matrix."""
        if is_number(self.options.hdg_tau):
            return 0
        if self.physics.stabilizes_by_state:
            return 4
        return 2 if self.physics.has_stabilization else 1 if self.physics.is_linear else 3

    @property
    def stabilization_follows(self) -> bool:
        """True if the stabilization follows the state."""
        return self.has_jumps and self.stabilization_mode == 3

    @property
    def stabilizes_by_expression(self) -> bool:
        return self.has_jumps and self.stabilization_mode in (2, 4)

    @property
    def point_flux(self) -> bool:
        """True if the flux at facets is f1(û, q)·n at their points, and False if it is projected."""
        return self.has_jumps and has_point_flux(self.physics, self.options)

    @property
    def has_sides(self) -> bool:
        """True if facets are linearized at their state, as SIDES in condense_point.clh says."""
        return self.has_jumps and (self.point_flux or self.stabilization_mode == 4)

    @property
    def stabilization(self) -> np.ndarray:
        """Its argument of kernels: the number [1], or one over the extents [dim] of the mesh."""
        if not self.has_jumps or self.stabilizes_by_expression:
            return np.zeros(1)
        return 1 / self.lengths if self.stabilization_mode in (1, 3) else np.array([float(self.options.hdg_tau)])

    @cached_property
    def flops_per_cell(self) -> int:
        """Additions and multiplications of one condensation without the physics: sum over points, eliminate."""
        n, eliminated, numbers = self.num_functions * self.components, self.num_eliminated, 1 + self.dim
        per_point = 2 * n * self.components * numbers * numbers + 2 * n * n * numbers
        elimination = sum(2 * n * (n + 1 - k) for k in range(eliminated))
        return self.quadrature.num_points * per_point + elimination

    def point_macros(self) -> dict[str, int]:
        """Sizes that every kernel of a condensed scheme knows."""
        nodal = any(f.space != "cell" for f in self.auxiliary.fields)
        return {
            "DIM": self.dim,
            "NNODES": self.geometry_element.num_basis,
            "AFFINE": int(self.is_affine),
            "NI": self.num_interior,
            "NT": self.num_trace,
            "NC": self.components,
            "NDOF": self.num_trace_dofs,
            "NA": self.auxiliary.num_components,
            "NAUX": self.auxiliary.num_rows,
            "AUX_NODES": self.cell_element.num_basis,
            "AUX_NODAL": int(nodal),
            "NCONST": len(self.physics.constants) + int(self.in_time),
            "RATE": self.physics.num_auxiliary if self.in_time else -1,
            "NATURAL": len(self.physics.natural) * int(any(c.term.kind != "b" for c in self.physics.natural)),
            "BOUNDARY_FLUXES": sum(1 << k for k, c in enumerate(self.physics.natural) if c.term.kind == "b"),
            "SIDES": int(self.has_sides),
            "POINT_FLUX": int(self.point_flux),
            "TAU_MATRIX": int(self.physics.has_stabilization_matrix),
            "BOUNDARY_ROWS": 1 + self.dim * int(self.physics.has_boundary_f1),
            "JUMPS": int(self.has_jumps),
            "TAU": self.stabilization_mode if self.has_jumps else 0,
            "NFACETS": self.num_facets_of_cell,
            "POINTS_FASTEST": int(self.limits.is_gpu),
        }

    def sum_macros(self, shape) -> dict[str, int]:
        """Sizes of kernels that sum over all points of cells, in a launch shape."""
        points = {"NQ": self.quadrature.num_points, "NQF": self._tables["FACET_WEIGHTS"].shape[1]}
        if self.has_jumps:
            points["NUM_FACET_FUNCTIONS"] = self._tables["FACET_FUNCTIONS"].shape[1]
        return {**self.point_macros(), **points, **shape.macros()}

    def cell_tables(self, quadrature) -> dict[str, np.ndarray]:
        """Tables at the points of a rule inside the cell."""
        geometry = tabulate(self.geometry_element, quadrature.points)
        auxiliary = self._auxiliary_tables(quadrature.points)
        return {
            "AUX_START": self.auxiliary.starts,
            "OP": self.operator_table(quadrature.points),
            "AUX_BASIS": auxiliary[0],
            "AUX_GRAD": auxiliary[1],
            "GEO": self.seen_geometry(quadrature.points),
            "GEO_GRAD": geometry.gradients,
            "WEIGHTS": quadrature.weights,
        }

    def _auxiliary_tables(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values [point, node], gradients [point, node, dim] for nodal auxiliary fields; one zero if there are none."""
        if all(f.space == "cell" for f in self.auxiliary.fields):
            return np.zeros(1), np.zeros(1)
        table = tabulate(self.auxiliary.element, points)
        return table.values, table.gradients

    def facet_point_tables(self, degree: int) -> dict[str, np.ndarray]:
        """Geometry, weights and auxiliary functions at the points of the facets' rules of a degree."""
        rules, normals = facet_quadrature(self.mesh.cell, degree)
        geometry = [tabulate(self.geometry_element, rule.points) for rule in rules]
        auxiliary = [self._auxiliary_tables(rule.points) for rule in rules]
        return {
            "FACET_GEO": np.stack([self.seen_geometry(rule.points) for rule in rules]),
            "FACET_GEO_GRAD": np.stack([t.gradients for t in geometry]),
            "FACET_WEIGHTS": np.stack([rule.weights for rule in rules]),
            "FACET_NORMALS": normals,
            "FACET_AUX_BASIS": np.stack([t[0] for t in auxiliary]),
            "FACET_AUX_GRAD": np.stack([t[1] for t in auxiliary]),
        }

    def facet_tables(self) -> dict[str, np.ndarray]:
        """Tables at the points of the facets; those of jumps and of natural conditions where they are needed."""
        tables = self.facet_point_tables(self.quadrature_degree)
        if self.has_jumps:
            tables["JUMP"] = self.jump_table()
        if self.physics.natural:
            tables["FACET_OP"] = self.facet_operator_table(self.quadrature_degree)
        return tables

    @cached_property
    def _tables(self) -> dict[str, np.ndarray]:
        tables = {**self.cell_tables(self.quadrature), **self.facet_tables()}
        if self.point_flux:
            tables["TEST"] = self.test_table()
        if self.has_sides:
            tables["SIDE"] = self.side_table()
            del tables["JUMP"]
        if self.has_jumps:
            tables["FACET_FUNCTIONS"] = self.facet_functions()
        if self.limits.is_gpu:
            tables["OP_POINTS"] = np.moveaxis(tables["OP"], 0, -1)
            if "JUMP" in tables:
                tables["JUMP_POINTS"] = tables["JUMP"].reshape(-1, self.num_functions).T
        return tables

    def _point_block(self) -> int:
        """Numbers of a point's block (BLOCK in condense_point.clh)."""
        rows = self.components * (1 + self.dim)
        return rows * (rows + 1)

    def condense_spec(self, name: str = "condense", transposed: bool = False) -> KernelSpec:
        """Spec of a kernel of condensation, `condense_…`; transposed: with the transposed matrices of cells, of
        `condense_product`, `condense_given` and `condense_kept`."""
        shape = self.shape_of(name)
        if isinstance(shape, WarpShape):
            return self._warp_spec(shape)
        if isinstance(shape, ThreadShape):
            return self._thread_spec(shape)
        own, constant = name == "condense", name == "condense" and self.is_constant
        terms = constant_terms(self) if constant else {}
        macros = {"TRANSPOSED": int(transposed), "INVERT": int(own and self.keeps_inverse), "CONSTANT": int(constant)}
        macros |= {**self.sum_macros(shape), "NTERMS": len(terms["TERM_ROW"]) if constant else 0}
        eliminate = "condense_patch" if shape.panel else f"condense_eliminate{'_thread' * (shape.threads == 1)}"
        files = "condense_tile", eliminate, "condense_sum", *(["condense_constant"] if constant else [])
        sources = (*_POINTS, *(f"{file}.clh" for file in files), f"{name}.cl")
        return self.spec(name, sources, macros, {**self._tables, **terms}, shape)

    def flux_spec(self) -> KernelSpec:
        """Spec of `condense_residual` without rates, and without values and fluxes of natural conditions: rows of the
        trace are then fluxes out of the cell."""
        spec = self.condense_spec("condense_residual")
        macros = {**spec.macros, "RATE": -1, "BOUNDARY_FLUXES": 0, "BOUNDARY_VALUES": 0}
        return replace(spec, macros=macros | ({} if self.physics.has_boundary_f1 else {"NATURAL": 0}))

    def _warp_spec(self, shape: WarpShape) -> KernelSpec:
        """Spec of `condense` by tensor cores."""
        make = warp_constant if self.sums_matrices else warp_points if self.factors is None else warp_tensor
        sources, tables, macros = make(self, shape)
        macros = {**macros, **self.limits.macros, **self.sum_macros(shape)}
        return self.spec("condense", (*_POINTS, *sources), macros, {**tables, **self._tables}, shape)

    def _thread_spec(self, shape: ThreadShape) -> KernelSpec:
        """Spec of `condense` by one thread per cell, with tables of constants: all threads read the same entry."""
        macros = {**self.limits.macros, **self.sum_macros(shape)}
        macros |= {"NTERMS": len(self._thread_tables["TERM_ROW"]), "TABLE": "__constant"}
        sources, precision = (*_POINTS, "condense_thread.cl"), self.options.precision
        how = {"arguments": ARGUMENTS["condense"], "launch": Launch(shape.cells, shape.group)}
        tables, text = self._thread_tables, self.physics_text
        return KernelSpec("condense", sources, macros, tables, text, precision, shape.group, **how)

    @cached_property
    def _thread_tables(self) -> dict[str, np.ndarray]:
        """Constants of one thread per cell."""
        tables = {**self._tables, **constant_terms(self)}
        return {name: table for name, table in tables.items() if not name.endswith("_POINTS")}

    def spec(self, name, sources, macros, tables, shape, **how) -> KernelSpec:
        """A spec whose large tables are one buffer where constant memory does not hold them."""
        most = SCATTERED_BYTES if self.limits.is_gpu else CONSTANT_BYTES
        constants = {key: tables[key] for key in UNIFORM & tables.keys()}
        scattered = {key: table for key, table in tables.items() if key not in UNIFORM}
        how = {"arguments": ARGUMENTS[name], "launch": Launch(shape.cells, shape.group), **how}
        return self.kernel_spec(name, sources, macros, scattered, shape.group, most=most, constants=constants, **how)

    def stabilization_spec(self) -> KernelSpec:
        """Spec of `hdg_stabilization`, which finds the automatic stabilization at a state."""
        tables = {**self.cell_tables(self.quadrature), **self.facet_tables()}
        tables["FACET_OP"] = self.facet_operator_table(self.quadrature_degree)
        macros = {**self.point_macros(), "NQ": self.quadrature.num_points, "NQF": tables["FACET_WEIGHTS"].shape[1]}
        macros["POINTS_FASTEST"] = 0
        sources = (*_POINTS, "hdg_stabilization.cl")
        launch = Launch(items=self.num_facets_of_cell, row="stride")
        return self.spec("hdg_stabilization", sources, macros, tables, ThreadShape(0, 0), launch=launch)

    def begin_spec(self) -> KernelSpec:
        """Spec of `condense_begin`: the interior where local problems begin."""
        element, nodes = self.cell_element, self.spaces[0].element.nodes
        fit = np.linalg.pinv(np.column_stack([np.ones(len(nodes)), nodes]))
        affine = np.column_stack([np.ones(element.num_basis), element.nodes]) @ fit
        rule = cell_quadrature(self.mesh.cell, 2 * element.degree)
        slopes, at_trace = element.tabulate(rule.points)[1:], element.tabulate(nodes)[0]
        energy = np.tensordot(rule.weights[:, None] * slopes, slopes, axes=((0, 1), (0, 1)))
        tie = 10 * (1 + energy.max()) * at_trace.T
        smooth = np.linalg.solve(energy + tie @ at_trace, tie @ (np.eye(len(nodes)) - at_trace @ affine))
        tables = {"EXTENSION": (affine + smooth)[-self.num_interior :]}
        macros = {"NI": self.num_interior, "NT": self.num_trace, "NC": self.components, "NDOF": self.num_trace_dofs}
        sources = ("gather_tvector.clh", "condense_begin.cl")
        return KernelSpec("condense_begin", sources, macros, tables, precision=self.options.precision, local_size=64)

    def recover_spec(self) -> KernelSpec:
        """Spec of `condense_recover`: the interior from the trace by stored matrices."""
        macros = {"NE": self.num_eliminated, "NM": self.num_trace_dofs, "NDOF": self.num_trace_dofs}
        sources = ("gather_tvector.clh", "condense_recover.cl")
        return KernelSpec("condense_recover", sources, macros, {}, "", self.options.precision, 64)

    # Kernel specs ------------------------------------------------------------------------------------------------

    @cached_property
    def is_affine(self) -> bool:
        """True if all cells of this rank are affine images of the reference cell."""
        geometry, shape = self.mesh.geometry, self.mesh.shape
        if geometry.is_affine or shape.is_simplex or geometry.degree > 1:
            return geometry.is_affine
        return are_parallelepipeds(geometry.nodes, geometry.cell_nodes)

    @cached_property
    def is_constant(self) -> bool:
        """True if derivatives and stabilization are the same at all points of a cell, and cells are affine."""
        free = not self.has_sides and not self.stabilizes_by_expression
        return self.is_affine and free and self.physics.constant_jacobian(self.dim)

    @cached_property
    def uses_threads(self) -> bool:
        """True if threads of a GPU may condense a cell each."""
        return self.limits.is_gpu and not self.has_sides

    @cached_property
    def uses_warps(self) -> bool:
        """True if tensor cores of an NVIDIA GPU may condense; sums over points of small matrices are faster without."""
        pays = self.is_constant or self.num_functions * self.components > LEAST_ROWS
        return self.limits.ptx >= PTX and self.options.precision == "double" and pays and not self.has_sides

    @cached_property
    def warp_shape(self) -> WarpShape | None:
        """Launch shape of `condense` by tensor cores, or None where they are not there or do not pay."""
        several = self.components > 1 and not self.sums_matrices
        if not self.uses_warps or several or not self.num_eliminated:
            return None
        if self.factors is not None:
            return self.line_shape
        size, symmetric = self.num_functions * self.components, has_symmetric_derivative(self.physics, self.dim)
        if not self.sums_matrices:
            return warp_shape(size, symmetric, self.num_functions, False, self._warp_room, self.team_vectors)
        # Of each cell of a batch: residual and state, derivatives, stabilization.
        each = (1 + int(bool(self.physics.natural))) * size + self._point_block()
        each += 2 * self.num_facets_of_cell * self.components
        room = self._warp_room - CELLS * each
        return warp_shape(size, symmetric, self.num_functions, True, room, self.team_vectors - size)

    @cached_property
    def line_shape(self) -> WarpShape | None:
        """Launch shape of `condense` by tensor cores that sum along lines, or None where nothing holds a cell."""
        size, symmetric = self.num_functions * self.components, has_symmetric_derivative(self.physics, self.dim)
        each, points = self.team_vectors, self.line_factors.team_reals(1)
        return warp_shape(size, symmetric, self.num_functions, False, self.line_room, each, points)

    @property
    def _warp_room(self) -> int:
        """Reals of local memory of a work-group of warps, without what each work-item has."""
        return self.limits.local_bytes // self.real_bytes - 300

    @property
    def line_room(self) -> int:
        """The same where they sum along lines, without rows and columns that others come from."""
        return self._warp_room - self.line_factors.index_reals - self.num_functions

    @property
    def team_vectors(self) -> int:
        """Reals of a team for the state of its cell and points of natural conditions."""
        boundary = 8 * int(bool(self.physics.natural)) * max(self._point_block(), 24)
        return self.num_functions * self.components + boundary

    @cached_property
    def line_factors(self) -> TensorFactors:
        """Functions of hexahedra as products of those of a line."""
        return tensor_factors(self)

    @property
    def factors(self) -> TensorFactors | None:
        """The same where tensor cores' kernel sums along lines, else None."""
        return self.line_factors if self.uses_lines else None

    @cached_property
    def uses_lines(self) -> bool:
        """True if tensor cores' kernel sums along lines, where that is the fastest way: on hexahedra of some degree
        (benchmarks/NOTES.md)."""
        may = self.mesh.cell == "hexahedron" and self.options.degree >= LEAST_DEGREE and not self.holds_matrices
        may = may and self.uses_warps and self.components == 1 and self.has_jumps
        return may and self.line_shape is not None

    @property
    def sums_matrices(self) -> bool:
        """True if tensor cores' kernel sums reference matrices, not points."""
        return self.holds_matrices and not self.uses_lines

    @cached_property
    def holds_matrices(self) -> bool:
        """True if cells are sums of reference matrices that caches hold, for which these sums pay."""
        size, terms = self.num_functions * self.components, (1 + self.dim) ** 2 + self.num_facets_of_cell
        most = MOST_BYTES if self.mesh.shape.is_simplex else MOST_TENSOR_BYTES
        return self.is_constant and self.real_bytes * terms * size**2 <= most

    @cached_property
    def thread_shape(self) -> ThreadShape | None:
        """Launch shape of `condense` by one GPU thread per cell, or None where that does not fit."""
        shape = ThreadShape(self.num_functions, self.num_eliminated)
        plain = self.components == 1 and not any(self.physics.dependence(self.dim).natural)
        fits = self.num_eliminated > 0 and shape.reals <= MOST_REALS
        if not (self.uses_threads and self.is_constant and plain and fits):
            return None
        return shape if sum(map(np.size, self._thread_tables.values())) * self.real_bytes <= CONSTANT_BYTES else None

    @property
    def keeps_inverse(self) -> bool:
        """True if `condense` leaves A^-1 and its products in scratch memory: of large cells with a state in time."""
        return self.in_time and self.shape_of("condense").scratch_entries > 0

    def shape_of(self, name: str) -> TileShape | WarpShape | ThreadShape:
        """Launch shape of a kernel of condensation."""
        if name == "condense" and (self.thread_shape or self.warp_shape):
            return self.thread_shape or self.warp_shape
        whole, points = self.num_functions * self.components, self._tables["FACET_WEIGHTS"].size
        size, points = whole if name in WHOLE else self.num_eliminated, max(points, self.quadrature.num_points)
        name = name.replace("condense_kept", "condense")  # whose matrices it finds
        return tile_shape(size, whole, self.components, self._point_block(), self.real_bytes, self.limits, name, points)

    def class_specs(self) -> dict[str, KernelSpec]:
        """Specs of the kernels of cells that share solvers, by name."""
        found = {name: self.condense_spec(name) for name in ("condense_element", "condense_shared")}
        given = ("condense_spread.cl",), {"NM": self.num_trace_dofs}, {}, "", self.options.precision, 64
        return found | {"condense_spread": KernelSpec("condense_spread", *given)}
