"""Agglomerates over fewer triangles: the same polygons, names, numbers and degrees."""

import numpy as np
import pytest
from mpi4py import MPI
from shuffled_boxes import MESHES, shuffled_box
from test_polygons import qualities, volumes

from petsc_hdg.errors import MeshError
from petsc_hdg.mesh import Mesh, agglomerate, fewer_cells
from petsc_hdg.mesh.whole_mesh import centroids

ALONE = MPI.COMM_SELF


def lengths(mesh: Mesh) -> dict[str, float]:
    """Length of each boundary."""
    found = {}
    for name in mesh.boundaries:
        cells, local = mesh.boundary_facets(name)
        ends = np.take_along_axis(mesh.topology.cell_vertices[cells], mesh.shape.entities[1][local], axis=1)
        x = mesh.geometry.nodes[ends]
        found[name] = np.linalg.norm(x[:, 1] - x[:, 0], axis=1).sum()
    return found


def interfaces(mesh: Mesh) -> dict[tuple[int, int], float]:
    """Length of the facets between each two polytopes."""
    near, polytope = mesh.topology.facet_cells, mesh.polytopes.of_cell
    found = {}
    for facet in np.flatnonzero(near[:, 1] >= 0):
        pair = tuple(sorted(polytope[near[facet]].tolist()))
        x = mesh.geometry.nodes[mesh.topology.entity_vertices[1][facet]]
        if pair[0] != pair[1]:
            found[pair] = found.get(pair, 0) + np.linalg.norm(x[1] - x[0])
    return found


def check_same(before: Mesh, after: Mesh) -> None:
    assert after.polytopes.numbers.tolist() == list(range(before.polytopes.count))
    assert volumes(after) == pytest.approx(volumes(before), rel=1e-12)
    assert lengths(after) == pytest.approx(lengths(before), rel=1e-12)
    assert interfaces(after) == pytest.approx(interfaces(before), rel=1e-12)
    for region in before.cell_regions:
        areas = [np.abs(area_of(mesh, mesh.cell_mask(region))) for mesh in (before, after)]
        assert areas[0] == pytest.approx(areas[1], rel=1e-12) and areas[0] > 0


def area_of(mesh: Mesh, mask: np.ndarray) -> float:
    x = mesh.geometry.nodes[mesh.topology.cell_vertices[: mesh.num_cells][mask]]
    a, b = x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]
    return np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum() / 2


@pytest.mark.parametrize(("faces", "count", "most"), [((20, 20), 12, 110), ((10, 10), 40, 160), ((3, 3), 18, 18)])
def test_agglomerates_of_triangles(faces, count, most):
    mesh = agglomerate(Mesh.box(faces, comm=ALONE), count, degrees=np.arange(count) % 7)
    fewer = fewer_cells(mesh)
    check_same(mesh, fewer)
    assert fewer.num_cells <= most and fewer.polytopes.degrees.tolist() == mesh.polytopes.degrees.tolist()
    assert qualities(fewer).min() > 0.05


def test_no_straight_sides():
    cells, points = shuffled_box("triangle", seed=2)
    mesh = agglomerate(Mesh.from_cells(cells, points, comm=ALONE), 5)
    fewer = fewer_cells(mesh)
    check_same(mesh, fewer)
    assert fewer.num_cells < mesh.num_cells


def test_a_square_of_squares_is_two_triangles():
    mesh = agglomerate(Mesh.box((8, 8), False, comm=ALONE), 1)
    fewer = fewer_cells(mesh)
    assert (fewer.cell, fewer.num_cells) == ("triangle", 2)
    assert lengths(fewer) == {"left": 1, "right": 1, "top": 1, "bottom": 1, "boundary": 4}


def test_holes_and_touching_corners_keep_their_cells():
    """A ring around a square, a column, and a ring without a corner, which meets itself where the corner was."""
    mesh = Mesh.box((7, 3), False, comm=ALONE)
    x, y = (centroids(mesh) * [7, 3]).astype(int).T
    middle, corner = (x % 4 == 1) & (y == 1), (x == 4) & (y == 0)
    mesh = agglomerate(mesh, groups=np.select([corner, middle & (x < 3), middle, x < 3, x == 3], [0, 1, 2, 3, 4], 5))
    fewer = fewer_cells(mesh)
    check_same(mesh, fewer)
    assert np.bincount(fewer.polytopes.of_cell).tolist() == [2, 2, 2, 2 * 8, 6, 2 * 7]


def test_regions_of_cells():
    mesh = Mesh.from_file(MESHES / "regions.msh", comm=ALONE)
    whole = agglomerate(mesh, label=("west", "east"))
    fewer = fewer_cells(whole)
    check_same(whole, fewer)
    assert fewer.num_cells < mesh.num_cells
    across = agglomerate(mesh, groups=np.zeros(mesh.num_cells, int))
    same = fewer_cells(across)
    check_same(across, same)
    assert same.num_cells == mesh.num_cells, "regions that end inside a polytope are kept"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Mesh.box((2, 2), comm=ALONE), "this mesh has dimension 2, .* no agglomerates"),
        (lambda: agglomerate(Mesh.box((2, 2, 2), comm=ALONE), 2), "this mesh has dimension 3"),
        (lambda: agglomerate(Mesh.from_file(MESHES / "disk_tri.msh", comm=ALONE), 2), "cells of order 2"),
    ],
)
def test_refusals(make, said):
    with pytest.raises(MeshError, match=said):
        fewer_cells(make())
