"""Bulk topology against PETSc's own closure of one cell at a time."""

import basix
import numpy as np
import pytest

from petsc_hdg.mesh import Mesh
from petsc_hdg.mesh.topology import CHUNK

SEEDS = (1, 2)


def closure_vertices(dm, point: int) -> set[int]:
    start, end = dm.getDepthStratum(0)
    return {int(p) - start for p in dm.getTransitiveClosure(point)[0] if start <= p < end}


def check_against_closures(mesh: Mesh) -> None:
    """Every number in the bulk arrays, from getTransitiveClosure and getSupport."""
    topology, dm = mesh.topology, mesh.dm
    basix_entities = basix.topology(getattr(basix.CellType, mesh.cell))
    for cell, point in enumerate(topology.cells):
        vertices = topology.cell_vertices[cell]
        closure = {int(p) for p in dm.getTransitiveClosure(int(point))[0]}
        assert set(vertices) == closure_vertices(dm, int(point))
        for d in range(1, mesh.dim):
            start, end = topology.stratum[d]
            assert {int(e) + start for e in topology.entity[d][cell]} == {p for p in closure if start <= p < end}
            for local, entity in enumerate(topology.entity[d][cell]):
                wanted = {int(vertices[v]) for v in basix_entities[d][local]}
                assert closure_vertices(dm, int(entity) + start) == wanted
                assert set(topology.entity_vertices[d][entity].tolist()) == wanted
    start = topology.stratum[mesh.dim - 1][0]
    cell_of_point = {int(p): c for c, p in enumerate(topology.cells)}
    for facet, cells in enumerate(topology.facet_cells):
        wanted = sorted(cell_of_point[int(p)] for p in dm.getSupport(facet + start))
        assert [c for c in cells if c >= 0] == wanted
        for c, local in zip(cells, topology.facet_local[facet], strict=True):
            assert local == -1 if c < 0 else topology.entity[mesh.dim - 1][c, local] == facet


def test_agrees_with_closures(shuffled):
    assert shuffled.num_cells > 10
    check_against_closures(shuffled)


def test_order_of_vertices(shuffled):
    numbers = shuffled.topology.vertex_rank[shuffled.topology.cell_vertices]
    assert len(np.unique(shuffled.topology.vertex_rank)) == shuffled.num_vertices
    assert len(np.unique(shuffled.topology.vertex_global)) == shuffled.num_vertices
    if shuffled.shape.is_simplex:
        assert (np.diff(numbers, axis=1) > 0).all()
        return
    assert (numbers[:, :1] < numbers[:, 1:]).all()
    near = [1, 2] if shuffled.dim == 2 else [1, 2, 4]
    assert (np.diff(numbers[:, near], axis=1) > 0).all()


def test_entity_vertices_follow_the_same_rule(shuffled):
    topology = shuffled.topology
    numbers = {d: topology.vertex_rank[topology.entity_vertices[d]] for d in range(1, shuffled.dim)}
    assert (np.diff(numbers[1], axis=1) > 0).all()
    if shuffled.cell == "tetrahedron":
        assert (np.diff(numbers[2], axis=1) > 0).all()
    if shuffled.cell == "hexahedron":
        faces = numbers[2]
        assert (faces[:, :1] < faces[:, 1:]).all() and (faces[:, 1] < faces[:, 2]).all()


def test_many_chunks():
    mesh = Mesh.box((140, 140), simplex=True)
    assert mesh.num_cells > CHUNK
    sides = mesh.geometry.nodes[mesh.topology.entity_vertices[1]]
    length = np.linalg.norm(sides[:, 0] - sides[:, 1], axis=1)[mesh.topology.entity[1]]
    assert np.allclose(np.sort(length, axis=1) * 140, [1, 1, 2**0.5])


@pytest.mark.parametrize("simplex", [True, False])
@pytest.mark.parametrize("faces", [(1, 1), (1, 1, 1)])
def test_smallest_boxes(faces, simplex):
    mesh = Mesh.box(faces, simplex)
    check_against_closures(mesh)
    assert mesh.num_cells == (1 if not simplex else 2 if mesh.dim == 2 else 6)
