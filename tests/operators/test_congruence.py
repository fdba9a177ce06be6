"""Congruent cells and kinds of facets: which are found, and their groups."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from bare_trace import BareTrace
from bench.tiled import shaken_box
from trace_samples import ESSENTIAL, FACES, box, shaken

import petsc_hdg as fe
import petsc_hdg.discretizations.trace.facet_groups as facet_groups_module
from petsc_hdg.discretizations.condensed.hdg import HybridizedDG
from petsc_hdg.discretizations.congruence import Shapes, group, same_geometry
from petsc_hdg.discretizations.dofmap import FieldSpace, build_dofmap
from petsc_hdg.discretizations.trace.element import TraceElement
from petsc_hdg.discretizations.trace.facet_groups import facet_groups, facet_kinds
from petsc_hdg.discretizations.trace.layout import trace_layout
from petsc_hdg.operators.trace.stores import create_format
from petsc_hdg.options import Options

SHAPES_OF_BOX = {"triangle": 2, "quadrilateral": 1, "tetrahedron": 6, "hexahedron": 1}


def shapes(mesh, most=1000, aux_rows=None, **physics) -> Shapes | None:
    physics = {"f1": "for (d = 0; d < dim; ++d) f1[d] = u_x[d];", "f0": "f0[0] = x[0];", **physics}
    disc = HybridizedDG(mesh, fe.Physics({"u": 1}, **physics), Options(degree=1))
    rows = np.zeros((disc.auxiliary.num_rows, disc.stride)) if aux_rows is None else aux_rows
    return disc.congruence(rows, most)


def edges(mesh) -> np.ndarray:
    nodes = mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells]]
    return (nodes[:, 1:] - nodes[:, :1]).reshape(mesh.num_cells, -1)


@pytest.mark.parametrize("cell", FACES)
def test_a_box_has_few_shapes_and_a_shaken_one_as_many_as_cells(cell):
    mesh = box(cell)
    found = shapes(mesh)
    assert found.count == SHAPES_OF_BOX[cell]
    np.testing.assert_allclose(edges(mesh), edges(mesh)[found.representative][found.shape], atol=1e-13)
    np.testing.assert_array_equal(found.shape[found.representative], np.arange(found.count))
    assert shapes(shaken(box(cell), 1e-14)).count == SHAPES_OF_BOX[cell]
    mesh = shaken(box(cell), 1e-6)
    assert shapes(mesh, mesh.num_cells).count == mesh.num_cells
    assert shapes(mesh, mesh.num_cells - 1) is None


def test_one_moved_vertex_gives_its_cells_shapes_of_their_own():
    mesh = box("triangle")
    cells = np.flatnonzero((mesh.geometry.cell_nodes == 100).any(axis=1))
    mesh.geometry.nodes[100] += 1e-9
    found = shapes(mesh)
    assert len(cells) == 6 and found.count == 8 and len(set(found.shape[cells])) == 6
    assert np.bincount(found.shape).max() < mesh.num_cells - 6 + 1


@pytest.mark.parametrize("cell,most", [("triangle", 2.0), ("tetrahedron", 3.0)])
def test_copies_have_their_vertices_in_the_same_order(cell, most):
    """Cells of a refined mesh are few shapes for each coarse one, whatever PETSc's order of their vertices is."""
    coarse = shaken_box(cell, (3, 3) if cell == "triangle" else (2, 2, 2))
    dm = coarse.dm
    for _ in range(2):
        dm.setRefinementUniform(True)
        dm = dm.refine()
    fine = fe.Mesh(dm)
    found = same_geometry(fine.geometry, np.zeros(fine.num_cells, dtype=np.int64), fine.num_cells)
    assert fine.num_cells == coarse.num_cells * (16 if cell == "triangle" else 64)
    assert found.count <= most * coarse.num_cells


def test_groups_are_those_of_the_first_member():
    """A chain whose neighbours agree while its ends do not is split where the first member says."""
    data = np.arange(10)[:, None] * 0.75
    found = group(data, np.ones(10), np.zeros(10, dtype=np.int64), 10)
    np.testing.assert_array_equal(found.shape, np.arange(10) // 2)
    np.testing.assert_array_equal(found.representative, np.arange(0, 10, 2))
    labels = np.arange(10) % 2
    assert group(np.zeros((10, 1)), np.ones(10), labels, 10).representative.tolist() == [0, 1]


def test_equal_sums_are_compared():
    """Rows that a combination of their numbers cannot tell apart."""
    random = np.random.default_rng(5)
    weights = random.uniform(0.5, 1.5, 2)
    data = np.array([[0.0, 0.0], [weights[1], -weights[0]], [0.0, 0.0]])
    assert group(data, np.full(3, 1e-9), np.zeros(3, dtype=np.int64), 3).shape.tolist() == [0, 1, 0]


def test_data_that_matrices_depend_on():
    mesh = box("triangle")
    count = mesh.num_cells
    kappa = {"f1": "for (d = 0; d < dim; ++d) f1[d] = a[0]*u_x[d];", "auxiliary": {"k": fe.Auxiliary(1, "cell")}}
    rows = (np.arange(32 * -(-count // 32)) // 100).astype(float)[None]
    found = shapes(mesh, aux_rows=rows, **kappa)
    assert found.count == 2 * len(np.unique(rows[0, :count]))
    np.testing.assert_array_equal(rows[0, :count], rows[0, found.representative][found.shape])
    source = {"f0": "f0[0] = a[0];", "auxiliary": {"k": fe.Auxiliary(1, "cell")}}
    assert shapes(mesh, aux_rows=rows, **source).count == 2
    assert shapes(mesh, f1="for (d = 0; d < dim; ++d) f1[d] = (1 + x[0])*u_x[d];") is None
    assert shapes(mesh, f1="for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];") is None


def test_conditions_that_matrices_depend_on():
    mesh = box("triangle")
    assert shapes(mesh, boundary=[fe.Neumann("left", "g[0] = x[1];")]).count == 2
    assert shapes(mesh, boundary=[fe.Robin("left", "f0[0] = 2*u[0] + x[1];")]).count == 3
    assert shapes(mesh, boundary=[fe.Robin("left", "f0[0] = (2 + x[1])*u[0];")]).count == 2 + FACES["triangle"][1]


@pytest.mark.parametrize("cell", FACES)
def test_kinds_of_facets(cell):
    """Facets of a kind have cells of the same shapes in the same places."""
    op = BareTrace(cell, 1, 1, ESSENTIAL["whole"][:1], faces=FACES[cell])
    layout = create_format("element", op).layout
    shape = np.random.default_rng(3).integers(0, 3, op.mesh.num_cells)
    kinds = facet_kinds(layout, shape)
    sides = [
        (shape[c], p, *layout.orientation[c]) if c >= 0 else ()
        for c, p in zip(layout.cells.T.ravel(), layout.local.T.ravel(), strict=True)
    ]
    pairs = list(zip(sides[::2], sides[1::2], strict=True))
    assert all(pairs[k] == pairs[kinds.representative[n]] for k, n in enumerate(kinds.kind))
    assert len(set(pairs)) == kinds.count


@pytest.mark.parametrize("lowest", (facet_groups_module.LOWEST, -190))
@pytest.mark.parametrize("cell", FACES)
def test_groups_of_facets(cell, lowest, monkeypatch):
    """Items of a group give back the facets' kinds and neighbours, those far away too."""
    monkeypatch.setattr(facet_groups_module, "LOWEST", lowest)
    op = BareTrace(cell, 1, 1, ESSENTIAL["whole"][:1], faces=FACES[cell])
    layout = create_format("element", op).layout
    kinds = facet_kinds(layout, np.random.default_rng(3).integers(0, 3, op.mesh.num_cells))
    size, seen, far = 16, [], 0
    groups = facet_groups(kinds, size)
    assert lowest != -190 or len(groups.far) > groups.count
    for first, (pattern, kind_start, far_start, _) in zip(
        range(0, size * groups.count, size), groups.heads, strict=True
    ):
        before = -1
        for item in range(min(size, layout.num_facets - first)):
            local, place = divmod(int(groups.entry[pattern, item]), size)
            facet, kind = first + place, groups.kinds[kind_start + local]
            assert kind == kinds.kind[facet] and kind >= before
            before = kind
            near = groups.adjacent[pattern, :, item].view(np.int16).astype(int)
            is_far = near < lowest + size * len(near)
            found = np.where(is_far, groups.far[far_start + np.where(is_far, near - lowest, 0)], first + near)
            far += is_far.sum()
            expected = layout.neighbours[1:, facet]
            np.testing.assert_array_equal(found, np.where(expected < 0, facet, expected))
            seen.append(facet)
    assert sorted(seen) == list(range(layout.num_facets)) and len(groups.far) == far + 1


def test_neighbours_beyond_16_bits_are_far():
    neighbours, facet = np.array([[32767, 32768, 0, 1]]), np.array([[0, 1]])
    far, _, adjacent = facet_groups_module._relative(neighbours, facet, np.array([[0]]), 40000)
    assert far[:-1].tolist() == [32768] and adjacent.view(np.int16).ravel().tolist() == [32767, -32768]
    facet, first = np.array([[2, 3]]), np.array([[32768]])  # one far slot of two facets: -32768 and -32767 name it
    far, _, adjacent = facet_groups_module._relative(np.array([[0, 0, 0, 2]]), facet, first, 40000)
    assert far[:-1].tolist() == [0] and adjacent.view(np.int16).ravel().tolist() == [-32768, -32766]


def test_distinct_rows(monkeypatch):
    rows = np.random.default_rng(1).integers(0, 3, (200, 5)).astype(np.uint16)

    def check():
        chosen, kind = facet_groups_module._distinct(rows)
        np.testing.assert_array_equal(rows[chosen][kind], rows)
        assert len(chosen) == len(np.unique(rows, axis=0))

    check()
    zero = SimpleNamespace(integers=lambda low, high, size, kind: np.zeros(size, kind))
    monkeypatch.setattr(np.random, "default_rng", lambda seed: zero)  # weights of 1: other rows have the same sum
    check()


def test_groups_of_a_mesh_with_a_pattern_share_their_items():
    mesh = fe.Mesh.box((128, 128))
    space, (start, end) = FieldSpace("u", TraceElement("triangle", 1), 1, 0, 0, 0), mesh.dm.getChart()
    layout = trace_layout(mesh, build_dofmap(mesh, (space,), np.zeros((end - start, 1), bool)), space)
    kinds = facet_kinds(layout, same_geometry(mesh.geometry, np.zeros(mesh.num_cells, np.int64), 2).shape)
    groups = facet_groups(kinds, 64)
    assert len(groups.entry) < 0.6 * groups.count
