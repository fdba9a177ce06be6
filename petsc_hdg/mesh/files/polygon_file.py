"""Files of polygons or polyhedra that meshio reads (VTU), as lists with named boundaries and regions."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from ...errors import MeshError
from .meshio_file import flat, load, named

_PLANE = ("polygon", "triangle", "quad")


def read(path: Path) -> tuple[int, list, np.ndarray, dict, dict]:
    """Dimension, cells, points [point, dim], boundaries and regions, as `polygons` and `polyhedra` take them.

    Raises MeshError.
    """
    if not path.is_file():
        raise MeshError(f"Mesh file {path} does not exist as a file; give the path of a mesh file.")
    found = load(path)
    kinds = sorted({block.type for block in found.cells if len(block.data)})
    solid = [kind for kind in kinds if kind.startswith("polyhedron")]
    wanted = solid or [kind for kind in kinds if kind in _PLANE]
    others = [kind for kind in kinds if kind not in (*wanted, "line", "vertex")]
    if others or not wanted:
        raise MeshError(
            f"Mesh file {path} has cells of type {', '.join(others or kinds) or 'none'}; polygons (with triangles and "
            "quads), or polyhedra alone, are accepted."
        )
    dim = 3 if solid else 2
    if solid:  # meshio orders the data of polyhedra by their number of vertices, whatever the order of the blocks
        found.cells.sort(key=lambda block: int(block.type.removeprefix("polyhedron")))
    offset = np.cumsum([0, *(len(block.data) * (block.type in wanted) for block in found.cells)])
    boundaries, regions = defaultdict(list), defaultdict(list)
    for name, block, rows in named(found):
        if found.cells[block].type in wanted:
            regions[name].append(offset[block] + rows)
        elif found.cells[block].type == "line" and dim == 2:
            boundaries[name].append(found.cells[block].data[rows])
    return (
        dim,
        [cell for block in found.cells if block.type in wanted for cell in block.data],
        flat(np.asarray(found.points, float), dim, f"Mesh file {path}"),
        {name: np.concatenate(parts) for name, parts in boundaries.items()},
        {name: np.concatenate(parts) for name, parts in regions.items()},
    )
