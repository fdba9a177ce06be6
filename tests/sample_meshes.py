"""Unstructured, distorted meshes of the unit square and cube for the tests, of every shape, as arrays on rank 0."""

from __future__ import annotations

from itertools import permutations, product
from types import SimpleNamespace

import basix
import numpy as np
from petsc4py import PETSc

from petsc_hdg.mesh import Mesh
from petsc_hdg.mesh.cell_list import box_cells

SHAPES = ("triangle", "quadrilateral", "tetrahedron", "hexahedron")
DIM = {"triangle": 2, "quadrilateral": 2, "tetrahedron": 3, "hexahedron": 3}
_FACES = {"triangle": (4, 3), "quadrilateral": (4, 3), "tetrahedron": (2, 2, 1), "hexahedron": (2, 2, 2)}


def data_set(kinds, cells: dict, points, **cell_data) -> SimpleNamespace:
    """A stand-in for PyVista's UnstructuredGrid: VTK's types [cell], {type: cells [cell, vertex]}, points."""
    deep = np.pad(np.asarray(points, float), ((0, 0), (0, 3 - len(points[0]))))
    made = SimpleNamespace(points=deep, celltypes=np.asarray(kinds), cells_dict=cells, cell_data=cell_data)
    made.cast_to_unstructured_grid = lambda: made
    return made


def box_mesh(
    cell: str,
    faces=None,
    seed: int = 3,
    amplitude: float = 0.15,
    comm=None,
    order_seed: int | None = None,
    wall: bool = False,
    **settings,
) -> Mesh:
    """A small box with its interior vertices moved at random by `amplitude` of the spacing, and all orders random.

    wall: whether facets in its middle, of an even number of `faces` along x, are "wall", between "low" and "high".
    """
    comm = comm or PETSc.COMM_SELF
    cells = points = sides = regions = None
    if comm.rank == 0:
        faces = faces or _FACES[cell]
        listed = box_cells(faces, cell in ("triangle", "tetrahedron"), 0.0, 1.0)
        points = np.hstack([moved(listed.points, amplitude / max(faces), seed), listed.points])
        cells, points = shuffled(cell, listed.cells, points, seed if order_seed is None else order_seed)
        points, first = np.split(points, 2, axis=1)
        sides = box_sides(cell, cells, points)
        if wall:
            facets = np.unique(np.sort(facets_of(cell, cells), axis=1), axis=0)
            sides["wall"] = facets[(np.abs(first[facets, 0] - 0.5) < 1e-12).all(axis=1)]
            low = first[cells, 0].mean(axis=1) < 0.5
            regions = {"low": np.flatnonzero(low), "high": np.flatnonzero(~low)}
    return Mesh.from_cells(cells, points, cell=cell, comm=comm, boundaries=sides, regions=regions, **settings)


def facets_of(cell: str, cells: np.ndarray) -> np.ndarray:
    """Vertices [facet, vertex] of the facets of cells, those between cells twice."""
    return np.concatenate([cells[:, corners] for corners in basix.topology(basix.CellType[cell])[-2]])


def box_sides(cell: str, cells: np.ndarray, points: np.ndarray) -> dict[str, np.ndarray]:
    """Facets [facet, vertex] on each side of the unit box, by name."""
    facets = facets_of(cell, cells)
    names = (("left", "right"), ("bottom", "top"), ("front", "back"))
    return {
        name: facets[(np.abs(points[facets, axis] - value) < 1e-12).all(axis=1)]
        for axis in range(DIM[cell])
        for value, name in enumerate(names[axis])
    }


def moved(points: np.ndarray, distance: float, seed: int) -> np.ndarray:
    """Points [point, dim] of the unit box, each moved by up to `distance` along each axis, but not off its side."""
    random = np.random.default_rng(seed)
    inside = (points > 1e-12) & (points < 1 - 1e-12)
    return points + np.where(inside, random.uniform(-distance, distance, points.shape), 0.0)


def shuffled(cell: str, cells: np.ndarray, points: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The same mesh with random orders of points, of cells and of the vertices within each cell."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(points))
    cells = np.argsort(order)[cells][random.permutation(len(cells))]
    turns = symmetries(cell)
    return np.array([c[turns[random.integers(len(turns))]] for c in cells]), points[order]


def symmetries(cell: str) -> list[list[int]]:
    """Renumberings of the vertices of a reference cell that keep it (tensor order for quadrilaterals and hexahedra)."""
    if cell in ("triangle", "tetrahedron"):
        return [list(p) for p in permutations(range(DIM[cell] + 1))]
    dim = DIM[cell]
    corners = list(product((0, 1), repeat=dim))
    found = []
    for axes in permutations(range(dim)):
        for flips in product((0, 1), repeat=dim):
            found.append([sum((b[::-1][axes[k]] ^ flips[k]) << k for k in range(dim)) for b in corners])
    return found


def unstructured(cell: str, level: int, distortion: float = 0.1) -> Mesh:
    """A Delaunay mesh of the unit box (its simplices split into quadrilaterals or hexahedra if asked), refined `level`
    times, with vertices moved at random by up to `distortion` times the shortest edge."""
    base = _cached_base(cell)
    PETSc.Options()[f"level{level}_dm_refine"] = level
    fine = Mesh.from_cells(*base, cell=cell, comm=PETSc.COMM_SELF, prefix=f"level{level}_")
    cells, points = fine.geometry.cell_nodes, fine.geometry.nodes
    edges = points[cells[:, :, None]] - points[cells[:, None, :]]
    lengths = np.linalg.norm(edges, axis=-1)
    shortest = lengths[lengths > 0].min()
    points = moved(np.clip(points, 0.0, 1.0), distortion * shortest, seed=level)
    fine.destroy()
    return Mesh.from_cells(*shuffled(cell, cells, points, level), cell=cell, comm=PETSc.COMM_SELF)


_BASES: dict[str, tuple] = {}


def _cached_base(cell: str):
    if cell not in _BASES:
        from scipy.spatial import Delaunay  # a third of a second, which ranks with other meshes save

        points = _base_points(cell)
        cells = Delaunay(points).simplices
        volume = np.abs(np.linalg.det(points[cells[:, 1:]] - points[cells[:, :1]]))
        cells = cells[volume > 1e-10]  # four corners of one side make a cell without volume
        _BASES[cell] = (cells, points) if cell in ("triangle", "tetrahedron") else _split(cells, points)
    return _BASES[cell]


def _base_points(cell: str) -> np.ndarray:
    """Corners of the box, and points inside (none for hexahedra, where each tetrahedron gives four cells)."""
    dim, random = DIM[cell], np.random.default_rng(11)
    corners = np.array(list(product((0.0, 1.0), repeat=dim)))
    inner = {"tetrahedron": np.array([[0.45, 0.52, 0.55]]), "hexahedron": np.zeros((0, 3))}.get(
        cell, 0.275 + 0.45 * corners + random.uniform(-0.06, 0.06, corners.shape)
    )
    return np.concatenate([corners, inner])


def _split(simplices: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each triangle as three quadrilaterals, each tetrahedron as four hexahedra, in tensor order."""
    found: dict[frozenset, int] = {}
    nodes: list[np.ndarray] = []

    def node(corners) -> int:
        key = frozenset(int(c) for c in corners)
        if key not in found:
            found[key] = len(nodes)
            nodes.append(points[list(key)].mean(axis=0))
        return found[key]

    cells = []
    for simplex in simplices:
        for corner in simplex:
            others = [v for v in simplex if v != corner]
            bits = product((0, 1), repeat=len(others))
            cells.append([node([corner] + [o for o, b in zip(others, bit[::-1], strict=True) if b]) for bit in bits])
    return np.array(cells), np.array(nodes)


def bent(mesh: Mesh, amount: float = 0.08) -> Mesh:
    """The mesh of the unit box with second-order cells, on the image of a smooth map."""
    turned = np.roll(np.arange(mesh.dim), 1)
    found = mesh.curved(lambda x: x + amount * np.sin(2 * x + 0.3)[:, turned] * (1 + x))
    assert found.geometry.degree == 2 and not found.geometry.is_affine
    return found


def hanging(c):
    """A square beside two rectangles of half its height."""
    points = [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1], [1, 0.5], [2, 0.5]]
    cells = [[0, 1, 3, 4], [1, 2, 6, 7], [6, 7, 4, 5]]
    given = (np.array(cells), np.array(points, float)) if c.rank == 0 else (None, None)
    return Mesh.from_cells(*given, cell="quadrilateral", comm=c)


def divided(c):
    """Two squares with a name for the side between them."""
    points = np.array([[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]], float)
    given = (np.array([[0, 1, 3, 4], [1, 2, 4, 5]]), points) if c.rank == 0 else (None, None)
    sides = {"middle": np.array([[1, 4]])} if c.rank == 0 else None
    return Mesh.from_cells(*given, cell="quadrilateral", comm=c, boundaries=sides)
