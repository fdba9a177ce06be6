"""Launch shapes of static condensation: by which kernel, and how a cell's matrix is spread over work-items."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...codegen.preamble import CONSTANT_BYTES
from ...errors import OptionError
from ..symmetry import has_symmetric_derivative
from .launch_shapes import (
    CELLS,
    LEAST_ROWS,
    MOST_BYTES,
    MOST_REALS,
    MOST_TENSOR_BYTES,
    ThreadShape,
    TileShape,
    WarpShape,
    tile_shape,
    warp_shape,
)
from .tensor_factors import TensorFactors, tensor_factors

CHUNK = 1 << 16  # cells looked at together
TOLERANCE = 16  # units of rounding of the largest coordinate
PTX = 90  # compute capability from which GPUs multiply matrices in double precision as mma.clh does
LEAST_DEGREE = 2  # of hexahedra, from which sums along lines are faster than products at all points


class CondensedShapes:
    """The part of CondensedDiscretization that chooses kernels and launch shapes; see there for what it reads."""

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
        return self.limits.is_gpu and not self.uses_lines and not self.has_sides

    @cached_property
    def uses_warps(self) -> bool:
        """True if tensor cores of an NVIDIA GPU may condense; sums over points of small matrices are faster without."""
        pays = self.is_constant or self.uses_lines or self.num_functions * self.components > LEAST_ROWS
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
        boundary = self.team_vectors - size
        room = self._warp_room - CELLS * self._cell_reals
        return warp_shape(size, symmetric, self.num_functions, True, room, boundary)

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

    @property
    def _cell_reals(self) -> int:
        """Reals of each cell of a batch: residual and state, derivatives, stabilization."""
        vectors = (1 + int(bool(self.physics.natural))) * self.num_functions * self.components
        return vectors + self._point_block() + 2 * self.num_facets_of_cell * self.components

    shares_multipliers = True  # between the warps of a cell: as fast as without or faster (benchmarks/NOTES.md)

    @cached_property
    def line_factors(self) -> TensorFactors | None:
        """Functions as products of those of a line, or None where they are no such products."""
        return tensor_factors(self)

    @property
    def factors(self) -> TensorFactors | None:
        """The same where tensor cores' kernel sums along lines, else None."""
        return self.line_factors if self.uses_lines else None

    @cached_property
    def uses_lines(self) -> bool:
        """True if tensor cores' kernel sums along lines: where asked for, and by itself where that is faster."""
        return self.options.kernel == "tensor" or self.options.kernel == "auto" and lines_pay(self)

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
        may = self.uses_threads and self.is_constant and plain and fits
        return shape if may and self._thread_reals * self.real_bytes <= CONSTANT_BYTES else None

    @property
    def _thread_reals(self) -> int:
        """Reals of constant memory that one thread per cell reads."""
        return sum(np.size(table) for table in self._thread_tables.values())

    def shape_of(self, name: str) -> TileShape | WarpShape | ThreadShape:
        """Launch shape of a kernel of condensation."""
        if name == "condense" and (self.thread_shape or self.warp_shape):
            return self.thread_shape or self.warp_shape
        whole = (self.num_interior + self.num_trace) * self.components
        size = whole if name in ("condense", "condense_given") else self.num_eliminated
        return tile_shape(size, whole, self.components, self._point_block(), self.real_bytes, self.limits, name)


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


def lines_pay(disc) -> bool:
    """True if sums along lines are the fastest way: on hexahedra of some degree (measured, see benchmarks/NOTES.md)."""
    may = disc.mesh.cell == "hexahedron" and disc.options.degree >= LEAST_DEGREE
    return may and not _missing(disc) and not disc.holds_matrices


def check_lines(disc) -> None:
    """Raises OptionError where `-fe_kernel tensor` can have no effect on how cells are condensed."""
    missing = _missing(disc)
    if missing:
        prefix = disc.options.prefix
        raise OptionError(
            f"-{prefix}fe_kernel tensor condenses cells of hdg_gpu by sums along lines on tensor cores, which takes "
            f"{missing}; use auto"
        )


def _missing(disc) -> str:
    """Requirements that are not met, each with what there is instead; empty if all are."""
    if disc.mesh.shape.is_simplex:
        return f"quadrilaterals or hexahedra, the mesh has {disc.mesh.cell} cells"
    if disc.components > 1:
        return f"one component, physics '{disc.physics.name}' has {disc.components}"
    if disc.has_sides:
        return "a projected flux and a stabilization that does not depend on the state"
    if disc.options.precision != "double":
        return f"double precision, not {disc.options.precision}"
    if disc.limits.ptx < PTX:
        return "an NVIDIA GPU of compute capability 9.0 or higher, which the device is not"
    if disc.line_factors is None:
        return "functions and points that are products of those of a line"
    if disc.line_shape is None:
        return (
            f"more registers or local memory for a {disc.mesh.cell} of degree {disc.options.degree} than the device has"
        )
    return ""
