"""Distorted meshes of the unit square and cube with cells of several shapes, as the arguments of Mesh.from_cells."""

from __future__ import annotations

import basix
import numpy as np
from sample_meshes import moved

SIDES = (("left", "right"), ("bottom", "top"), ("front", "back"))
# A cube by its eight corners in basix' order, as cells of some shapes; its centre is vertex 8.
_FACES = basix.topology(basix.CellType.hexahedron)[2]
_CUBE = {
    "hexahedron": [("hexahedron", [list(range(8))])],
    "prism": [("prism", [[0, 1, 3, 4, 5, 7], [0, 3, 2, 4, 7, 6]])],
    "pyramid": [("pyramid", [[*face, 8] for face in _FACES])],
    "most": [
        ("pyramid", [[*face, 8] for face in _FACES if face != [0, 2, 4, 6]]),
        ("tetrahedron", [[0, 2, 4, 8], [2, 4, 6, 8]]),
    ],
}


def plane(n: int) -> dict:
    """n × n squares, every other one of them two triangles."""
    points, corners = _grid((n, n))
    odd = np.indices((n, n)).sum(axis=0).ravel() % 2 > 0
    cells = {"triangle": np.concatenate([corners[odd][:, [0, 1, 3]], corners[odd][:, [3, 2, 0]]])}
    return _made(cells | {"quadrilateral": corners[~odd]}, moved(points, 0.15 / n, 3))


def solid(n: int, kinds=("most", "hexahedron", "prism"), across: tuple = ()) -> dict:
    """n × n × n cubes, or n × `across`: slabs along x of cells of each of some kinds, of which `most` has tetrahedra at
    its left."""
    faces = (n, *(across or (n, n)))
    points, corners = _grid(faces)
    points = moved(points, 0.1 / n, 3)
    slabs = np.minimum(np.indices(faces)[0].ravel() * len(kinds) // n, len(kinds) - 1)
    cells: dict[str, list] = {}
    for corner, slab in zip(corners, slabs, strict=True):
        kind = "pyramid" if kinds[slab] == "most" and abs(points[corner[0], 0]) > 1e-12 else kinds[slab]
        corner = np.append(corner, len(points))
        points = np.concatenate([points, points[corner[:8]].mean(axis=0, keepdims=True)])
        for shape, local in _CUBE[kind]:
            cells.setdefault(shape, []).append(corner[np.array(local)])
    return _made({shape: np.concatenate(of) for shape, of in cells.items()}, points)


def two_cells(_) -> dict:
    """A square and a triangle beside it: more ranks have no cells."""
    sides = {"left": [[0, 2]], "bottom": [[0, 1]], "top": [[2, 3]], "right": [[1, 4], [4, 3]]}
    points = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [1.5, 0.5]])
    cells = {"quadrilateral": [[0, 1, 2, 3]], "triangle": [[1, 4, 3]]}
    return {"cells": cells, "points": points, "boundaries": sides, "regions": {"of triangle": [1]}}


def _grid(faces: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Points [point, dim] and corners [cell, corner], the first axis fastest in each cell."""
    dim, sizes = len(faces), np.array(faces) + 1
    points = np.stack(np.meshgrid(*(np.linspace(0, 1, n) for n in sizes), indexing="ij"), axis=-1).reshape(-1, dim)
    first = np.indices(faces).reshape(dim, -1).T
    offsets = np.indices((2,) * dim).reshape(dim, -1)[::-1].T
    return points, np.ravel_multi_index(np.moveaxis(first[:, None] + offsets, 2, 0), sizes)


def _made(cells: dict, points: np.ndarray) -> dict:
    """Arguments of Mesh.from_cells, with the sides of the box by name and a region of the cells of each shape."""
    facets: dict[int, set] = {}
    for shape, of in cells.items():
        for local in basix.topology(basix.CellType[shape])[points.shape[1] - 1]:
            facets.setdefault(len(local), set()).update(map(tuple, np.sort(of[:, local], axis=1).tolist()))
    found = [np.array(sorted(of)) for of in facets.values()]
    boundaries = {
        name: [of[(np.abs(points[of, axis] - value) < 1e-12).all(axis=1)] for of in found]
        for axis, names in enumerate(SIDES[: points.shape[1]])
        for value, name in enumerate(names)
    }
    ends = np.cumsum([0, *map(len, cells.values())])
    regions = {f"of {shape}": np.arange(*ends[k : k + 2]) for k, shape in enumerate(cells)}
    return {"cells": cells, "points": points, "boundaries": boundaries, "regions": regions}
