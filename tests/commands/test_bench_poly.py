"""Rows of `bench poly`, and of the paper's three meshes: what they count."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from bench import poly

from petsc_hdg.options import Options

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def rows(mpirun, tmp_path_factory) -> list[dict]:
    path = tmp_path_factory.mktemp("bench") / "rows.json"
    options = ["-cells", "128", "-repeat", "1", "-only", "x4 triangle P1", "-json", path]
    mpirun(1, "benchmarks/bench", "poly", *options)
    return json.loads(path.read_text())


def test_the_peer_takes_the_matrix_of_the_polytopes(monkeypatch):
    """Its rows, and its blocks, are those that the assembled matrix has."""
    mesh, physics = poly.agglomerated("triangle", 32, 4), poly.reaction_advection_diffusion()
    blocks = poly.PolytopicDG(mesh, physics, Options(backend="poly_gpu", degree=1)).blocks
    monkeypatch.setattr(poly, "product_seconds", lambda csr, bsr, block, *more: (csr(np), bsr(), block))
    op = SimpleNamespace(assembly=SimpleNamespace(blocks_of=blocks), arrays=None)
    (start, columns), (first, others), block = poly.cusparse_seconds(op, 1)
    assert block == 3 and len(columns) == start[-1] == blocks.row_starts[-1] == 9 * len(others)
    for row in range(len(start) - 1):
        expected = others[first[row // 3] : first[row // 3 + 1], None] * 3 + np.arange(3)
        assert np.array_equal(columns[start[row] : start[row + 1]], expected.ravel())


@pytest.fixture(scope="module")
def dong(mpirun, tmp_path_factory):
    """Rows of first degree of the script of the paper's meshes."""
    folder = tmp_path_factory.mktemp("dong")
    mpirun(1, "benchmarks/papers/dong.py", "-only", "p 1, double", "-repeat", "1", "-results", folder)
    return json.loads((folder / "dong.json").read_text())


def test_rows_of_every_approach(rows):
    expected = []
    for approach in poly.APPROACHES:
        titles = [*poly.PARTS, *(poly.PRODUCTS if approach == "2" else ())]
        expected += [f"poly {t}, {approach}, x4" for t in titles]
    assert [r["kernel"] for r in rows] == expected
    assert len({r["peak_gflops_same_run"] for r in rows}) == 1 and rows[0]["peak_gflops_same_run"] > 0.1


def test_rows_count_what_is_compulsory(rows):
    """Triangles of degree 1: three functions of each of 32 polytopes."""
    of = {r["kernel"]: r for r in rows}
    for r in rows:
        assert (r["scheme"], r["cells"], r["polytopes"], r["dofs"]) == ("poly_gpu", 128, 32, 96)
        fraction = r["flops"] / r["seconds_median"] / r["peak_gflops_same_run"] / 1e9
        assert r["fraction_of_peak"] == pytest.approx(fraction) and r["seconds_median"] > 0
    indices, element, facet = (of[f"poly {part}, 2, x4"] for part in ("indices", "element kernel", "facet kernel"))
    assert indices["values"] % 9 == 0 and indices["bytes_compulsory"] == 8 * indices["values"]
    assert of["poly AIJ product, 2, x4"]["flops"] == 2 * indices["values"]
    assert element["flops"] % (128 * 2 * 3 * 9) == 0 and facet["flops"] > 0
    assert of["poly fill, 1, x4"]["flops"] == element["flops"] + facet["flops"]
    assert of["poly product, 2, x4"]["peer"] == {}  # cuSPARSE needs an NVIDIA GPU
    total = of["poly total, 1, x4"]["seconds_median"]
    assert total == of["poly indices, 1, x4"]["seconds_median"] + of["poly fill, 1, x4"]["seconds_median"]


def test_meshes_have_polytopes_of_so_many_cells():
    for factor in poly.FACTORS:
        mesh = poly.agglomerated("triangle", 100, factor)
        count = mesh.num_cells if mesh.polytopes is None else mesh.polytopes.count
        assert mesh.num_cells >= 98 and count == round(mesh.num_cells / factor) >= poly.FEWEST
    every = {cell: {*poly.NEIGHBOURS[cell]} for cell, _ in poly.GPU_CASES}
    assert every == dict.fromkeys(("triangle", "tetrahedron"), {*poly.FACTORS})


def test_the_papers_meshes(dong):
    """Each triangle of mesh 3 has a block of nine values for itself, and one for each neighbour."""
    firsts = [(r["mesh"], r["approach"], r["polytopes"]) for r in dong[:: len(poly.PARTS) + 1]]  # the boundary, too
    meshes = [(1, 83), (2, 1260), (3, 5000)]
    assert firsts == [(mesh, approach, count) for approach in "21" for mesh, count in meshes]
    fill = next(r for r in dong if (r["mesh"], r["approach"], r["kernel"]) == (3, "2", "fill"))
    assert fill["values"] == 9 * (5000 + 3 * 5000 - 4 * 50)
    for r in dong:
        assert r["cells"] == 5000 and 0 < r["share_of_indices"] < 1
