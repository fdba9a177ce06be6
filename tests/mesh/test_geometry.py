"""Coordinates: volumes, and second-order nodes against the file that they come from."""

import basix
import meshio
import numpy as np
import pytest
from sample_meshes import box_mesh
from shuffled_boxes import MESHES

from petsc_hdg.mesh import Mesh
from petsc_hdg.mesh.quality import determinants, jacobians

CURVED = {"disk_tri": "triangle", "disk_quad": "quadrilateral", "ball_tet": "tetrahedron", "ball_hex": "hexahedron"}
EPS = np.finfo(float).eps


def volume(mesh: Mesh) -> float:
    """Volume of the owned cells."""
    points, weights = basix.make_quadrature(getattr(basix.CellType, mesh.cell), 8)
    determinant = determinants(jacobians(mesh.shape, mesh.geometry, slice(0, mesh.num_cells), points))
    return float((abs(determinant) @ weights).sum())


def test_volume_of_distorted_boxes(shuffled):
    assert shuffled.geometry.degree == 1
    assert shuffled.geometry.is_affine == shuffled.shape.is_simplex
    assert abs(volume(shuffled) - 1) < 100 * EPS


@pytest.mark.parametrize("name", CURVED)
def test_nodes_are_those_of_the_file(name):
    mesh, file = Mesh.from_file(MESHES / f"{name}.msh"), meshio.read(MESHES / f"{name}.msh")
    assert (mesh.cell, mesh.geometry.degree, mesh.geometry.is_affine) == (CURVED[name], 2, False)
    cells = [block.data for block in file.cells if block.dim == mesh.dim]
    assert len(cells) == 1 and len(cells[0]) == mesh.num_cells
    points = file.points[:, : mesh.dim]
    assert np.abs(cell_sets(points[cells[0]]) - cell_sets(mesh.geometry.nodes[mesh.geometry.cell_nodes])).max() == 0


def cell_sets(nodes: np.ndarray) -> np.ndarray:
    """Nodes of cells [cell, node, dim], with the nodes of each cell and then the cells in an order of their own."""
    by_node = np.array([cell[np.lexsort(cell.T)] for cell in nodes])
    flat = by_node.reshape(len(nodes), -1)
    return flat[np.lexsort(flat.T)]


@pytest.mark.parametrize("name", CURVED)
def test_nodes_sit_in_their_slots(name):
    """Each node is nearer to its place in the straight cell than to the place of any other node."""
    mesh = Mesh.from_file(MESHES / f"{name}.msh")
    kind = getattr(basix.CellType, mesh.cell)
    element = basix.create_element(basix.ElementFamily.P, kind, 2, basix.LagrangeVariant.equispaced)
    linear = basix.create_element(basix.ElementFamily.P, kind, 1, basix.LagrangeVariant.equispaced)
    weights = linear.tabulate(0, element.points)[0, :, :, 0]
    nodes = mesh.geometry.nodes[mesh.geometry.cell_nodes]
    places = np.einsum("pv,cvi->cpi", weights, nodes[:, : mesh.shape.num_vertices])
    distance = np.linalg.norm(nodes[:, :, None] - places[:, None], axis=3)
    assert (distance.argmin(axis=2) == np.arange(len(element.points))).mean() > 0.97


@pytest.mark.parametrize("name", CURVED)
def test_rim_nodes_lie_on_the_circle(name):
    mesh = Mesh.from_file(MESHES / f"{name}.msh")
    kind = getattr(basix.CellType, mesh.cell)
    element = basix.create_element(basix.ElementFamily.P, kind, 2, basix.LagrangeVariant.equispaced)
    closure = np.array(element.entity_closure_dofs[mesh.dim - 1])
    cells, local = mesh.boundary_facets("rim")
    nodes = mesh.geometry.nodes[np.take_along_axis(mesh.geometry.cell_nodes[cells], closure[local], axis=1)]
    assert len(cells) > 10
    assert np.abs(np.linalg.norm(nodes, axis=2) - 1).max() < 1e-12


@pytest.mark.parametrize(("name", "edges"), [("disk_tri", 14), ("disk_quad", 28), ("disk_quad8", 28)])
def test_area_of_the_curved_disk(name, edges):
    """A regular polygon whose sides are parabolas through the circle: triangles and segments of parabolas."""
    mesh = Mesh.from_file(MESHES / f"{name}.msh")
    assert len(mesh.boundary_facets("rim")[0]) == edges
    half = np.pi / edges
    exact = edges * (np.sin(half) * np.cos(half) + 2 / 3 * 2 * np.sin(half) * (1 - np.cos(half)))
    assert abs(volume(mesh) - exact) < 1e-13
    assert abs(exact - np.pi) < 3e-4 < abs(edges * np.sin(half) * np.cos(half) - np.pi)


@pytest.mark.parametrize(("name", "error"), [("ball_tet", 0.01), ("ball_hex", 0.0003)])
def test_volume_of_the_curved_ball(name, error):
    exact = 4 / 3 * np.pi
    mesh = Mesh.from_file(MESHES / f"{name}.msh")
    assert abs(volume(mesh) / exact - 1) < error


@pytest.mark.parametrize("cell", CURVED.values())
def test_nodes_are_moved(cell):
    """Of straight cells and of curved ones, to the image of their places; the mesh itself stays."""
    straight = box_mesh(cell)
    before = straight.geometry.nodes.copy()
    once = straight.curved(lambda x: x * (1 + x))
    element = basix.create_element(basix.ElementFamily.P, basix.CellType[cell], 2, basix.LagrangeVariant.equispaced)
    linear = basix.create_element(basix.ElementFamily.P, basix.CellType[cell], 1, basix.LagrangeVariant.equispaced)
    table = linear.tabulate(0, element.points)[0, :, :, 0]
    expected = np.einsum("pv,cvi->cpi", table, before[straight.geometry.cell_nodes])
    expected = expected * (1 + expected)
    for mesh in (once, once.curved(lambda x: x)):
        assert mesh.geometry.degree == 2 and mesh.boundaries == straight.boundaries
        found = mesh.geometry.nodes[mesh.geometry.cell_nodes]
        np.testing.assert_allclose(cell_sets(found.round(12)), cell_sets(expected.round(12)), atol=1e-12)
    np.testing.assert_array_equal(straight.geometry.nodes, before)
