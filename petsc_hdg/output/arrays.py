"""Nodal arrays as the writers take them, checked; data of all ranks on rank 0, one rank at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..errors import OptionError
from ..reference import CELLS, ReferenceElement
from .lagrange import STRAIGHT

_CHUNK = 1 << 28  # bytes a message; MPI counts are 32-bit
_TAG = 7301
MOST_DEGREE = 17
FACETS = ("interval", "triangle", "quadrilateral")


def pieces_in_rank_order(comm, own: bytes) -> Iterator[bytes]:
    """On rank 0: the bytes of rank 0, 1, 2, …; elsewhere: send `own` and yield nothing.

    Every rank must run the iterator to its end. Only one piece besides its own is held on rank 0.
    """
    if comm.rank:
        comm.send(len(own), 0, _TAG)
        for start in range(0, len(own), _CHUNK):
            comm.Send(np.frombuffer(own, np.uint8)[start : start + _CHUNK], 0, _TAG)
        return
    yield own
    for source in range(1, comm.size):
        data = np.empty(comm.recv(source=source, tag=_TAG), np.uint8)
        for start in range(0, len(data), _CHUNK):
            comm.Recv(data[start : start + _CHUNK], source, _TAG)
        yield data.tobytes()


def whole_blocks(comm, data: bytes, size: int) -> bytes:
    """This rank's part of all ranks' bytes laid end to end, so that whole blocks of `size` bytes stay together: each
    rank has the blocks that begin in its own data. Collective."""
    ends = np.cumsum(comm.allgather(len(data)))
    end, total = int(ends[comm.rank]), int(ends[-1])
    start = end - len(data)
    first = min(-(-start // size) * size, end)
    request = None
    if first > start:  # a block that began before this rank's data
        owner = int(np.searchsorted(ends, start // size * size, side="right"))
        request = comm.Isend(np.frombuffer(data, np.uint8)[: first - start], owner, _TAG)
    parts = [data[first - start :]]
    last = min(-(-end // size) * size, total) if end > first else end
    for source in range(comm.rank + 1, comm.size):
        count = min(int(ends[source]), last) - end
        if count > 0:
            part = np.empty(count, np.uint8)
            comm.Recv(part, source, _TAG)
            parts.append(part.tobytes())
            end += count
    if request is not None:
        request.Wait()
    return b"".join(parts)


def gather_rows(comm, rows: np.ndarray) -> np.ndarray | None:
    """Rows [row, …] of all ranks, in rank order, on rank 0; None elsewhere. Collective.

    All ranks give the same shape after the first axis, and the same type.
    """
    rows = np.ascontiguousarray(rows)
    pieces = pieces_in_rank_order(comm, rows.tobytes())
    parts = [np.frombuffer(piece, rows.dtype).reshape(-1, *rows.shape[1:]) for piece in pieces]
    return np.concatenate(parts) if comm.rank == 0 else None


def element_for(cell: str, degree: int, facets: bool = False) -> ReferenceElement:
    """The element whose nodes the arrays are given at. Raises OptionError for an unknown shape or a degree below 1."""
    known, kind = (FACETS, "facets") if facets else ((*CELLS, *STRAIGHT), "cells")
    if cell not in known:
        raise OptionError(f"Output of {kind} of shape '{cell}' was asked for; accepted shapes are {', '.join(known)}.")
    if not isinstance(degree, int | np.integer) or degree < 1:
        raise OptionError(
            f"Output of degree {degree} was asked for; give a whole number from 1 (constants on cells: cell_data)."
        )
    return ReferenceElement(cell, int(degree))


def nodal(name: str, values, element: ReferenceElement, num_cells: int | None = None) -> np.ndarray:
    """Values [cell, node, component] float64 from [cell, node] or [cell, node, component]. Raises OptionError."""
    found = _floats(name, values)
    if found.ndim == 2:
        found = found[..., None]
    cells = "cell" if num_cells is None else num_cells
    if found.ndim != 3 or found.shape[1] != element.num_basis or num_cells not in (None, len(found)):
        raise OptionError(
            f"'{name}' has shape {list(np.shape(values))}; with {element.cell} cells of degree {element.degree}"
            f" it takes [{cells}, {element.num_basis}] or [{cells}, {element.num_basis}, component]."
        )
    return found


def at_nodes(name: str, values, element: ReferenceElement, num_cells: int) -> np.ndarray:
    """Values [cell, node, component] float64 at an element's nodes, from [cell], or from [cell, node] or
    [cell, node, component] at the nodes of any degree. Raises OptionError."""
    found = _floats(name, values)
    found = found[:, None] if found.ndim == 1 else found
    given = _of_size(element.cell, found.shape[1]) if found.ndim > 1 else None
    if given is None or given == element:
        return nodal(name, found, element, num_cells)
    found = nodal(name, found, given, num_cells)
    return np.einsum("pn,cnk->cpk", given.tabulate(element.nodes, 0)[0], found)


def _of_size(cell: str, num_basis: int) -> ReferenceElement | None:
    """The Lagrange element of a shape with so many nodes."""
    for degree in range(MOST_DEGREE + 1):
        element = ReferenceElement(cell, degree)
        if element.num_basis >= num_basis:
            return element if element.num_basis == num_basis else None
    return None


def coordinates(points, element: ReferenceElement, name: str = "points", facets: bool = False) -> np.ndarray:
    """Node places [cell, node, dim] float64, dim being one more than the shape's for facets. Raises OptionError."""
    found, dim = nodal(name, points, element), element.dim + facets
    if np.ndim(points) != 3 or found.shape[2] != dim:
        shape, kind = list(np.shape(points)), "facets" if facets else "cells"
        raise OptionError(f"'{name}' has shape {shape}; {element.cell} {kind} take [cell, node, {dim}].")
    return found


def cellwise(name: str, values, num_cells: int) -> np.ndarray:
    """Values [cell, component], whole numbers as int32 and others as float64. Raises OptionError."""
    found = np.asarray(values)
    found = np.asarray(found, np.int32) if found.dtype.kind in "biu" else _floats(name, found)
    if found.ndim not in (1, 2) or len(found) != num_cells:
        shape = list(np.shape(values))
        raise OptionError(f"'{name}' has shape {shape}; it takes [{num_cells}] or [{num_cells}, component].")
    return found if found.ndim == 2 else found[:, None]


def named(what: str, given) -> Mapping:
    """`given` if it maps names to arrays. Raises OptionError."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
        raise OptionError(f"'{what}' is a {type(given).__name__}; a mapping from names to arrays is accepted.")
    return given


def _floats(name: str, values) -> np.ndarray:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"'{name}' cannot be read as an array of real numbers.") from None
