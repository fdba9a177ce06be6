"""Meshes of meshio, from files (VTU, XDMF, Abaqus, MED …), from memory and from PyVista, as cell lists with names."""

from __future__ import annotations

from collections import defaultdict
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np

from ...errors import MeshError
from ...value_checks import shown
from ..cell_list import CellList
from ..shapes import SURFACE

_CELL = {
    "triangle": "triangle",
    "quad": "quadrilateral",
    "tetra": "tetrahedron",
    "hexahedron": "hexahedron",
    "wedge": "prism",
    "pyramid": "pyramid",
}
_DIM = {"vertex": 0, "line": 1, "triangle": 2, "quad": 2, "tetra": 3, "hexahedron": 3, "wedge": 3, "pyramid": 3}
# meshio numbers quadrilaterals, those of hexahedra and pyramids too, around; basix counts the first axis fastest.
TENSOR = {"quadrilateral": [0, 1, 3, 2], "hexahedron": [0, 1, 3, 2, 4, 5, 7, 6], "pyramid": [0, 1, 3, 2, 4]}
# Kinds of VTK's cells, and the order of their vertices where that is not the one of meshio.
_VTK: dict[int, tuple[str, slice | list[int]]] = {
    1: ("vertex", slice(None)),
    3: ("line", slice(None)),
    5: ("triangle", slice(None)),
    8: ("quad", TENSOR["quadrilateral"]),
    9: ("quad", slice(None)),
    10: ("tetra", slice(None)),
    11: ("hexahedron", TENSOR["hexahedron"]),
    12: ("hexahedron", slice(None)),
    13: ("wedge", slice(None)),
    14: ("pyramid", slice(None)),
}
_TAGS = ("gmsh:physical", "medit:ref", "cell_tags", "flac3d:group", "avsucd:material")
_PLANE = ("polygon", "triangle", "quad")


def read(path: Path) -> CellList:
    """The mesh in a file. Raises MeshError."""
    return from_meshio(load(path), f"Mesh file {path}")


def load(path: Path):
    """Read a file by meshio. Raises MeshError."""
    import meshio

    if path.suffix.lower() not in meshio.extension_to_filetypes:
        known = " ".join(sorted(meshio.extension_to_filetypes))
        raise MeshError(
            f"Mesh file {path} has the unknown format '{path.suffix}'; known are .msh (Gmsh) and, by meshio, {known}."
        )
    said = StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(StringIO()):
            return meshio.read(path)
    except (Exception, SystemExit) as error:  # meshio lets errors of many kinds pass, or prints them and exits
        reason = " ".join((said.getvalue() if isinstance(error, SystemExit) else str(error)).split())
        reason = reason[:300].rstrip(".") or type(error).__name__
        raise MeshError(f"Mesh file {path} cannot be read by meshio as '{path.suffix}': {reason}.") from None


def of_pyvista(given):
    """The meshio.Mesh of a data set of PyVista. Raises MeshError for what is none, and for unknown cells."""
    import meshio

    try:
        grid = given.cast_to_unstructured_grid()
        points, kinds, data = np.asarray(grid.points), np.asarray(grid.celltypes), grid.cell_data
    except AttributeError:
        raise MeshError(
            f"A mesh of PyVista is given as {shown(given)}; give a pyvista.UnstructuredGrid, or another data set."
        ) from None
    found = [int(kind) for kind in np.unique(kinds)]
    unknown = [str(kind) for kind in found if kind not in _VTK]
    if unknown:
        raise MeshError(
            f"A mesh of PyVista has cells of VTK's type {', '.join(unknown)}; straight {', '.join(_CELL)} are accepted "
            "(curved ones: in Gmsh files)."
        )
    blocks = [(_VTK[kind][0], np.asarray(grid.cells_dict[kind])[:, _VTK[kind][1]]) for kind in found]
    tags = {name: [np.asarray(data[name])[kinds == kind] for kind in found] for name in data if name[:3] != "vtk"}
    return meshio.Mesh(points, blocks, cell_data=tags)


def of_meshio(given):
    """What is given, if it is a meshio.Mesh. Raises MeshError."""
    import meshio

    if not isinstance(given, meshio.Mesh):
        raise MeshError(f"A mesh of meshio is given as {shown(given)}; give a meshio.Mesh.")
    return given


def from_meshio(found, what: str) -> CellList:
    """Cell list of a meshio mesh, which messages call `what`. Raises MeshError for shapes that are not accepted."""
    kinds = [block.type for block in found.cells if len(block.data)]
    unknown = sorted({kind for kind in kinds if kind not in _DIM})
    if unknown:
        raise MeshError(
            f"{what} has cells of type {', '.join(unknown)}; straight {', '.join(_CELL)} are accepted "
            "(curved ones: in Gmsh files; polygons and polyhedra: by petsc_hdg.polygons_from_file)."
        )
    dim = max((_DIM[kind] for kind in kinds), default=0)
    shapes = list(dict.fromkeys(kind for kind in kinds if _DIM[kind] == dim))
    if dim < 2:
        raise MeshError(f"{what} has cells of type {', '.join(shapes) or 'none'}; {', '.join(_CELL)} are accepted.")
    order = [block for kind in shapes for block, of in enumerate(found.cells) if of.type == kind]
    offset = dict(zip(order, np.cumsum([0, *(len(found.cells[block].data) for block in order)]).tolist(), strict=False))
    cells: dict[str, np.ndarray] = {}
    for kind in shapes:
        of_kind = np.concatenate([found.cells[block].data for block in order if found.cells[block].type == kind])
        cells[_CELL[kind]] = of_kind[:, TENSOR.get(_CELL[kind], slice(None))]
    boundaries: dict[str, dict] = defaultdict(lambda: defaultdict(list))
    regions = defaultdict(list)
    for name, block, rows in named(found):
        data, block_dim = found.cells[block].data, _DIM[found.cells[block].type]
        if block_dim == dim:
            regions[name].append(offset[block] + rows)
        elif block_dim == dim - 1:
            boundaries[name][data.shape[1]].append(data[rows])
    points = flat(np.asarray(found.points, float), dim, what)
    facets = {name: [np.concatenate(of) for of in by_width.values()] for name, by_width in boundaries.items()}
    numbers = {name: np.concatenate(parts) for name, parts in regions.items()}
    return CellList(cells, points, facets, numbers)


def flat(points: np.ndarray, dim: int, what: str) -> np.ndarray:
    """Points without the coordinates that a plane mesh does not use [point, dim]."""
    extra = points[:, dim:]
    if extra.size and np.ptp(extra, axis=0).max() > 1e-12 * max(np.ptp(points, axis=0).max(), 1e-300):
        raise MeshError(f"{what} has cells of dimension {dim} in a space of dimension {points.shape[1]}; {SURFACE}")
    return np.ascontiguousarray(points[:, :dim])


def named(found):
    """(name, block, rows) of every named group: cell sets, and cell data of integers as tags."""
    for name, parts in found.cell_sets.items():
        for block, rows in enumerate(parts):
            if rows is not None and len(rows):
                yield name, block, np.asarray(rows, np.int64)
    names = {
        (int(d), int(tag)): name
        for name, (tag, d) in getattr(found, "field_data", {}).items()
        if np.shape((tag, d)) == (2,)
    }
    for key, parts in found.cell_data.items():
        for block, values in enumerate(parts):
            values = np.asarray(values)
            if values.ndim != 1 or values.dtype.kind not in "iu" or key == "gmsh:geometrical":
                continue
            for tag in np.unique(values):
                d = _DIM.get(found.cells[block].type, -1)
                plain = str(tag) if key in _TAGS else f"{key}={tag}"
                yield names.get((d, int(tag)), plain), block, np.flatnonzero(values == tag)


def read_polygons(path: Path) -> tuple[int, list, np.ndarray, dict, dict]:
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
