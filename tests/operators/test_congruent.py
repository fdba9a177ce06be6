"""A dictionary of the blocks of congruent cells gives the products of the other formats."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from bare_trace import BareTrace
from trace_samples import ESSENTIAL, FACES, close, compare, congruent, direction, keeps_its_values, real_product

import petsc_hdg as fe
from petsc_hdg.discretizations.congruence import Shapes
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.krylov.matrices import sums_products
from petsc_hdg.operators.trace.stores import create_format


def shared(op, count: int = 3, gpu: bool = False, monkeypatch=None):
    """A format whose cells have one of `count` random matrices, those of the stand-in."""
    shape = np.random.default_rng(7).integers(0, count, op.mesh.num_cells)
    op.K = op.K[np.unique(shape, return_index=True)[1]][shape]
    if gpu:  # its launch shapes and vector loads, on this device
        limits = replace(DeviceLimits.of(op.device), is_gpu=True, max_work_group=64)
        monkeypatch.setattr(DeviceLimits, "of", lambda device: limits)
    trace = congruent(op, shape)
    op.fill(trace, 7)
    return trace


@pytest.mark.parametrize("gpu", (False, True))
@pytest.mark.parametrize("essential", ESSENTIAL)
@pytest.mark.parametrize("degree,nc", [(0, 1), (1, 1), (2, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize("cell", FACES)
def test_products_and_diagonals(cell, degree, nc, essential, gpu, monkeypatch):
    fixed = [(label, tuple(c for c in which if c < nc)) for label, which in ESSENTIAL[essential]]
    op = BareTrace(cell, degree, nc, fixed)
    trace = shared(op, 3, gpu, monkeypatch)
    compare(op, trace)
    monkeypatch.undo()
    dense = create_format("dbf", op)
    op.fill(dense, 5)
    x, _ = direction(op)
    close(op, op.local(lambda *y: trace.mult(x, *y)), op.local(lambda *y: dense.mult(x, *y)))
    close(op, op.local(lambda *y: trace.column(0, *y)), op.local(lambda *y: dense.column(0, *y)))


def test_products_sum_their_scalar_product(monkeypatch):
    """Parts of x·y, threads that share a facet, and facets that fill no group."""
    for cell, degree, gpu in (("triangle", 2, True), ("triangle", 3, True), ("quadrilateral", 1, False)):
        op = BareTrace(cell, degree, 1, ESSENTIAL["whole"])
        with monkeypatch.context() as patched:
            trace = shared(op, 3, gpu, patched)
        assert sums_products(SimpleNamespace(format=trace)) is trace
        parts_agree(op, trace)


def test_rows_of_a_facet_shared_by_threads(monkeypatch):
    monkeypatch.setattr("petsc_hdg.discretizations.trace.specs.CONGRUENT_ROWS", 4)
    op = BareTrace("triangle", 4, 1)
    trace = shared(op, 3, True, monkeypatch)
    assert trace.shape.parts == 2
    compare(op, trace)
    parts_agree(op, trace)


def parts_agree(op, trace) -> None:
    """The parts of x·y are those of the product, ghosts included."""
    x, values = direction(op)
    trace.parts = op.arrays.to_device(np.full(trace.num_parts, np.nan))
    y = op.local(partial(trace.mult, x))
    parts, trace.parts = op.arrays.to_host(trace.parts, trace.num_parts), None
    assert abs(parts.sum() - values @ y) < 1e-13 * np.linalg.norm(values) * np.linalg.norm(y)


def test_tiles_of_any_size_give_the_same_bits():
    op = BareTrace("tetrahedron", 1, 1)
    trace = shared(op)
    whole = [op.arrays.to_host(b, trace.num_reals) for b in (trace.blocks, trace.transposed)]
    for tile in (1, 3, 1000):
        op.fill(trace, tile)
        for buffer, expected in zip((trace.blocks, trace.transposed), whole, strict=True):
            np.testing.assert_array_equal(op.arrays.to_host(buffer, len(expected)), expected)


def test_a_copy_keeps_its_values_and_single_precision_works():
    op = BareTrace("quadrilateral", 2, 1, precision="single")
    keeps_its_values(op, shared(op))


def test_sharing_is_taken_back():
    """A dictionary is used while there are shapes and few kinds of facets."""
    op = BareTrace("triangle", 1, 1, faces=FACES["triangle"])
    op.K[:] = op.K[0]
    trace = create_format("element", op)
    one = Shapes(np.zeros(op.mesh.num_cells, dtype=np.int32), np.zeros(1, dtype=np.int32))
    trace.share(one)
    assert trace.chosen.kind == "congruent" and "kinds of" in trace.description
    op.fill(trace, 100)
    compare(op, trace)
    small = trace.nbytes
    trace.share(None)
    op.fill(trace, 100)
    assert trace.chosen.kind == "element" and trace.nbytes > 5 * small
    compare(op, trace)
    trace.share(Shapes(np.arange(op.mesh.num_cells, dtype=np.int32), np.arange(op.mesh.num_cells, dtype=np.int32)))
    assert trace.chosen.kind == "element"


@pytest.mark.full
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
    assert trace.chosen.kinds.count < trace.layout.num_facets / 8
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
