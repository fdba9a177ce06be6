"""Functions and points of quadrilaterals and hexahedra as products of those of a line."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from ...reference import facet_quadrature
from ..lines import lagrange

TOLERANCE = 1e-10


@dataclass(frozen=True)
class TensorFactors:
    """A function is the product of functions of a line along the axes: of the N interior ones, or along one axis of the
    lift of the trace at its low end, number N, or at its high end, N + 1.

    values, slopes  [N + 2, point]     values (0 of a trace), and lifted derivatives, at the points of a line
    ends            [N + 2, 2]         jumps u - û at both ends of a line
    places          [function, axis]   numbers of the factors of each function of a cell
    points          [point, …]         point of the cell's rule, by the places of its coordinates
    facet_points    [axis, end, point, …]  point of all facets, by axis, end and the places of the other coordinates
    """

    values: np.ndarray
    slopes: np.ndarray
    ends: np.ndarray
    places: np.ndarray
    points: np.ndarray
    facet_points: np.ndarray

    @property
    def dim(self) -> int:
        return self.places.shape[1]

    @property
    def nodes(self) -> int:
        """Interior functions of a line."""
        return len(self.values) - 2

    @property
    def line_points(self) -> int:
        return self.values.shape[1]

    @property
    def columns(self) -> int:
        """Columns of the matrix of a line (COLUMNS in condense_warp_tensor.cl)."""
        return self.nodes * self.dim + 3

    @property
    def slice_columns(self) -> int:
        """Columns of the matrix of a slice (COLUMNS_SLICE there), 0 in 2D."""
        return 2 * self.nodes**2 + 4 * self.nodes + 1 if self.dim == 3 else 0

    @property
    def index_reals(self) -> int:
        """Reals of local memory for what rows and columns come from, without those of the cell's matrix."""
        return self.columns + self.slice_columns + 40

    def team_reals(self, held: int) -> int:
        """Reals of local memory in which a team sums with `held` slices of points (SUM_REALS there)."""
        face, lines = self.line_points ** (self.dim - 1), self.line_points ** (self.dim - 2)
        block, matrix = (1 + self.dim) * (2 + self.dim), max(0, self.slice_columns - 1) * self.slice_columns
        ends = 2 * self.nodes * (self.nodes + 1)
        return 4 * self.dim * face + held * face * block + lines * (self.columns - 1) * self.columns + ends + matrix

    def reference_gradients(self) -> np.ndarray:
        """Values and reference gradients [point, …, 1 + dim, function] as products."""
        dim = self.dim
        numbers = [self._product([self.slopes if a == r else self.values for a in range(dim)]) for r in range(-1, dim)]
        return np.stack(numbers, axis=dim)

    def jumps(self, axis: int, end: int) -> np.ndarray:
        """u - û [point, …, function] on a facet as products."""
        lines = [self.ends[:, [end]] if a == axis else self.values for a in range(self.dim)]
        return np.squeeze(self._product(lines), axis=axis)

    def _product(self, lines) -> np.ndarray:
        dim, factors = self.dim, []
        for axis, line in enumerate(lines):
            shape = [1] * dim + [len(self.places)]
            shape[axis] = line.shape[1]
            factors.append(line[self.places[:, axis]].T.reshape(shape))
        return np.prod(np.broadcast_arrays(*factors), axis=0)


def tensor_factors(disc) -> TensorFactors | None:
    """The factors of a hybridizable discretization's tables, or None where these are no such products."""
    if disc.mesh.shape.is_simplex or not disc.has_jumps:
        return None
    found = _factors(disc)
    if found is None:
        return None
    table, jumps = disc.operator_table(disc.quadrature.points), disc.jump_table().reshape(-1, disc.num_functions)
    pairs = [(found.reference_gradients(), table[found.points])]
    for axis, end in product(range(disc.dim), range(2)):
        pairs.append((found.jumps(axis, end), jumps[found.facet_points[axis, end]]))
    scale = np.abs(table).max()
    return found if all(np.abs(a - b).max() <= TOLERANCE * scale for a, b in pairs) else None


def _factors(disc) -> TensorFactors | None:
    dim, element = disc.dim, disc.cell_element
    line, nodes = _line(disc.quadrature.points), _line(element.nodes)
    count, inner = len(nodes), disc.num_interior
    if len(line) ** dim != disc.quadrature.num_points or count**dim != inner:
        return None
    values = np.zeros((count + 2, len(line)))
    values[:count] = lagrange(nodes, line)[0].T
    places = np.zeros((disc.num_functions, dim), dtype=np.int64)
    places[:inner] = _place(element.nodes, nodes)
    points = _by_place(_place(disc.quadrature.points, line), len(line))
    rules, jumps = facet_quadrature(disc.mesh.cell, disc.quadrature_degree)[0], disc.jump_table()
    per_facet = disc.num_trace // len(rules)
    facet_points = np.zeros((dim, 2, *[len(line)] * (dim - 1)), dtype=np.int64)
    for facet, rule in enumerate(rules):
        axis = next(a for a in range(dim) if np.ptp(rule.points[:, a]) < TOLERANCE)
        end, others = int(rule.points[0, axis] > 0.5), [a for a in range(dim) if a != axis]
        if len(rule.points) != len(line) ** (dim - 1):
            return None
        on_line = _place(rule.points[:, others], line)
        facet_points[axis, end] = _by_place(on_line, len(line)) + facet * len(rule.points)
        mine = slice(inner + facet * per_facet, inner + (facet + 1) * per_facet)
        traces = -jumps[facet][:, mine]
        choices = np.array(list(product(range(count), repeat=dim - 1)))
        shapes = np.prod([values[choices[:, k]][:, on_line[:, k]] for k in range(dim - 1)], axis=0)
        nearest = np.abs(traces.T[:, None] - shapes[None]).max(axis=2).argmin(axis=1)
        places[mine, axis] = count + end
        for k, other in enumerate(others):
            places[mine, other] = choices[nearest, k]
    slopes = np.zeros_like(values)
    table = disc.operator_table(disc.quadrature.points[points[(slice(None), *[0] * (dim - 1))]])[:, 1]
    for m in range(count + 2):
        slopes[m] = table[:, places[:, 0] == m].sum(axis=1)
    ends = np.zeros((count + 2, 2))
    ends[:count] = lagrange(nodes, np.array([0.0, 1.0]))[0].T
    ends[[count, count + 1], [0, 1]] = -1
    return TensorFactors(values, slopes, ends, places, points, facet_points)


def _line(points: np.ndarray) -> np.ndarray:
    """Different coordinates of points along the first axis, in order."""
    x = np.sort(points[:, 0])
    return x[np.append(True, np.diff(x) > TOLERANCE)]


def _place(points: np.ndarray, line: np.ndarray) -> np.ndarray:
    """Places [point, axis] of coordinates on a line."""
    return np.abs(points[:, :, None] - line).argmin(axis=2)


def _by_place(places: np.ndarray, count: int) -> np.ndarray:
    """Number of the point [point, …] at each place."""
    out = np.zeros([count] * places.shape[1], dtype=np.int64)
    out[tuple(places.T)] = np.arange(len(places))
    return out
