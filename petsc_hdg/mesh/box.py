"""Rectangles and boxes of any cell shape, as cell lists with named sides."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np

from ..errors import MeshError
from .cell_list import CellList

MOST_CELLS = 2**31 // 10  # PETSc counts the points of a mesh, several a cell, in 32 bits
SIDES = (("left", "right"), ("bottom", "top"), ("front", "back"))
_CELL = {(2, True): "triangle", (2, False): "quadrilateral", (3, True): "tetrahedron", (3, False): "hexahedron"}


def box_cell(dim: int, simplex: bool) -> str:
    """Cell shape of a box. Raises MeshError unless dim is 2 or 3."""
    if (dim, bool(simplex)) not in _CELL:
        raise MeshError(f"A mesh of dimension {dim} was asked for; 2 and 3 are accepted.")
    return _CELL[dim, bool(simplex)]


def box_cells(faces, simplex: bool, lower, upper) -> CellList:
    """A box of faces[0] × faces[1] (× faces[2]) squares or cubes; simplices split each along its diagonal (Kuhn)."""
    faces = tuple(int(n) for n in faces)
    cell = box_cell(len(faces), simplex)
    lower, upper = (
        np.broadcast_to(np.asarray(lower, float), len(faces)),
        np.broadcast_to(np.asarray(upper, float), len(faces)),
    )
    if min(faces) < 1:
        raise MeshError(f"A box of {faces} cells was asked for; each direction takes 1 or more.")
    if not ((lower < upper) & np.isfinite(lower) & np.isfinite(upper)).all():
        raise MeshError(
            f"A box from {lower.tolist()} to {upper.tolist()} was asked for; give an upper corner above the lower one."
        )
    count = math.prod(faces) * (math.factorial(len(faces)) if simplex else 1)
    if count > MOST_CELLS:
        raise MeshError(
            f"A box of {count:.3g} cells was asked for; one rank makes at most {MOST_CELLS:.3g}: give fewer and refine "
            "them on all ranks by -dm_refine."
        )
    axes = [np.linspace(a, b, n + 1) for a, b, n in zip(lower, upper, faces, strict=True)]
    points = np.stack([x.ravel() for x in np.meshgrid(*axes, indexing="ij")], axis=1)
    strides = np.array([int(np.prod([n + 1 for n in faces[k + 1 :]])) for k in range(len(faces))])
    corner = sum(
        np.arange(n).reshape([-1 if k == m else 1 for m in range(len(faces))]) * strides[k] for k, n in enumerate(faces)
    )
    offsets = (_kuhn(strides) if simplex else _tensor(strides)).astype(np.int32)
    cells = (corner.reshape(-1, 1, 1).astype(np.int32) + offsets).reshape(-1, offsets.shape[1])
    return CellList(cell, cells, points)


def _tensor(strides) -> np.ndarray:
    """Vertex offsets of a square or cube in basix' order [1, vertex]: the first axis runs fastest."""
    return np.array(
        [
            [
                sum(s for s, bit in zip(strides, bits[::-1], strict=True) if bit)
                for bits in product((0, 1), repeat=len(strides))
            ]
        ]
    )


def _kuhn(strides) -> np.ndarray:
    """Vertex offsets of the simplices of a square or cube [simplex, vertex], all of positive volume."""
    simplices = []
    for axes in permutations(range(len(strides))):
        path = np.concatenate([[0], np.cumsum(strides[list(axes)])])
        odd = sum(a > b for i, a in enumerate(axes) for b in axes[i + 1 :]) % 2
        if odd:
            path[[1, 2]] = path[[2, 1]]
        simplices.append(path)
    return np.array(simplices)


def side_facets(facets: np.ndarray, points: np.ndarray, lower, upper) -> dict[str, np.ndarray]:
    """Facets on each side of a box: name → facet numbers, and all of them as "boundary".

    facets [facet, vertex]: numbers of points [point, dim].
    """
    sides, dim = {}, points.shape[1]
    lower, upper = np.broadcast_to(np.asarray(lower, float), dim), np.broadcast_to(np.asarray(upper, float), dim)
    near = np.concatenate([np.abs(points - end) <= 1e-12 * (upper - lower) for end in (lower, upper)], axis=1)
    sides_of = np.packbits(near, axis=1, bitorder="little")[:, 0]  # a bit for each side that a point lies on
    on = np.bitwise_and.reduce([sides_of[column] for column in facets.T])
    for axis, (low, high) in enumerate(SIDES[:dim]):
        sides[low], sides[high] = (np.flatnonzero(on >> bit & 1) for bit in (axis, dim + axis))
    sides["boundary"] = np.flatnonzero(on)
    return sides
