"""Products of interior penalty in one pass over the cells: of any physics, of one field with constant coefficients on
rectangles and boxes, and on straight simplices."""

from __future__ import annotations

import zlib
from functools import cached_property

import numpy as np

from ...device import Kernel, kernels_of
from ...discretizations.sipg.affine import (
    AffineShape,
    SimplexTables,
    affine_shape,
    affine_simplex_specs,
    affine_spec,
    build_links,
    cell_classes,
    cell_edges,
    class_rows,
    classes_of_cells,
    is_diagonal,
    links,
    mark_classes,
    metrics,
)
from ...discretizations.sipg.interleaved import CHUNK
from ...discretizations.sipg.simplex import vertex_orders
from ...discretizations.sipg.tensor import facet_places
from ...discretizations.symmetry import is_plain, read_by_text
from ...reference import gauss_lobatto, is_tensor

SYMMETRY = 1e-13  # of a tensor's largest entry
MOST_DEGREE = {"triangle": 6, "tetrahedron": 4}  # up to which this is faster than the general pass


class Coefficients:
    """Derivatives of f0 and f1 by the value, its rate and the gradient at a random place.

    tensor: of f1 by gradients [dim, dim].   mass: of f0 by values, u_t following by `shift`.
    constants: None for random ones by `seed`, which show what the derivatives depend on.
    """

    def __init__(self, disc, t: float, seed: int | None, constants=None, shift: float = 1.3):
        dim, physics, random = disc.dim, disc.physics, np.random.default_rng(seed)
        count = physics.num_auxiliary
        a, given = random.uniform(0.5, 1.0, count), random.uniform(0.5, 1.0, len(physics.constants))
        given = given if constants is None else constants[: len(given)]
        place = a, np.zeros((count, dim)), t, shift, random.uniform(0.5, 1.0, dim), given
        blocks = physics.interpreter(dim).g_blocks(None, None, None, *place)
        mass, self._by_gradient, self._of_value, self.tensor = (block[0, 0] for block in blocks)
        self.mass = float(mass)

    @property
    def is_symmetric(self) -> bool:
        """True if f0 depends on the value alone, and f1 on the gradient by a symmetric tensor."""
        apart = np.abs(self.tensor - self.tensor.T).max() <= SYMMETRY * np.abs(self.tensor).max()
        return bool(apart and not self._by_gradient.any() and not self._of_value.any())


class FusedPass:
    """`sipg_residual` and `sipg_action` of an SIPGOperator: each cell reads its neighbours and writes its own rows.

    parts: buffer for parts of the sum of own values times results, where a kernel of products has such and they are
    wanted.
    """

    parts = None

    def __init__(self, operator):
        self.operator = operator
        to_device = operator.arrays.to_device
        inner, outer = operator.discretization.chunk_lists()
        lists = {0: inner, 1: outer, None: np.concatenate([inner, outer])}
        self.chunks = {part: (to_device(c, "chunks") if c.size else None, c.size) for part, c in lists.items()}

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        operator, disc = self.operator, self.operator.discretization
        is_alone = operator.fast is not None or not operator.multiplies
        is_seldom = is_alone and not disc.physics.uses_time_derivative
        return kernels_of(operator.needed(disc.fused_specs(is_seldom)), operator.device)

    def choose(self) -> None:
        """Choose among variants of the kernels by the operator's data. Not collective."""

    def run(self, what: str, out, part: int | None, state=None, rate=None, du=None, t=None, own=None) -> None:
        """Compute `residual` or `action` on the chunks without ghost neighbours (part 0), the others (1) or all; on
        tensor cells of `own` values (a buffer) in each cell and du in its neighbours."""
        chunks, count = self.chunks[part]
        if count:
            kernel, cells = self.kernels[f"sipg_{what}"], self.operator.discretization.mesh.num_cells
            where = {"num_chunks": count, "chunks": chunks, "out": out}
            arguments = self.operator.arguments(kernel, cells, state, rate, du, t, **where)
            arguments["own"] = own or arguments["du_owned"]
            kernel.of_part(part).launch(CHUNK * count, arguments)

    def _launch_product(self, kernel: Kernel, out, part: int | None, du, **given) -> None:
        """Launch a kernel of products alone over the chunks of a part; given: arguments of its own."""
        disc, (chunks, count) = self.operator.discretization, self.chunks[part]
        given |= {"num_chunks": count, "chunks": chunks, "num_cells": disc.mesh.num_cells, "stride": disc.stride}
        given |= {"num_ghosts": disc.neighbours.num_ghosts, "u_owned": du.owned, "u_tail": du.tail}
        kernel.of_part(part).launch(CHUNK * count, {**given, "out": out, "parts": self.parts})


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
        self.classes = 0

    @staticmethod
    def matches(disc) -> bool:
        """True if the kernels compute the products of a discretization. Not collective."""
        physics = disc.physics
        if not is_tensor(disc.mesh.cell) or not disc.collocated or physics.num_components != 1:
            return False
        if disc.mesh.geometry.degree != 1 or not physics.constant_jacobian(disc.dim):
            return False
        depends = physics.dependence(disc.dim, False)
        if depends.auxiliary or any(depends.natural) or shape_of(disc) is None:
            return False
        edges, coefficients = edges_of(disc), [Coefficients(disc, t, seed) for seed, t in enumerate((0.3, 0.7))]
        if edges is None or not is_plain(physics, disc.dim):
            return False
        return all(c.is_symmetric and is_diagonal(metrics(edges, c.tensor)) for c in coefficients)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """The kernel of the shape that suits the device."""
        disc, precision = self.operator.discretization, self.operator.arrays.precision
        spec = affine_spec(disc.dim, disc.element.degree, disc.theta, precision, shape_of(disc))
        return {spec.name: Kernel(spec, self.operator.device)}

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

    @property
    def num_parts(self) -> int:
        """Threads of all cells."""
        disc = self.operator.discretization
        return shape_of(disc).threads * disc.mesh.num_cells

    def run(self, what: str, out, part: int | None, du=None) -> None:
        """Compute the `action` on the chunks without ghost neighbours (part 0), the others (1) or all."""
        (kernel,) = self.kernels.values()
        links = {"header": self._headers, "links": self._links, "steps": self._steps}
        links |= {"class_of_cell": self._class_of, "classes": self._data, "neighbour": self.operator.neighbour}
        self._launch_product(kernel, out, part, du, **links)


def shape_of(disc) -> AffineShape | None:
    """The AffineShape for the device that a discretization is meant for, None where no cell fits."""
    return affine_shape(disc.dim, disc.element.degree, disc.real_bytes, disc.limits)


def edges_of(disc) -> np.ndarray | None:
    """Edges [extended cell, axis, dim] along the reference axes, or None where cells are no parallelepipeds."""
    return cell_edges(disc.nodes()[disc.neighbours.cell_nodes])


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
        if any("u_x" in condition.term.program.inputs for condition in disc.physics.natural):
            return False
        return is_plain(disc.physics, disc.dim) and all(Coefficients(disc, 0.7, seed).is_symmetric for seed in range(2))

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`sipg_affine_simplex` and `sipg_affine_simplex_data`."""
        return self._compiled(bool(self.classes))

    def _compiled(self, classes: bool) -> dict[str, Kernel]:
        op = self.operator
        reaction = ("f0", "u") in read_by_text(op.discretization.physics)
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
        given = {
            "data_stride": self.classes or disc.stride,
            "factor": float(disc.penalty_factor(disc.mesh.cell, disc.element.degree) * disc.dim**2),
        }
        given |= {"behind": self._links, "class_of": self._class_of, "data": self.data, "penalty": self._penalty}
        self._launch_product(self.kernels["sipg_affine_simplex"], out, part, du, **given)
