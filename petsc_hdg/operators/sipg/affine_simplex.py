"""Products of interior penalty for one field with constant coefficients on straight simplices: one thread per cell."""

from __future__ import annotations

import zlib
from functools import cached_property

import numpy as np

from ...device import Kernel, kernels_of
from ...discretizations.sipg.affine_simplex import SimplexTables, affine_simplex_specs, cell_classes, links
from ...discretizations.sipg.simplex import vertex_orders
from .coefficients import Coefficients
from .fused_pass import FusedPass

MOST_DEGREE = {"triangle": 6, "tetrahedron": 4}  # up to which this is faster than the general pass


class AffineSimplexPass(FusedPass):
    """`sipg_affine_simplex`, at the data of the last `update`. Cells share them where they are congruent.

    data     device buffer of the metric and the term of order zero of each cell, or of each class of congruent cells
    classes  their number, 0 if each cell has its own data
    parts    [num_parts]
    """

    def __init__(self, operator):
        super().__init__(operator)
        disc, arrays = operator.discretization, operator.arrays
        neighbours = disc.neighbours
        self.behind = links(disc.neighbour_rows(), disc.code_rows(), neighbours.kinds)
        tables = SimplexTables(disc.mesh.cell, disc.element.degree)
        self._rows = tables.pairs[vertex_orders(disc.dim)[:, :1], vertex_orders(disc.dim)]
        self._links = arrays.to_device(self.behind, "neighbours")
        self._data = arrays.zeros((disc.dim * (disc.dim + 1) // 2 + 1) * disc.stride)
        self._penalty = arrays.zeros((disc.dim + 1) * disc.stride)
        self._class_of, self.data, self.classes, self._key = None, self._data, 0, None

    @staticmethod
    def matches(disc) -> bool:
        """True if the kernel computes the products of a discretization. Not collective."""
        straight = disc.mesh.cell in MOST_DEGREE and disc.mesh.geometry.degree == 1
        if not straight or disc.physics.num_components != 1 or not disc.physics.constant_jacobian(disc.dim):
            return False
        degree = disc.element.degree
        if degree > MOST_DEGREE[disc.mesh.cell] or disc.quadrature_degree < 2 * degree:
            return False
        natural = disc.physics.dependence(disc.dim).natural
        if any(kind == 2 for kind in natural) or (disc.neighbours.has_walls and any(natural)):
            return False
        found = [Coefficients(disc, 0.7, seed) for seed in range(2)]
        return all(each.is_symmetric and not each.natural_read_gradients for each in found)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`sipg_affine_simplex` and `sipg_affine_simplex_data`."""
        return self._compiled(bool(self.classes))

    def _compiled(self, classes: bool) -> dict[str, Kernel]:
        op = self.operator
        reaction = any(Coefficients(op.discretization, 0.7, seed).has_reaction for seed in range(2))
        specs = affine_simplex_specs(op.discretization, classes, reaction, self.is_automatic)
        return kernels_of(specs, op.device)

    def compile_variants(self) -> None:
        """Compile the kernels with and without classes, whichever the mesh at hand takes. Not collective."""
        for classes in (False, True):
            self._compiled(classes)

    @cached_property
    def is_automatic(self) -> bool:
        """True if penalties follow from the metric."""
        disc = self.operator.discretization
        follows = not disc.is_paper and disc.side_numbers is None
        return follows and not any(disc.physics.dependence(disc.dim).natural)

    def update(self) -> None:
        """Find the data anew, at the operator's time and shift, with its penalties. Not collective."""
        op, disc = self.operator, self.operator.discretization
        kernel, cells = self.kernels["sipg_affine_simplex_data"], disc.mesh.num_cells
        where = {"num_chunks": 0, "chunks": None, "data": self._data, "penalty": self._penalty}
        kernel.launch(disc.neighbours.num_extended, op.arguments(kernel, cells, **where))
        key = op.time, op.shift, op.constants.tobytes(), zlib.crc32(np.ascontiguousarray(op.aux_rows))
        if key != self._key:
            self._key = key
            self._classify()

    def choose(self) -> None:
        self.update()

    def _classify(self) -> None:
        disc, arrays, before = self.operator.discretization, self.operator.arrays, self.classes
        rows = disc.dim * (disc.dim + 1) // 2 + 1
        data = arrays.to_host(self._data, (rows, disc.stride), name="congruent cells").astype(float)
        found = cell_classes(data[:, : disc.neighbours.num_extended], self.behind, disc.mesh.num_cells, self._rows)
        self._class_of, self.data, self.classes = None, self._data, 0
        if found is not None:
            padded = np.zeros(disc.stride, np.uint16)
            padded[: disc.mesh.num_cells] = found[0]
            self._class_of, self.data = arrays.to_device(padded, "congruent cells"), arrays.to_device(found[1])
            self.classes = found[1].shape[1]
        if bool(self.classes) != bool(before):
            self.kernels = self._compiled(bool(self.classes))

    @property
    def num_parts(self) -> int:
        """Cells."""
        return self.operator.discretization.mesh.num_cells

    def run(self, what: str, out, part: int | None, du=None) -> None:
        """Compute the `action` on the chunks without ghost neighbours (part 0), the others (1) or all."""
        disc = self.operator.discretization
        given = {"data_stride": self.classes or disc.stride, "factor": float(disc.penalty_factor * disc.dim**2)}
        given |= {"behind": self._links, "class_of": self._class_of, "data": self.data, "penalty": self._penalty}
        self._launch_product(self.kernels["sipg_affine_simplex"], out, part, du, **given)
