"""Products of interior penalty for one field with constant diagonal coefficients on rectangles and boxes."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...device import Kernel, fastest
from ...discretizations.sipg.affine import (
    affine_shapes,
    affine_spec,
    build_links,
    cell_edges,
    class_rows,
    classes_of_cells,
    is_diagonal,
    mark_classes,
    metrics,
)
from ...discretizations.sipg.tensor import facet_places
from ...reference import gauss_lobatto, is_tensor
from ..check import fastest_on_ones
from .coefficients import Coefficients
from .fused_pass import FusedPass


class AffinePass(FusedPass):
    """`sipg_affine_lanes`, `_cell` or `_line`, at the data of the last `update`. Congruent cells share a class.

    classes: number of classes of cells.   parts: [num_parts].
    """

    def __init__(self, operator):
        super().__init__(operator)
        disc, arrays = operator.discretization, operator.arrays
        if not self.chunks[1][1]:
            self.chunks[0] = self.chunks[None] = (None, disc.num_chunks)
        self.neighbour, self.code = disc.neighbour_rows(), disc.code_rows()
        kind = np.where(self.neighbour <= -2, -2 - self.neighbour, len(disc.neighbours.kinds))
        mirrored = np.append(disc.neighbours.kinds[:, 0] >= 0, False)[kind]
        self._header, links = build_links(
            self.neighbour, self.code, mirrored, disc.mesh.num_cells, disc.orientations.count
        )
        self._edges = edges_of(disc)
        self._links = arrays.to_device(links, "neighbours")
        self._steps = arrays.to_device(facet_places(disc, disc.element.degree + 1), "neighbours")
        self._headers = arrays.to_device(self._header, "neighbours")
        self._class_of = self._data = self._key = None
        self.classes, self._is_tuned = 0, False

    @staticmethod
    def matches(disc) -> bool:
        """True if the kernels compute the products of a discretization. Not collective."""
        physics = disc.physics
        if not is_tensor(disc.mesh.cell) or not disc.collocated or physics.num_components != 1:
            return False
        if disc.mesh.geometry.degree != 1 or not physics.constant_jacobian(disc.dim):
            return False
        depends = physics.dependence(disc.dim, False)
        if depends.auxiliary or any(depends.natural) or shapes_of(disc) == [None]:
            return False
        edges, coefficients = edges_of(disc), [Coefficients(disc, t, seed) for seed, t in enumerate((0.3, 0.7))]
        return edges is not None and all(c.is_symmetric and is_diagonal(metrics(edges, c.tensor)) for c in coefficients)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """The kernel that suits the device: one found fastest before, else the likeliest."""
        kernel = fastest(list(self._shapes), self.operator.device, None)
        return {kernel.spec.name: kernel}

    @cached_property
    def _shapes(self) -> dict:
        """Specs in the shapes to choose from, and their shapes."""
        disc, precision = self.operator.discretization, self.operator.arrays.precision
        shapes = shapes_of(disc, "nvidia" in self.operator.device.platform.lower())
        return {affine_spec(disc.dim, disc.element.degree, disc.theta, precision, shape): shape for shape in shapes}

    def _tune(self) -> None:
        """Find the fastest shape for the data at hand. Not collective."""

        def run(kernel, out, du, **_):
            self._launch(kernel, out, 0, du)

        kernel = fastest_on_ones(self.operator, list(self._shapes), run)
        self.kernels, self._is_tuned = {kernel.spec.name: kernel}, True

    def update(self) -> None:
        """Find the classes of cells anew, at the operator's time and shift, with its penalties. Not collective."""
        op, disc = self.operator, self.operator.discretization
        key = op.time, op.shift, op.constants.tobytes()
        if key == self._key:
            return
        now = Coefficients(disc, op.time, None, op.constants, op.shift)
        metric, end = metrics(self._edges, now.tensor), gauss_lobatto(disc.element.degree)[1][0]
        rows = class_rows(
            self._edges, metric, now.mass, op.penalties()[0], self.neighbour, self.code, disc.orientations.count, end
        )
        class_of, data = classes_of_cells(rows)
        mark_classes(self._header, class_of)
        op.arrays.upload(self._headers, self._header, "neighbours")
        self._class_of, self._data = (op.arrays.to_device(a, "congruent cells") for a in (class_of, data))
        self._key, self.classes = key, len(data)
        if not self._is_tuned:
            self._tune()

    @property
    def num_parts(self) -> int:
        """Threads of all cells."""
        (kernel,) = self.kernels.values()
        return self._shapes[kernel.spec].threads * self.operator.discretization.mesh.num_cells

    def run(self, what: str, out, part: int | None, du=None) -> None:
        """Compute the `action` on the chunks without ghost neighbours (part 0), the others (1) or all."""
        (kernel,) = self.kernels.values()
        self._launch(kernel, out, part, du)

    def _launch(self, kernel, out, part: int | None, du) -> None:
        links = {"header": self._headers, "links": self._links, "steps": self._steps}
        links |= {"class_of_cell": self._class_of, "classes": self._data, "neighbour": self.operator.neighbour}
        self._launch_product(kernel, out, part, du, **links)


def shapes_of(disc, is_nvidia: bool = False) -> list:
    """The AffineShapes for the device that a discretization is meant for, [None] where none fits."""
    return affine_shapes(disc.dim, disc.element.degree, disc.real_bytes, disc.limits, is_nvidia)


def edges_of(disc) -> np.ndarray | None:
    """Edges [extended cell, axis, dim] along the reference axes, or None where cells are no parallelepipeds."""
    return cell_edges(disc.nodes()[disc.neighbours.cell_nodes])
