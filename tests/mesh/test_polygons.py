"""Polygons and polyhedra given as such: their areas, numbers and names; what they are divided into; files."""

import sys
from functools import cache
from pathlib import Path

import meshio
import numpy as np
import pytest
from mpi4py import MPI

from petsc_hdg.mesh import Mesh, polygons, polygons_from_file, polyhedra
from petsc_hdg.mesh.polytopal import plane
from petsc_hdg.mesh.quality import determinants

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "meshes"))
from voronoi import voronoi  # noqa: E402

ALONE = MPI.COMM_SELF
SHAPES = {
    "square": [[0, 0], [1, 0], [1, 1], [0, 1]],
    "L": [[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]],
    "U": [[0, 0], [3, 0], [3, 3], [2, 3], [2, 1], [1, 1], [1, 3], [0, 3]],
    "hanging": [[0, 0], [0.5, 0], [1, 0], [1, 1], [0.25, 1], [0, 1]],
    "needle": [[0, 0], [100, 0], [100, 0.1], [50, 0.2], [0, 0.1]],
    "dart": [[0, 0], [1, 2], [0, 0.4], [-1, 2]],
    "triangle": [[0, 0], [1, 0], [0, 1]],
    "straight angle in a triangle": [[0, 0], [0.3, 0], [1, 0], [0, 1]],
    "comb": [*[[k / 2, (k % 2) * 0.9] for k in range(20)], [9.5, 1.0], [0, 1.0]],
}
TURN = np.linspace(0, 6 * np.pi, 90)
SHAPES["spiral"] = np.concatenate(
    [r[:, None] * np.stack([np.cos(t), np.sin(t)], axis=1) for r, t in ((2 + TURN, TURN), (1 + TURN, TURN))]
)
SHAPES["spiral"][90:] = SHAPES["spiral"][:89:-1]
BY_EARS = {"L", "U", "dart", "comb", "spiral", "needle"}
# What the shape allows: a needle is thin, and so is the gap above the teeth of the comb.
LEAST = {"needle": 2e-3, "comb": 5e-3, "dart": 0.15}


def volumes(mesh: Mesh) -> np.ndarray:
    """Area or volume of every polytope [polytope] of simplices or of squares."""
    x = mesh.geometry.nodes[mesh.topology.cell_vertices[: mesh.num_cells]]
    size = np.abs(determinants(x[:, 1 : mesh.dim + 1] - x[:, :1]))
    if mesh.shape.is_simplex:
        size /= 2 if mesh.dim == 2 else 6
    return np.bincount(mesh.polytopes.of_cell, size, minlength=mesh.polytopes.count)


def qualities(mesh: Mesh) -> np.ndarray:
    x = mesh.geometry.nodes[mesh.topology.cell_vertices]
    return np.abs(plane.quality(x))


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("name", SHAPES)
def test_one_polygon(name, direction):
    x = np.array(SHAPES[name], float)
    n = len(x)
    mesh = polygons([range(n)[::direction]], x, comm=ALONE)
    assert mesh.polytopes.count == 1 and mesh.polytopes.numbers.tolist() == [0]
    assert volumes(mesh)[0] == pytest.approx(abs(plane.area(x)), rel=1e-12)
    assert mesh.exterior.sum() == n, "no vertex was put on an edge"
    assert mesh.num_cells == (n - 2 if name in BY_EARS or n == 3 else n)
    assert qualities(mesh).min() > LEAST.get(name, 0.3)


def best_triangles(x: np.ndarray) -> float:
    """Least quality of a triangle in the best of all divisions of a polygon by diagonals, by dynamic programming."""
    n = len(x)

    def inside(i: int, j: int) -> bool:
        parts = (x[i : j + 1], np.concatenate([x[: i + 1], x[j:]]))
        return j - i in (1, n - 1) or all(plane.crossing(y) is None and plane.area(y) > 0 for y in parts)

    sees = {(i, j): inside(i, j) for i in range(n) for j in range(i + 1, n)}

    @cache
    def best(i: int, j: int) -> float:
        tips = [k for k in range(i + 1, j) if sees[i, k] and sees[k, j]]
        values = [min(best(i, k), best(k, j), plane.quality(x[[[i, k, j]]])[0]) for k in tips]
        return max(values, default=1.0 if j == i + 1 else -1.0)

    return best(0, n - 1)


@pytest.mark.parametrize("seed", range(30))
def test_ears_are_nearly_the_best_of_all_triangles(seed):
    x = random_star(seed, 12)
    assert plane.quality(x[plane.clip_ears(x)]).min() > 0.95 * best_triangles(x) > 0


def random_star(seed: int, most: int) -> np.ndarray:
    """A polygon [vertex, 2] with up to `most` vertices that the origin sees whole."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, most))
    angle = (np.arange(n) + rng.uniform(0, 0.9, n)) * 2 * np.pi / n
    return rng.uniform(0.05, 1, n)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


@pytest.mark.parametrize("seed", range(20))
def test_random_stars_by_ears_and_fans(seed):
    x = random_star(seed, 40)
    n = len(x)
    assert plane.crossing(x) is None and len(plane.kernel(x)) >= 3
    triangles = plane.clip_ears(x)
    assert len(triangles) == n - 2 and (plane.quality(x[triangles]) > 0).all()
    assert sum(plane.area(x[t]) for t in triangles) == pytest.approx(plane.area(x), rel=1e-12)
    assert volumes(polygons([range(n)], x, comm=ALONE))[0] == pytest.approx(plane.area(x), rel=1e-12)


def test_neighbours_conform():
    """A square, an L around two of its sides with hanging vertices, and a clockwise U."""
    points = [[0, 0], [1, 0], [1, 0.5], [1, 1], [0, 1], [2, 0.5], [2, 0], [2, 2], [0, 2], [1, 2], [0.5, 1]]
    cells = [[0, 1, 2, 3, 10, 4], [2, 5, 7, 9, 3], [1, 6, 5, 2], [3, 9, 8, 4, 10]]
    boundaries = {"low": [[0, 1], [6, 1]], "up": [[8, 9], [9, 7]]}
    mesh = polygons(cells, points, boundaries, {"odd": [1, 3]}, degrees=[1, 2, 3, 4], comm=ALONE)
    areas = [1, 1.5, 0.5, 1]
    assert mesh.polytopes.numbers.tolist() == [0, 1, 2, 3] and mesh.polytopes.degrees.tolist() == [1, 2, 3, 4]
    assert volumes(mesh) == pytest.approx(areas, rel=1e-13)
    assert (mesh.boundaries, mesh.cell_regions) == (("boundary", "low", "up"), ("odd",))
    assert [len(mesh.boundary_facets(name)[0]) for name in ("low", "up", "boundary")] == [2, 2, 8]
    assert set(mesh.polytopes.of_cell[mesh.cell_mask("odd")]) == {1, 3}
    near, of_cell = mesh.topology.facet_cells, mesh.polytopes.of_cell
    a, b = of_cell[near[near[:, 1] >= 0]].T
    assert {(min(p), max(p)) for p in zip(a, b, strict=True) if p[0] != p[1]} == {
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 2),
        (1, 3),
    }


@pytest.mark.parametrize("n", [1, 2, 60])
def test_voronoi(n):
    cells, points = voronoi(n, seed=3)
    mesh = polygons(cells, points, degrees=lambda x: 1 + (x[:, 0] > 0.5), comm=ALONE)
    areas = [abs(plane.area(points[cell])) for cell in cells]
    assert sum(areas) == pytest.approx(1, rel=1e-12)
    assert mesh.polytopes.count == n and volumes(mesh) == pytest.approx(areas, rel=1e-11)
    sizes = np.bincount(mesh.polytopes.of_cell)
    for size, cell in zip(sizes, cells, strict=True):
        assert size in ((1,) if len(cell) == 3 else (len(cell), len(cell) - 2))


def test_file_of_polygons(tmp_path):
    cells, points = voronoi(25, seed=2)
    cells.sort(key=len)
    blocks = [("polygon" if k > 4 else {3: "triangle", 4: "quad"}[k], k) for k in sorted(set(map(len, cells)))]
    listed = [(kind, np.array([cell for cell in cells if len(cell) == k])) for kind, k in blocks]
    tags = [np.full(len(rows), k) for (_, rows), (_, k) in zip(listed, blocks, strict=True)]
    assert len(listed) > 2
    path = tmp_path / "cells.vtu"
    meshio.Mesh(np.c_[points, np.ones(len(points))], listed, cell_data={"sides": tags}).write(path)
    mesh = polygons_from_file(path, degrees=3, comm=ALONE)
    assert volumes(mesh) == pytest.approx([abs(plane.area(points[cell])) for cell in cells], rel=1e-11)
    assert mesh.cell_regions == tuple(f"sides={k}" for _, k in blocks) and (mesh.polytopes.degrees == 3).all()
    wanted = {k for k, cell in enumerate(cells) if len(cell) == 6}
    assert set(mesh.polytopes.of_cell[mesh.cell_mask("sides=6")]) == wanted


def prism(base, low: float, high: float):
    """Faces and points of a prism over a polygon [vertex, 2]."""
    n = len(base)
    points = [[*x, z] for z in (low, high) for x in base]
    sides = [[k, (k + 1) % n, n + (k + 1) % n, n + k] for k in range(n)]
    return [list(range(n)), list(range(n, 2 * n))[::-1], *sides], points


@pytest.mark.parametrize(("name", "tetrahedra"), [("square", 24), ("hanging", 36), ("triangle", 14)])
def test_prisms(name, tetrahedra):
    faces, points = prism(SHAPES[name], 0.0, 2.0)
    mesh = polyhedra([faces], points, {"floor": faces[:1]}, {"all": [0]}, degrees=2, comm=ALONE)
    assert volumes(mesh) == pytest.approx(2 * abs(plane.area(np.array(SHAPES[name]))), rel=1e-13)
    assert mesh.num_cells == tetrahedra and mesh.exterior.sum() == tetrahedra
    floor = len(SHAPES[name]) if len(SHAPES[name]) > 3 else 1
    assert len(mesh.boundary_facets("floor")[0]) == floor and mesh.cell_mask("all").all()


def test_polyhedra_share_faces():
    """A tetrahedron on a cube whose side it touches is one triangle of a face split in two."""
    cube, points = prism(SHAPES["square"], 0.0, 1.0)
    roof = next(face for face in cube if set(face) == {4, 5, 6, 7})
    split = [face for face in cube if face is not roof] + [[4, 5, 6], [4, 6, 7]]
    points = [*points, [0.7, 0.3, 1.6]]
    mesh = polyhedra([split, [[4, 5, 6], [4, 5, 8], [5, 6, 8], [6, 4, 8]]], points, comm=ALONE)
    assert volumes(mesh) == pytest.approx([1, 0.5 * 0.6 / 3], rel=1e-13)
    assert mesh.num_cells == 5 * 4 + 2 + 1 and mesh.exterior.sum() == 5 * 4 + 1 + 3
    assert mesh.polytopes.numbers.tolist() == [0, 1]


def test_a_polyhedron_need_not_be_convex():
    points = np.array([[1.0, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, -2], [0, 0, -0.1]])
    mesh = polyhedra([[[k, (k + 1) % 4, tip] for k in range(4) for tip in (4, 5)]], points, comm=ALONE)
    assert volumes(mesh) == pytest.approx(2 * (2 - 0.1) / 3, rel=1e-13)


def test_file_of_polyhedra(tmp_path):
    first, points = prism(SHAPES["hanging"], 0.0, 1.0)
    second, more = prism(SHAPES["square"], 2.0, 4.0)
    second = [[k + len(points) for k in face] for face in second]
    path = tmp_path / "solids.vtu"
    meshio.Mesh([*points, *more], [("polyhedron8", [second]), ("polyhedron12", [first])]).write(path)
    mesh = polygons_from_file(path, comm=ALONE)
    assert volumes(mesh) == pytest.approx([2, 1], rel=1e-13)
