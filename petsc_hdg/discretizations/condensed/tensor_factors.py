"""Functions and points of hexahedra as products of those of a line: tables of condense_warp_tensor.cl."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from ..lines import lagrange
from .launch_shapes import WarpShape

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
        return 3 * self.nodes + 3

    @property
    def slice_columns(self) -> int:
        """Columns of the matrix of a slice (COLUMNS_SLICE there)."""
        return 2 * self.nodes**2 + 4 * self.nodes + 1

    @property
    def index_reals(self) -> int:
        """Reals of local memory for what rows and columns come from, without those of the cell's matrix."""
        return self.columns + self.slice_columns + 40

    def team_reals(self, held: int) -> int:
        """Reals of local memory in which a team sums with `held` slices of points (SUM_REALS there)."""
        face, block, ends = self.line_points**2, 4 * 5, 2 * self.nodes * (self.nodes + 1)
        lines, matrix = (count * (count - 1) for count in (self.columns, self.slice_columns))
        return 12 * face + held * face * block + self.line_points * lines + ends + matrix


def tensor_factors(disc) -> TensorFactors:
    """The factors of the tables of a hybridizable discretization on hexahedra."""
    dim, element = disc.dim, disc.cell_element
    line, nodes = _line(disc.quadrature.points), _line(element.nodes)
    count, inner = len(nodes), disc.num_interior
    places = _place(np.concatenate([element.nodes, disc.trace_element.nodes]), nodes)
    points = _by_place(_place(disc.quadrature.points, line), len(line))
    rules, normals = disc.facet_rules
    per_facet = disc.num_trace // len(rules)
    facet_points = np.zeros((dim, 2, *[len(line)] * (dim - 1)), dtype=np.int64)
    for facet, rule in enumerate(rules):
        axis = int(np.abs(normals[facet]).argmax())
        end, others = int(rule.points[0, axis] > 0.5), [a for a in range(dim) if a != axis]
        on_line = _place(rule.points[:, others], line)
        facet_points[axis, end] = _by_place(on_line, len(line)) + facet * len(rule.points)
        places[inner + facet * per_facet :, axis][:per_facet] = count + end
    values, slopes, ends = (np.zeros((count + 2, width)) for width in (len(line), len(line), 2))
    values[:count] = lagrange(nodes, line)[0].T
    table = disc.operator_table(disc.quadrature.points[points[(slice(None), *[0] * (dim - 1))]])[:, 1]
    for m in range(count + 2):
        slopes[m] = table[:, places[:, 0] == m].sum(axis=1)
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


def tensor_tables(factors: TensorFactors, shape: WarpShape, room: int) -> tuple[dict, dict]:
    """Tables and macros; room: reals of local memory of a team, which holds as many slices of points as fit."""
    nodes, points = factors.nodes, factors.line_points
    line = np.zeros((points + 2, nodes + 2, 2))
    line[:points] = np.stack([factors.values, factors.slopes], axis=-1).transpose(1, 0, 2)
    line[points:, :, 1] = factors.ends.T
    first = _line_rows(line)
    slices = _slice_rows(line, first.names)
    last = _last_rows(line, factors.places, slices.names, 8 * shape.octets)
    tables = {
        "LINE": line,
        "LINE_FACTORS": first.by_point,
        "SLICE_FACTORS": slices.by_point,
        "LAST_FACTORS": last.by_point,
        "FROM": np.concatenate([first.parents, slices.parents, last.parents]),
        "HAS": _has(last.factors, points, shape.size),
        "POINT_AT": factors.points.astype(np.int32),
        "FACET_POINT_AT": factors.facet_points.astype(np.int32),
    }
    macros = {
        "LINE_NODES": nodes,
        "LINE_POINTS": points,
        "COLUMNS": factors.columns,
        "COLUMNS_SLICE": factors.slice_columns,
        "INDICES": 8 * shape.octets,
        "HELD_SLICES": _held_slices(factors, room),
    }
    return tables, macros


def _held_slices(factors: TensorFactors, room: int) -> int:
    """Slices whose points are evaluated together: equal parts of all that fit in `room` reals, one at least."""
    points = factors.line_points
    most = max([h for h in range(1, points + 1) if factors.team_reals(h) <= room], default=1)
    return -(-points // -(-points // most))


class _Rows:
    """Rows, and columns, of a matrix by names: parents [row, 2], factors [row, point and end, 2]."""

    def __init__(self, line: np.ndarray, count: int):
        self.line, self.names = line, {}
        self.parents, self.factors = np.zeros((count, 2), dtype=np.int32), np.zeros((count, len(line), 2))

    @property
    def by_point(self) -> np.ndarray:
        """The factors [point and end, row, 2]."""
        return np.ascontiguousarray(self.factors.transpose(1, 0, 2))

    def add(self, name, parents: tuple[int, int], place: int | None, both: bool = True) -> None:
        """A row of the function `place` of the line; both: whether it has slopes and jumps. None: the flux."""
        at = self.names[name] = len(self.names)
        self.parents[at] = parents
        if place is None:
            self.factors[at, :, 0] = 1
            return
        self.factors[at, :, 0] = self.line[:, place, 0]
        if both:
            self.factors[at, :, 1] = self.line[:, place, 1]


def _line_rows(line: np.ndarray) -> _Rows:
    """Names (kind, function): kind 0 has the value and the first slope, kind r > 0 that along axis r."""
    count = line.shape[1] - 2
    rows = _Rows(line, 3 * count + 3)
    for m in range(count + 2):
        rows.add((0, m), (0, 1), m)
    for kind, m in product(range(1, 3), range(count)):
        rows.add((kind, m), (kind + 1, kind + 1), m, both=False)
    rows.add("flux", (4, 4), None)
    return rows


def _slice_rows(line: np.ndarray, before: dict) -> _Rows:
    """Names (kind, first, second function): kind 0 has the value and the slopes in the slice, kind 1 that across."""
    count = line.shape[1] - 2
    rows = _Rows(line, 2 * count**2 + 4 * count + 1)
    for n, m in product(range(count + 2), range(count)):
        rows.add((0, m, n), (before[0, m], before[1, m]), n)
    for end, n in product(range(2), range(count)):
        at = before[0, count + end]
        rows.add((0, count + end, n), (at, at), n, both=False)
    for n, m in product(range(count), range(count)):
        at = before[2, m]
        rows.add((1, m, n), (at, at), n, both=False)
    rows.add("flux", (before["flux"], before["flux"]), None)
    return rows


def _last_rows(line: np.ndarray, places: np.ndarray, before: dict, indices: int) -> _Rows:
    """Functions of the cell at `places` [function, axis], then the flux."""
    count = line.shape[1] - 2
    rows = _Rows(line, indices)
    for i, (*others, last) in enumerate(places.tolist()):
        at, inside = before[(0, *others)], max(others) < count
        rows.add(i, (at, before[(1, *others)] if inside else at), last, both=inside)
    rows.add("flux", (before["flux"], before["flux"]), None)
    return rows


def _has(factors: np.ndarray, points: int, size: int) -> np.ndarray:
    """Bits of each octet of indices: factors of the first kind inside, of the second anywhere, the flux."""
    bits = factors[:, :points, 0].any(axis=1) | factors[:, :, 1].any(axis=1) << 1
    bits[size] = 5
    return np.bitwise_or.reduce(bits.reshape(-1, 8), axis=1).astype(np.int32)
