"""Products of interior penalty for one field with constant coefficients on straight simplices: one thread a cell."""

from __future__ import annotations

import zlib
from functools import cached_property

import numpy as np

from ...device import Kernel, kernels_of
from ...discretizations.sipg.affine_simplex import SimplexTables, affine_simplex_specs, cell_classes, links
from ...discretizations.sipg.interleaved import CHUNK
from ...discretizations.sipg.simplex import vertex_orders
from .fused_pass import FusedPass

MOST_DEGREE = {"triangle": 6, "tetrahedron": 4}  # up to which this is faster than the general pass
SYMMETRY = 1e-13


class AffineSimplexPass(FusedPass):
    """`sipg_affine_simplex`, at the data of the last `update`. Cells share them where they are congruent.

    data     device buffer of the metric and the term of order zero of each cell, or of each class of congruent cells
    classes  their number, 0 if each cell has its own data
    parts    buffer [num_parts] for parts of the sum of own values times results, if products are to have it
    """

    parts = None

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
        """Whether the kernel computes the products of a discretization. Not collective."""
        straight = disc.mesh.cell in MOST_DEGREE and disc.mesh.geometry.degree == 1
        if not straight or disc.physics.num_components != 1 or not disc.physics.constant_jacobian(disc.dim):
            return False
        degree = disc.element.degree
        if degree > MOST_DEGREE[disc.mesh.cell] or disc.quadrature_degree < 2 * degree:
            return False
        natural = disc.physics.dependence(disc.dim).natural
        if any(kind == 2 for kind in natural) or (disc.neighbours.has_walls and any(natural)):
            return False
        return all(Probe(disc, seed).is_symmetric for seed in range(2))

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`sipg_affine_simplex` and `sipg_affine_simplex_data`."""
        return self._compiled(bool(self.classes))

    def _compiled(self, classes: bool) -> dict[str, Kernel]:
        op = self.operator
        probes = [Probe(op.discretization, seed) for seed in range(2)]
        reaction = any(p.has_reaction for p in probes)
        specs = affine_simplex_specs(op.discretization, classes, reaction, self.is_automatic)
        return kernels_of(specs, op.device)

    def compile_variants(self) -> None:
        """Compile the kernels with and without classes, whichever the mesh at hand takes. Not collective."""
        for classes in (False, True):
            self._compiled(classes)

    @cached_property
    def is_automatic(self) -> bool:
        """Whether penalties follow from the metric."""
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
        chunks, count = self.chunks[part]
        self.kernels["sipg_affine_simplex"].of_part(part).launch(
            CHUNK * count,
            {
                "num_chunks": count,
                "num_cells": disc.mesh.num_cells,
                "num_ghosts": disc.neighbours.num_ghosts,
                "stride": disc.stride,
                "data_stride": self.classes or disc.stride,
                "factor": float(disc.penalty_factor * disc.dim**2),
                "behind": self._links,
                "class_of": self._class_of,
                "data": self.data,
                "penalty": self._penalty,
                "chunks": chunks,
                "u_owned": du.owned,
                "u_tail": du.tail,
                "out": out,
                "parts": self.parts,
            },
        )


class Probe:
    """The Jacobian of a linear physics with random constants and auxiliary data, which shows what it depends on."""

    def __init__(self, disc, seed: int):
        random = np.random.default_rng(seed)
        dim, physics = disc.dim, disc.physics
        self.random, self.dim, self.physics = random, dim, physics
        self.interpreter = physics.interpreter(dim)
        self.a = random.uniform(0.5, 1.0, physics.num_auxiliary)
        self.a_x = np.zeros((physics.num_auxiliary, dim))
        self.constants = random.uniform(0.5, 1.0, len(physics.constants))
        self.x, self.zero, self.zero_x = random.uniform(0.5, 1.0, dim), np.zeros(1), np.zeros((1, dim))

    def jacobian(self, du=None, du_t=None, du_x=None) -> tuple[np.ndarray, np.ndarray]:
        """f0 [1], f1 [1, dim] along a direction."""
        given = [self.zero if d is None else d for d in (du, du_t)] + [self.zero_x if du_x is None else du_x]
        rest = self.a, self.a_x, 0.7, 1.3, self.x, self.constants
        return self.interpreter.pw_jacobian(self.zero, self.zero, self.zero_x, *given, *rest)

    def natural(self, condition: int, du_x) -> float:
        """Derivative of a natural condition along a gradient."""
        normal = np.full(self.dim, self.dim**-0.5)
        rest = self.a, self.a_x, 0.7, 1.3, self.x, normal, self.constants
        directions = self.zero, self.zero, du_x
        state = self.zero, self.zero, self.zero_x
        return float(self.interpreter.pw_boundary_jacobian(condition, *state, *directions, *rest)[0][0])

    @property
    def has_reaction(self) -> bool:
        """Whether f0 depends on the value or its rate."""
        return any(self.jacobian(**{name: np.ones(1)})[0][0] != 0 for name in ("du", "du_t"))

    @property
    def is_symmetric(self) -> bool:
        """Whether f0 depends on the value alone, and f1 on the gradient by a symmetric tensor."""
        if any(self.jacobian(**{name: np.ones(1)})[1].any() for name in ("du", "du_t")):
            return False
        units = [row[None] for row in np.eye(self.dim)]
        found = [self.jacobian(du_x=unit) for unit in units]
        tensor = np.array([f1[0] for _, f1 in found])
        if any(f0.any() for f0, _ in found) or any(
            self.natural(k, unit) for k in range(len(self.physics.natural)) for unit in units
        ):
            return False
        return bool(np.abs(tensor - tensor.T).max() <= SYMMETRY * np.abs(tensor).max())
