"""Congruent cells: which are found, and that a dictionary of their blocks gives the products of the other formats."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from test_trace_formats import ESSENTIAL, close, compare, direction
from trace_stand_in import TraceStandIn

import petsc_hdg as fe
import petsc_hdg.discretizations.facet_groups as facet_groups_module
from petsc_hdg.commands.bench.tiled import shaken_box
from petsc_hdg.discretizations.congruence import Shapes, group, same_geometry
from petsc_hdg.discretizations.dofmap import FieldSpace, build_dofmap
from petsc_hdg.discretizations.facet_groups import facet_groups
from petsc_hdg.discretizations.facet_kinds import facet_kinds
from petsc_hdg.discretizations.hdg import HybridizedDG
from petsc_hdg.discretizations.trace_element import TraceElement
from petsc_hdg.discretizations.trace_layout import trace_layout
from petsc_hdg.krylov.matrices import sums_products
from petsc_hdg.operators.congruent import CongruentFacets
from petsc_hdg.operators.trace_formats import create_format
from petsc_hdg.options import Options

FACES = {"triangle": (16, 12), "quadrilateral": (24, 16), "tetrahedron": (6, 6, 6), "hexahedron": (8, 6, 6)}
SHAPES_OF_BOX = {"triangle": 2, "quadrilateral": 1, "tetrahedron": 6, "hexahedron": 1}


def box(cell: str, **settings) -> fe.Mesh:
    return fe.Mesh.box(FACES[cell], simplex=cell in ("triangle", "tetrahedron"), **settings)


def shaken(mesh: fe.Mesh, amount: float) -> fe.Mesh:
    """The mesh with every vertex moved at random by up to `amount`."""
    mesh.geometry.nodes += np.random.default_rng(1).uniform(-amount, amount, mesh.geometry.nodes.shape)
    return mesh


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
    op = TraceStandIn(cell, 1, 1, ESSENTIAL["whole"][:1], faces=FACES[cell])
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
    op = TraceStandIn(cell, 1, 1, ESSENTIAL["whole"][:1], faces=FACES[cell])
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
    layout = trace_layout(mesh, build_dofmap(mesh, mesh.dm.clone(), (space,), np.zeros((end - start, 1), bool)), space)
    kinds = facet_kinds(layout, same_geometry(mesh.geometry, np.zeros(mesh.num_cells, np.int64), 2).shape)
    groups = facet_groups(kinds, 64)
    assert len(groups.entry) < 0.6 * groups.count


def shared(op, count: int = 3, gpu: bool = False):
    """A format whose cells have one of `count` random matrices, those of the stand-in."""
    shape = np.random.default_rng(7).integers(0, count, op.mesh.num_cells)
    found = [int(np.flatnonzero(shape == k)[0]) for k in range(count)]
    op.K = op.K[found][shape]
    trace = create_format("element", op)
    if gpu:  # its launch shapes and vector loads, on this device
        limits = replace(trace.specs.limits, is_gpu=True, max_work_group=64)
        trace.specs = replace(trace.specs, limits=limits)
    trace._shapes = Shapes(shape.astype(np.int32), np.array(found, dtype=np.int32))
    trace.congruent = CongruentFacets(trace, facet_kinds(trace.layout, shape))
    op.fill(trace, 7)
    return trace


@pytest.mark.parametrize("gpu", (False, True))
@pytest.mark.parametrize("essential", ESSENTIAL)
@pytest.mark.parametrize("degree,nc", [(0, 1), (1, 1), (2, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize("cell", FACES)
def test_products_and_diagonals(cell, degree, nc, essential, gpu):
    fixed = [(label, tuple(c for c in which if c < nc)) for label, which in ESSENTIAL[essential]]
    op = TraceStandIn(cell, degree, nc, fixed)
    trace = shared(op, gpu=gpu)
    compare(op, trace)
    dense = create_format("dbf", op)
    op.fill(dense, 5)
    x, _ = direction(op)
    close(op, op.local(lambda *y: trace.mult(x, *y)), op.local(lambda *y: dense.mult(x, *y)))
    close(op, op.local(lambda *y: trace.column(0, *y)), op.local(lambda *y: dense.column(0, *y)))


def test_products_sum_their_scalar_product():
    """Parts of x·y, threads that share a facet, and facets that fill no group."""
    for cell, degree, gpu in (("triangle", 2, True), ("triangle", 3, True), ("quadrilateral", 1, False)):
        op = TraceStandIn(cell, degree, 1, ESSENTIAL["whole"])
        trace = shared(op, gpu=gpu)
        summing = sums_products(SimpleNamespace(format=trace))
        assert summing is trace.congruent
        parts_agree(op, trace, summing)


def test_rows_of_a_facet_shared_by_threads(monkeypatch):
    monkeypatch.setattr("petsc_hdg.discretizations.trace_specs.CONGRUENT_ROWS", 4)
    op = TraceStandIn("triangle", 4, 1)
    trace = shared(op, gpu=True)
    assert trace.congruent.shape.parts == 2
    compare(op, trace)
    parts_agree(op, trace, trace.congruent)


def parts_agree(op, trace, summing) -> None:
    """The parts of x·y are those of the product, ghosts included."""
    x, values = direction(op)
    summing.parts = op.arrays.to_device(np.full(summing.num_parts, np.nan))
    y = op.local(partial(trace.mult, x))
    parts, summing.parts = op.arrays.to_host(summing.parts, summing.num_parts), None
    assert abs(parts.sum() - values @ y) < 1e-13 * np.linalg.norm(values) * np.linalg.norm(y)


def test_tiles_of_any_size_give_the_same_bits():
    op = TraceStandIn("tetrahedron", 1, 1)
    trace = shared(op)
    whole = [
        op.arrays.to_host(b, trace.congruent.num_reals) for b in (trace.congruent.blocks, trace.congruent.transposed)
    ]
    for tile in (1, 3, 1000):
        op.fill(trace, tile)
        for buffer, expected in zip((trace.congruent.blocks, trace.congruent.transposed), whole, strict=True):
            np.testing.assert_array_equal(op.arrays.to_host(buffer, len(expected)), expected)


def test_a_copy_keeps_its_values_and_single_precision_works():
    op = TraceStandIn("quadrilateral", 2, 1, precision="single")
    trace = shared(op)
    A, (x, values) = op.matrix(), direction(op)
    kept = trace.copy()
    op.K *= 3.0
    op.fill(trace, 100)
    close(op, op.local(lambda *y: kept.mult(x, *y)), A @ values)
    close(op, op.local(lambda *y: trace.mult(x, *y)), 3 * (A @ values))


def test_sharing_is_taken_back():
    """A dictionary is used while there are shapes and few kinds of facets."""
    op = TraceStandIn("triangle", 1, 1, faces=FACES["triangle"])
    op.K[:] = op.K[0]
    trace = create_format("element", op)
    one = Shapes(np.zeros(op.mesh.num_cells, dtype=np.int32), np.zeros(1, dtype=np.int32))
    trace.share(one)
    assert trace.congruent and trace.packed is None and "kinds of" in trace.description
    op.fill(trace, 100)
    compare(op, trace)
    small = trace.nbytes
    trace.share(None)
    op.fill(trace, 100)
    assert trace.congruent is None and trace.nbytes > 5 * small
    compare(op, trace)
    trace.share(Shapes(np.arange(op.mesh.num_cells, dtype=np.int32), np.arange(op.mesh.num_cells, dtype=np.int32)))
    assert trace.congruent is None


def real_product(mesh, kind: str, physics) -> tuple:
    """Products with a random vector of a linear problem's trace matrix and its transpose, its diagonal; the format."""
    problem = fe.Problem(mesh, physics, backend="hdg_gpu", degree=1, hdg_trace_mat=kind)
    op = problem.operator
    op.linearize(op.arrays.zeros(max(1, op.dofmap.num_owned)))
    x = op.arrays.to_device(np.random.default_rng(1).uniform(-1, 1, op.dofmap.num_owned))
    found = []
    for run in (
        partial(op.format.apply, x),
        partial(op.format.apply, x, transpose=True),
        partial(op.format.apply_column, -1),
    ):
        y = op.arrays.zeros(op.dofmap.num_owned)
        run(y)
        found.append(op.arrays.to_host(y, op.dofmap.num_owned))
    return *found, op.format


@pytest.mark.parametrize("flux", ("u_x[d]", "u_x[d] + (d + 1)*u[0]"))
@pytest.mark.parametrize("cell", FACES)
def test_matrices_of_a_problem_are_shared(cell, flux):
    physics = fe.Physics(
        {"u": 1},
        f0="f0[0] = u[0] - x[0];",
        f1=f"for (d = 0; d < dim; ++d) f1[d] = {flux};",
        boundary=[fe.Dirichlet("left", "g[0] = 1;"), fe.Robin("right", "f0[0] = 2*u[0];")],
    )
    faces = tuple(3 * n for n in FACES[cell][:2]) + FACES[cell][2:]
    mesh = fe.Mesh.box(faces, simplex=cell in ("triangle", "tetrahedron"))
    *got, trace = real_product(mesh, "element", physics)
    *expected, _ = real_product(mesh, "dbf", physics)
    assert trace.congruent and trace.congruent.kinds.count < trace.layout.num_facets / 8
    for a, b in zip(got, expected, strict=True):
        assert np.abs(a - b).max() < 1e-11 * np.abs(b).max()


def test_the_view_says_how_the_matrix_is_stored():
    physics = fe.Physics({"u": 1}, f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];")
    mesh = fe.Mesh.box((24, 24))
    views = [
        fe.Problem(mesh, physics, backend="hdg_gpu", hdg_trace_mat=kind).view() for kind in ("element", "dbf", "aij")
    ]
    assert "matrices of congruent cells, 2 shapes of 1152 cells, 8 kinds of 1776 facets" in views[0]
    assert "trace matrix: dense block format" in views[1] and "trace matrix" not in views[2]
