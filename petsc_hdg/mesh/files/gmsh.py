"""Gmsh files as cell lists: MSH 4.1 and 2.2, text or binary, straight or of second order; older ones by meshio.

Physical groups are labels with their numbers as values, and by their names. Formats: Gmsh's reference manual. What a
file says of itself is counted through: damaged ones are refused.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np

from ...errors import MeshError
from ...value_checks import plural
from ..cell_list import CellList
from ..labels import INTERNAL
from ..shapes import CELLS
from . import meshio_file

_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s*\$Comments\b.*?\$EndComments[^\n]*\n)*\$MeshFormat\s*\n", re.DOTALL)
_NAME = re.compile(rb'^\s*(\d+)\s+(-?\d+)\s+"(.*?)"', re.MULTILINE)
_INT, _SIZE, _REAL = "<i4", "<u8", "<f8"
_RESERVED = INTERNAL | {"Cell Sets", "Face Sets", "Edge Sets", "Vertex Sets"}  # names of labels that PETSc makes
# Shape, dimension and corners of elements, and their nodes by the type that files call them by.
_SHAPES = {
    "point": (0, 1, {15: 1}),
    "interval": (1, 2, {1: 2, 8: 3, 26: 4, 27: 5, 28: 6}),
    "triangle": (2, 3, {2: 3, 9: 6, 20: 9, 21: 10, 22: 12, 23: 15, 24: 15, 25: 21}),
    "quadrilateral": (2, 4, {3: 4, 10: 9, 16: 8, 36: 16, 37: 25, 38: 36}),
    "tetrahedron": (3, 4, {4: 4, 11: 10, 29: 20, 30: 35, 31: 56}),
    "hexahedron": (3, 8, {5: 8, 12: 27, 17: 20, 92: 64, 93: 125}),
    "prism": (3, 6, {6: 6, 13: 18, 18: 15}),
    "pyramid": (3, 5, {7: 5, 14: 14, 19: 13}),
}
_TYPES = {kind: (name, count) for name, (_, _, kinds) in _SHAPES.items() for kind, count in kinds.items()}
# Corners around each edge, face and cell inside which second-order elements have a node, in the order of these. Those
# of 8 and 20 nodes have none inside faces and cells.
_AROUND = {
    "triangle": ((0, 1), (1, 2), (2, 0)),
    "quadrilateral": ((0, 1), (1, 2), (2, 3), (3, 0), (0, 1, 2, 3)),
    "tetrahedron": ((0, 1), (1, 2), (2, 0), (3, 0), (3, 2), (3, 1)),
    "hexahedron": (
        *((0, 1), (0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (2, 6), (3, 7), (4, 5), (4, 7), (5, 6), (6, 7)),
        *((0, 3, 2, 1), (0, 1, 5, 4), (0, 4, 7, 3), (1, 2, 6, 5), (2, 3, 7, 6), (4, 5, 6, 7), tuple(range(8))),
    ),
}


def read(path: Path, is_straight: bool = False) -> CellList:
    """The mesh in a file, of corners alone if `is_straight`. Raises MeshError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MeshError(f"Mesh file {path} cannot be read: {error.strerror}.") from None
    head = _HEAD.match(content)
    if not head:
        raise MeshError(
            f"Mesh file {path} is not a Gmsh mesh: it does not begin with $MeshFormat; write it with Gmsh as MSH 4.1 "
            "or 2.2."
        )
    try:
        version, kind = (float(word) for word in content[head.end() :].split(None, 2)[:2])
    except ValueError:
        raise MeshError(
            f"Mesh file {path} has a damaged Gmsh header; write it again with Gmsh as MSH 4.1 or 2.2."
        ) from None
    if not (version == 4.1 or 2 <= version < 3):
        return meshio_file.read(path)
    try:
        file = _File(content, version, kind == 0)
    except (ValueError, IndexError, OverflowError) as error:
        raise MeshError(
            f"Mesh file {path} has a damaged section of nodes, entities or elements ({error}); "
            "write it again with Gmsh as MSH 4.1 or 2.2."
        ) from None
    return file.listed(f"Mesh file {path}", is_straight)


def _require(holds, message: str) -> None:
    if not holds:
        raise ValueError(message)


class _Section:
    """Numbers of a section, one after another. Raises ValueError where there are no more, or others."""

    def __init__(self, content: bytes, name: bytes, is_text: bool, begin: int = 0):
        start = content.find(b"\n$" + name, begin)
        _require(start >= 0, f"no ${name.decode()}")
        self.name, self.place = name.decode(), content.find(b"\n", start + 1) + 1
        self._content, self._numbers = content, None
        if is_text:
            end = content.find(b"\n$End" + name, start)
            _require(end > start, f"no whole ${self.name}")
            self._numbers, self.place, self.begin = self._read(content[self.place : end + 1]), 0, end

    def _read(self, text: bytes) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                return np.fromstring(text.decode("ascii"), dtype=float, sep=" ")
            except (DeprecationWarning, ValueError):  # the first one from numpy before 2.3
                raise ValueError(f"${self.name} holds something else than numbers") from None

    def take(self, count: int, kind) -> np.ndarray:
        """The next numbers [count], whole ones as int64; kind: their type in a binary file."""
        count, first, whole = int(count), self.place, np.dtype(kind).kind in "iu"
        if self._numbers is None:
            self.place += count * np.dtype(kind).itemsize
            _require(0 <= count and self.place <= len(self._content), f"${self.name} is cut off")
            found = np.frombuffer(self._content, kind, count, first)
        else:
            self.place += count
            _require(0 <= count and self.place <= len(self._numbers), f"a block is longer than ${self.name}")
            found = self._numbers[first : self.place]
            _require(not whole or (found == np.rint(found)).all(), "a count or tag is not a whole number")
        return found.astype(np.int64) if whole else found

    @property
    def left(self) -> int:
        """How many numbers are left of a text."""
        return len(self._numbers) - self.place

    def count(self) -> int:
        """The count at the head of a section of MSH 2.2, which is text in any case."""
        if self._numbers is not None:
            return int(self.take(1, _INT)[0])
        end = self._content.find(b"\n", self.place, self.place + 32)
        _require(end > 0 and self._content[self.place : end].strip().isdigit(), f"${self.name} has no count")
        number, self.place = int(self._content[self.place : end]), end + 1
        return number

    def end(self, holds: bool, what: str) -> None:
        """Raise ValueError unless the section ends here, as its counts say: there is `what`."""
        if self._numbers is not None:
            is_end = self.place == len(self._numbers)
        else:
            is_end, self.begin = self._content[self.place : self.place + 6].lstrip(b"\n")[:4] == b"$End", self.place
        _require(holds and is_end, f"there are not {what}")


class _File:
    """Nodes and elements of a file, and its physical groups. Raises ValueError for a damaged file.

    points [node, 3].   names: (dimension, number) → name.
    blocks: type of elements, their nodes [element, node], arrays of their physical groups [element], 0 for none.
    """

    def __init__(self, content: bytes, version: float, is_text: bool):
        start, end = content.find(b"\n$PhysicalNames"), content.find(b"\n$EndPhysicalNames")
        found = _NAME.findall(content[start:end]) if start >= 0 else []
        self.names = {(int(dim), int(tag)): name.decode(errors="replace") for dim, tag, name in found}
        entities = {}
        if version > 4 and b"\n$Entities" in content:
            entities = _entities(_Section(content, b"Entities", is_text))
        section = _Section(content, b"Nodes", is_text)
        tags, self.points = (_nodes if version > 4 else _nodes_2)(section, is_text)
        _require(np.isfinite(self.points).all(), "a coordinate is not a finite number")
        order = np.argsort(tags, kind="stable")
        tags = tags[order]
        _require(len(tags) and tags[0] > 0, "there is no node, or one with a tag below 1")
        _require((np.diff(tags) > 0).all(), "two nodes have the same tag")
        section = _Section(content, b"Elements", is_text, section.begin)
        self.blocks = []
        for kind, nodes, groups in _elements(section, entities) if version > 4 else _elements_2(section, is_text):
            place = np.minimum(np.searchsorted(tags, nodes), len(tags) - 1)
            _require((tags[place] == nodes).all(), "an element names a node that there is not")
            self.blocks.append((kind, order[place], groups))

    def listed(self, what: str, is_straight: bool) -> CellList:
        """The cells, with groups of cells and facets as labels. Raises MeshError."""
        dims = {kind: _SHAPES[_TYPES[kind][0]][0] for kind, *_ in self.blocks}
        dim = max(dims.values(), default=0)
        if dim < 2:
            raise MeshError(f"The mesh has dimension {dim}; 2 and 3 are accepted.")
        reserved = sorted(_RESERVED.intersection(self.names.values()))
        if reserved:
            raise MeshError(
                f"{what} has a physical group called '{reserved[0]}', which is a label of PETSc's own; rename it."
            )
        blocks = sorted((b for b in self.blocks if dims[b[0]] == dim), key=lambda block: _TYPES[block[0]][0])
        points = meshio_file.flat(self.points, dim, what)
        cells, regions, facets = defaultdict(list), defaultdict(list), defaultdict(lambda: defaultdict(list))
        first, labels = 0, {}
        for kind, nodes, groups in blocks:
            name = _TYPES[kind][0]
            cells[name].append(nodes[:, : _SHAPES[name][1]])
            for key, rows in self._groups("Cell Sets", dim, groups, labels):
                regions[key].append(first + rows)
            first += len(nodes)
        for kind, nodes, groups in (b for b in self.blocks if dims[b[0]] == dim - 1):
            corners = _SHAPES[_TYPES[kind][0]][1]
            for key, rows in self._groups("Face Sets", dim - 1, groups, labels):
                facets[key][corners].append(nodes[rows, :corners])
        return CellList(
            {name: np.concatenate(of)[:, meshio_file.TENSOR.get(name, slice(None))] for name, of in cells.items()},
            points,
            {key: [np.concatenate(of) for of in by_width.values()] for key, by_width in facets.items()},
            {key: np.concatenate(rows) for key, rows in regions.items()},
            labels=labels,
            inside=[] if is_straight else _inside(blocks, points, list(cells)),
        )

    def _groups(self, sets: str, dim: int, groups: list, labels: dict):
        """Yield a name and the rows of the elements [n] of each physical group, and put its labels into `labels`."""
        for of_elements in groups:
            for tag in np.unique(of_elements[of_elements != 0]).tolist():
                key = f"{sets}:{abs(tag)}"  # negative for elements that are turned over
                labels[key] = [(sets, abs(tag)), (self.names.get((dim, abs(tag)), str(abs(tag))), abs(tag))]
                yield key, np.flatnonzero(of_elements == tag)


def _inside(blocks: list, points: np.ndarray, shapes: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Corners [entity of a cell, vertex] and places [entity of a cell, dim] of the nodes inside edges, faces and cells.
    Raises MeshError for cells of another order, or of several shapes of second order."""
    if all(nodes.shape[1] == _SHAPES[_TYPES[kind][0]][1] for kind, nodes, _ in blocks):
        return []
    if len({kind for kind, *_ in blocks}) > 1 or shapes[0] not in CELLS:
        raise MeshError(
            f"The mesh has second-order cells of shape {', '.join(shapes)}; they are accepted in meshes of one shape, "
            f"{', '.join(CELLS)}: write the mesh with straight cells (Gmsh: -order 1)."
        )
    nodes, around, first = np.concatenate([of for _, of, _ in blocks]), _AROUND[shapes[0]], _SHAPES[shapes[0]][1]
    has_middles = nodes.shape[1] == first + len(around)
    if not has_middles and nodes.shape[1] != first + sum(len(corners) == 2 for corners in around):
        raise MeshError("The mesh has cells of geometric order 3 or more; order 1 or 2 is accepted (Gmsh: -order 2).")
    found, edges = [], {}
    for node, corners in enumerate(around, first):
        if has_middles or len(corners) == 2:
            x = points[nodes[:, node]]
        else:  # as functions of 8 or 20 nodes have it
            own = [x for edge, x in edges.items() if edge <= set(corners)]
            x = sum(own) * 2 / len(corners) - points[nodes[:, corners]].sum(axis=1) / 4
        if len(corners) == 2:
            edges[frozenset(corners)] = x
        found.append((nodes[:, corners], x))
    return found


def _entities(section: _Section) -> dict[tuple[int, int], np.ndarray]:
    """Physical groups of points, curves, surfaces and volumes of MSH 4.1, by dimension and number."""
    found = {}
    for dim, count in enumerate(section.take(4, _SIZE)):
        for _ in range(count):
            (number,) = section.take(1, _INT)
            section.take(6 if dim else 3, _REAL)
            found[dim, int(number)] = section.take(section.take(1, _SIZE)[0], _INT)
            if dim:
                section.take(section.take(1, _SIZE)[0], _INT)
    section.end(True, "as many entities as are said")
    return found


def _nodes(section: _Section, _) -> tuple[np.ndarray, np.ndarray]:
    """Tags [node] and coordinates [node, 3] of MSH 4.1."""
    blocks, total, _, _ = section.take(4, _SIZE)
    tags, points = [np.zeros(0, np.int64)], [np.zeros((0, 3))]
    for _ in range(blocks):
        dim, _, parametric = section.take(3, _INT)
        _require(0 <= dim <= 3 and parametric in (0, 1), "a block of nodes has a damaged head")
        (count,) = section.take(1, _SIZE)
        tags.append(section.take(count, _SIZE))
        width = 3 + (dim if parametric else 0)
        points.append(section.take(count * width, _REAL).reshape(count, width)[:, :3])
    tags = np.concatenate(tags)
    section.end(len(tags) == total, f"{plural(int(total), 'node')} in {plural(int(blocks), 'block')}")
    return tags, np.concatenate(points)


def _nodes_2(section: _Section, is_text: bool) -> tuple[np.ndarray, np.ndarray]:
    """The same of MSH 2.2."""
    count = section.count()
    if is_text:
        table = section.take(4 * count, _REAL).reshape(count, 4)
        tags, points = table[:, 0].astype(np.int64), table[:, 1:]
        _require((tags == table[:, 0]).all(), "a count or tag is not a whole number")
    else:
        table = section.take(count, [("tag", _INT), ("x", _REAL, 3)])
        tags, points = table["tag"].astype(np.int64), table["x"]
    section.end(True, plural(count, "node"))
    return tags, points


def _elements(section: _Section, entities: dict) -> list[tuple]:
    """Blocks of elements of MSH 4.1: type, tags of nodes [element, node], physical groups."""
    blocks, total, _, _ = section.take(4, _SIZE)
    found = []
    for _ in range(blocks):
        dim, entity, kind = section.take(3, _INT).tolist()
        _require(kind in _TYPES, f"elements of type {kind} are not known")
        (count,) = section.take(1, _SIZE)
        rows = section.take(count * (1 + _TYPES[kind][1]), _SIZE).reshape(count, -1)
        found.append((kind, rows[:, 1:], [np.full(count, tag) for tag in entities.get((dim, entity), ())]))
    section.end(sum(len(rows) for _, rows, _ in found) == total, plural(int(total), "element"))
    return found


def _elements_2(section: _Section, is_text: bool) -> list[tuple]:
    """The same of MSH 2.2: each element of a text, and each block of elements else, has a head of its own."""
    total = left = section.count()
    rows: dict[tuple[int, int], list] = defaultdict(list)  # by type and number of tags
    if is_text:
        numbers, place = section.take(section.left, _INT), 0
        listed = numbers.tolist()
        for _ in range(total):
            kind, more = listed[place + 1 : place + 3]
            _require(kind in _TYPES and more >= 0, f"elements of type {kind} are not known")
            rows[kind, more].append(place + 3)
            place += 3 + more + _TYPES[kind][1]
        section.end(place == len(listed), plural(total, "element"))
        found = {of: numbers[np.array(at)[:, None] + np.arange(of[1] + _TYPES[of[0]][1])] for of, at in rows.items()}
    else:
        while left > 0:
            kind, size, more = section.take(3, _INT).tolist()
            _require(kind in _TYPES and more >= 0, f"elements of type {kind} are not known")
            _require(0 < size <= left, "a block of elements has a damaged head")
            width, left = 1 + more + _TYPES[kind][1], left - size
            rows[kind, more].append(section.take(size * width, _INT).reshape(size, width)[:, 1:])
        section.end(True, plural(total, "element"))
        found = {of: np.concatenate(blocks) for of, blocks in rows.items()}
    return [(kind, of[:, more:], [of[:, 0]] if more else []) for (kind, more), of in found.items()]
