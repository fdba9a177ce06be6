"""Gmsh files are counted through before PETSc reads them: its reader trusts counts and tags, and crashes on
some files that are damaged. Formats: Gmsh's reference manual, MSH 4.1 and 2.2."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from petsc4py import PETSc

from ...errors import MeshError
from ...value_checks import plural

# Nodes of an element of each type: lines, triangles, quadrilaterals, tetrahedra, hexahedra, prisms, pyramids, points.
_NODES = {
    1: 2,
    2: 3,
    3: 4,
    4: 4,
    5: 8,
    6: 6,
    7: 5,
    8: 3,
    9: 6,
    10: 9,
    11: 10,
    12: 27,
    13: 18,
    14: 14,
    15: 1,
    16: 8,
    17: 20,
}
_NODES |= {18: 15, 19: 13, 20: 9, 21: 10, 22: 12, 23: 15, 24: 15, 25: 21, 26: 4, 27: 5, 28: 6, 29: 20, 30: 35, 31: 56}
_NODES |= {36: 16, 37: 25, 38: 36, 92: 64, 93: 125}
CHECKED = (2.2, 4.1)
_MOST_TAGS = 1000  # of an element
_MOST_SPAN = 10_000_000  # of the tags of few nodes


def check(path: Path, version: float) -> None:
    """Raise MeshError if the nodes or elements of a file do not add up."""
    content = path.read_bytes()
    kind = content.split(b"\n", 2)[1].split()[1:2]
    if version not in CHECKED:
        return
    try:
        if kind != [b"0"]:
            if version == 4.1:
                elements, tags = _binary_elements(content), _binary_nodes(content)
            else:
                tags, elements = _binary_nodes_2(content), _binary_elements_2(content)
            _known(elements, tags)
            _check_range(tags)
            return
        tags = _nodes(_section(content, b"Nodes"), version)
        _check_range(tags)
        (_blocks if version == 4.1 else _lines)(_section(content, b"Elements"), tags)
        if version == 4.1 and b"$Entities" in content:
            _entities(_section(content, b"Entities"))
    except (ValueError, IndexError, OverflowError) as error:
        raise MeshError(
            f"Mesh file {path} has a damaged section of nodes, entities or elements ({error}); "
            "write it again with Gmsh as MSH 4.1 or 2.2."
        ) from None


def _section(content: bytes, name: bytes) -> np.ndarray:
    """All numbers between $name and $Endname [n]. Raises ValueError."""
    start, end = content.find(b"\n$" + name), content.find(b"\n$End" + name)
    _require(0 <= start < end, f"no whole ${name.decode()}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.fromstring(content[start + len(name) + 2 : end].decode("ascii"), dtype=float, sep=" ")
        except (DeprecationWarning, ValueError):  # the first one from numpy before 2.3
            raise ValueError(f"${name.decode()} holds something else than numbers") from None


def _require(holds, message: str) -> None:
    if not holds:
        raise ValueError(message)


def _whole(numbers: np.ndarray) -> np.ndarray:
    """Numbers as integers. Raises ValueError unless they are."""
    found = numbers.astype(np.int64)
    _require((found == numbers).all(), "a count or tag is not a whole number")
    return found


def _nodes(numbers: np.ndarray, version: float) -> np.ndarray:
    """Tags of all nodes, in order [node]."""
    if version == 4.1:
        tags, coordinates = _node_blocks(numbers)
    else:
        (count,) = _whole(numbers[:1])
        _require(
            len(numbers) == 1 + 4 * count,
            f"{plural(count, 'node')} of {4 * count} numbers, there are {len(numbers) - 1}",
        )
        table = numbers[1:].reshape(-1, 4)
        tags, coordinates = _whole(table[:, 0]), table[:, 1:]
    _require(np.isfinite(coordinates).all(), "a coordinate is not a finite number")
    tags = np.sort(tags)
    _require(len(tags) and tags[0] > 0, "there is no node, or one with a tag below 1")
    _require((np.diff(tags) > 0).all(), "two nodes have the same tag")
    return tags


def _node_blocks(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    blocks, count, _, most = _whole(numbers[:4])
    place, tags, coordinates = 4, [], []
    for _ in range(blocks):
        dim, _, parametric, size = _whole(numbers[place : place + 4])
        _require(0 <= dim <= 3 and size >= 0 and parametric in (0, 1), "a block of nodes has a damaged head")
        width = 3 + (dim if parametric else 0)
        place += 4
        tags.append(_whole(numbers[place : place + size]))
        coordinates.append(numbers[place + size : place + size * (1 + width)])
        place += size * (1 + width)
        _require(place <= len(numbers), "a block of nodes is longer than its section")
    _require(
        place == len(numbers) and sum(map(len, tags)) == count,
        f"there are not {plural(count, 'node')} in {plural(blocks, 'block')}",
    )
    found = np.concatenate([*tags, np.zeros(0, np.int64)])
    _require(not len(found) or found.max() <= most, "a node has a tag above the largest one")
    return found, np.concatenate([*coordinates, np.zeros(0)])


def _known(nodes: np.ndarray, tags: np.ndarray) -> None:
    place = np.minimum(np.searchsorted(tags, nodes), len(tags) - 1)
    _require((tags[place] == nodes).all(), "an element names a node that there is not")


def _blocks(numbers: np.ndarray, tags: np.ndarray) -> None:
    """Elements of MSH 4.1."""
    blocks, count, _, _ = _whole(numbers[:4])
    place, total = 4, 0
    for _ in range(blocks):
        dim, _, kind, size = _whole(numbers[place : place + 4])
        _require(0 <= dim <= 3 and size >= 0, "a block of elements has a damaged head")
        _require(int(kind) in _NODES, f"elements of type {kind} are not known")
        width, place = 1 + _NODES[int(kind)], place + 4
        _require(place + size * width <= len(numbers), "a block of elements is longer than its section")
        _known(_whole(numbers[place : place + size * width]).reshape(-1, width)[:, 1:], tags)
        place, total = place + size * width, total + size
    _require(
        place == len(numbers) and total == count,
        f"there are not {plural(count, 'element')} in {plural(blocks, 'block')}",
    )


def _binary(content: bytes, name: bytes, start: int, kind, count: int) -> tuple[np.ndarray, int]:
    """Numbers of a kind from a byte of a binary section on [count], and the byte behind them. Raises ValueError."""
    nbytes = int(count) * np.dtype(kind).itemsize
    _require(0 <= nbytes <= len(content) - start, f"${name.decode()} is cut off")
    return np.frombuffer(content, kind, int(count), start), start + nbytes


def _binary_blocks(content: bytes, name: bytes, read) -> np.ndarray:
    """Numbers of all blocks of a section [n]: those that `read` gives, and the byte behind them, for (dim, whether
    parametric or the type, count, byte where its data begin) of each block."""
    start = content.find(b"\n$" + name)
    _require(start >= 0, f"no ${name.decode()}")
    head, place = _binary(content, name, start + len(name) + 3, "<u8", 4)
    total, found = 0, [np.zeros(0, np.int64)]
    for _ in range(min(int(head[0]), len(content))):
        (dim, _, what), place = _binary(content, name, place, "<i4", 3)
        (count,), place = _binary(content, name, place, "<u8", 1)
        total += int(count)
        numbers, place = read(int(dim), int(what), int(count), place)
        found.append(numbers)
    _require(total == int(head[1]), f"${name.decode()} has {total} items instead of {head[1]}")
    _check_end(content, name, place)
    return np.concatenate(found)


def _binary_nodes(content: bytes) -> np.ndarray:
    """Tags of all nodes, in order [node]."""

    def read(dim, parametric, count, place):
        _require(0 <= dim <= 3 and parametric in (0, 1), "a block of nodes has a damaged head")
        tags, place = _binary(content, b"Nodes", place, "<u8", count)
        x, place = _binary(content, b"Nodes", place, "<f8", count * (3 + (dim if parametric else 0)))
        _require(np.isfinite(x).all(), "a coordinate is not a finite number")
        return tags.astype(np.int64), place

    tags = np.sort(_binary_blocks(content, b"Nodes", read))
    _require(len(tags) and tags[0] > 0 and (np.diff(tags) > 0).all(), "two nodes have the same tag, or one below 1")
    return tags


def _binary_elements(content: bytes) -> np.ndarray:
    """Nodes of all elements [n]."""

    def read(dim, kind, count, place):
        _require(0 <= dim <= 3 and kind in _NODES, f"elements of type {kind} are not known")
        rows, place = _binary(content, b"Elements", place, "<u8", count * (1 + _NODES[kind]))
        return rows.reshape(count, -1)[:, 1:].ravel().astype(np.int64), place

    return _binary_blocks(content, b"Elements", read)


def _counted(content: bytes, name: bytes) -> tuple[int, int]:
    """The count at the head of a section of MSH 2.2, and the byte behind its line."""
    start = content.find(b"\n$" + name + b"\n")
    _require(start >= 0, f"no ${name.decode()}")
    place = start + len(name) + 3
    end = content.find(b"\n", place, place + 32)
    _require(end > 0 and content[place:end].strip().isdigit(), f"${name.decode()} has no count")
    return int(content[place:end]), end + 1


def _check_end(content: bytes, name: bytes, place: int) -> None:
    _require(content[place : place + 6].lstrip(b"\n")[:4] == b"$End", f"${name.decode()} does not end where it must")


def _binary_nodes_2(content: bytes) -> np.ndarray:
    """Tags of all nodes of MSH 2.2, in order [node]."""
    count, place = _counted(content, b"Nodes")
    table, place = _binary(content, b"Nodes", place, [("tag", "<i4"), ("x", "<f8", 3)], count)
    _check_end(content, b"Nodes", place)
    _require(np.isfinite(table["x"]).all(), "a coordinate is not a finite number")
    tags = np.sort(table["tag"].astype(np.int64))
    _require(len(tags) and tags[0] > 0 and (np.diff(tags) > 0).all(), "two nodes have the same tag, or one below 1")
    return tags


def _binary_elements_2(content: bytes) -> np.ndarray:
    """Nodes of all elements of MSH 2.2 [n]: blocks of (type, elements, tags), each element its number, tags, nodes."""
    left, place = _counted(content, b"Elements")
    found = [np.zeros(0, np.int64)]
    while left > 0:
        (kind, size, more), place = _binary(content, b"Elements", place, "<i4", 3)
        _require(kind in _NODES, f"elements of type {kind} are not known")
        _require(0 < size <= left and 0 <= more <= _MOST_TAGS, "a block of elements has a damaged head")
        width = 1 + int(more) + _NODES[int(kind)]
        rows, place = _binary(content, b"Elements", place, "<i4", int(size) * width)
        found.append(rows.reshape(size, width)[:, 1 + more :].ravel().astype(np.int64))
        left -= int(size)
    _check_end(content, b"Elements", place)
    return np.concatenate(found)


def _check_range(tags: np.ndarray) -> None:
    """PETSc's reader keeps an array over all tags between the smallest and the largest, and reads them as PetscInt."""
    most = np.iinfo(PETSc.IntType).max
    _require(tags[-1] <= most, f"a node has the tag {tags[-1]}, and PETSc reads those up to {most}")
    span = int(tags[-1] - tags[0]) + 1
    fits = span <= max(_MOST_SPAN, 100 * len(tags))
    _require(fits, f"{len(tags)} nodes have tags from {tags[0]} to {tags[-1]}, which is too wide a range")


def _lines(numbers: np.ndarray, tags: np.ndarray) -> None:
    """Elements of MSH 2.2: number, type, number of tags, tags, nodes."""
    numbers = _whole(numbers).tolist()
    place, nodes = 1, []
    for _ in range(numbers[0]):
        kind, more = numbers[place + 1], numbers[place + 2]
        _require(kind in _NODES and more >= 0, f"elements of type {kind} are not known")
        end = place + 3 + more + _NODES[kind]
        nodes += numbers[place + 3 + more : end]
        place = end
    _require(place == len(numbers), f"there are not {plural(numbers[0], 'element')}")
    _known(np.array(nodes, np.int64), tags)


def _entities(numbers: np.ndarray) -> None:
    """Points, curves, surfaces and volumes of MSH 4.1: tag, place, physical tags, and what bounds them."""
    counts, place = _whole(numbers[:4]), 4
    for dim, count in enumerate(counts):
        for _ in range(count):
            for skip in (4,) if dim == 0 else (7, 0):
                place += skip
                (listed,) = _whole(numbers[place : place + 1])
                _require(listed >= 0, "an entity has a negative count of tags")
                place += 1 + listed
    _require(place == len(numbers), "the entities are not as many as are said")
