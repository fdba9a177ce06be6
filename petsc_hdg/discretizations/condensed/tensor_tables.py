"""Tables of condensation of quadrilaterals and hexahedra by sums along lines: condense_warp_tensor.cl."""

from __future__ import annotations

from itertools import product

import numpy as np

from .tensor_factors import TensorFactors
from .warp_shape import WarpShape


def tensor_tables(factors: TensorFactors, shape: WarpShape, room: int) -> tuple[dict, dict]:
    """Tables and macros; room: reals of local memory of a team, which holds as many slices of points as fit."""
    nodes, points, dim = factors.nodes, factors.line_points, factors.dim
    line = np.zeros((points + 2, nodes + 2, 2))
    line[:points] = np.stack([factors.values, factors.slopes], axis=-1).transpose(1, 0, 2)
    line[points:, :, 1] = factors.ends.T
    first, slices = _line_rows(line, dim), _slice_rows(line) if dim == 3 else None
    before = slices if dim == 3 else first
    last = _last_rows(line, factors.places, before, _indices(shape))
    tables = {
        "LINE": line,
        "LINE_FACTORS": first.by_point,
        "SLICE_FACTORS": slices.by_point if dim == 3 else np.zeros(2),
        "LAST_FACTORS": last.by_point,
        "FROM": np.concatenate([first.parents, *([slices.parents] if dim == 3 else []), last.parents]),
        "HAS": _has(last.factors, points, shape.size),
        "POINT_AT": factors.points.astype(np.int32),
        "FACET_POINT_AT": factors.facet_points.astype(np.int32),
    }
    macros = {
        "LINE_NODES": nodes,
        "LINE_POINTS": points,
        "COLUMNS": factors.columns,
        "COLUMNS_SLICE": factors.slice_columns,
        "INDICES": _indices(shape),
        "HELD_SLICES": _held_slices(factors, room),
    }
    return tables, macros


def _held_slices(factors: TensorFactors, room: int) -> int:
    """Slices whose points are evaluated together: equal parts of all that fit in `room` reals, one at least."""
    points = factors.line_points
    most = max([h for h in range(1, points + 1) if factors.team_reals(h) <= room], default=1)
    return -(-points // -(-points // most))


def _indices(shape: WarpShape) -> int:
    """Rows or columns of whole octets, whichever are more."""
    return 8 * max(2 * shape.pairs, shape.warps * shape.column_blocks)


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


def _line_rows(line: np.ndarray, dim: int) -> _Rows:
    """Names (kind, function): kind 0 has the value and the first slope, kind r > 0 that along axis r."""
    count = line.shape[1] - 2
    rows = _Rows(line, count * dim + 3)
    for m in range(count + 2):
        rows.add((0, m), (0, 1), m)
    for kind, m in product(range(1, dim), range(count)):
        rows.add((kind, m), (kind + 1, kind + 1), m, both=False)
    rows.add("flux", (dim + 1, dim + 1), None)
    return rows


def _slice_rows(line: np.ndarray) -> _Rows:
    """Names (kind, first, second function): kind 0 has the value and the slopes in the slice, kind 1 that across."""
    count = line.shape[1] - 2
    before = _line_rows(line, 3).names
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


def _last_rows(line: np.ndarray, places: np.ndarray, before: _Rows, indices: int) -> _Rows:
    """Functions of the cell at `places` [function, axis], then the flux."""
    count = line.shape[1] - 2
    rows = _Rows(line, indices)
    for i, (*others, last) in enumerate(places.tolist()):
        at, inside = before.names[(0, *others)], max(others) < count
        rows.add(i, (at, before.names[(1, *others)] if inside else at), last, both=inside)
    rows.add("flux", (before.names["flux"], before.names["flux"]), None)
    return rows


def _has(factors: np.ndarray, points: int, size: int) -> np.ndarray:
    """Bits of each octet of indices: factors of the first kind inside, of the second anywhere, the flux."""
    first = factors[:, :points, 0].any(axis=1)
    bits = first | factors[:, :, 1].any(axis=1) << 1
    bits[size] = 5
    return np.bitwise_or.reduce(bits.reshape(-1, 8), axis=1).astype(np.int32)
