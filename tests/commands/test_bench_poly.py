"""Rows of `bench poly`, and of the paper's three meshes: what they count."""

from __future__ import annotations

import json

import pytest

from petsc_hdg.commands.bench import poly


@pytest.fixture(scope="module")
def rows(mpirun, tmp_path_factory) -> list[dict]:
    path = tmp_path_factory.mktemp("bench") / "rows.json"
    options = ["-cells", "128", "-repeat", "1", "-only", "triangle P1", "-json", path]
    mpirun(1, "-m", "petsc_hdg", "bench", "poly", *options)
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def dong(mpirun, tmp_path_factory):
    """What benchmarks/dong.py says, and its rows."""
    path = tmp_path_factory.mktemp("dong") / "rows.json"
    options = ["-scale", "0.001", "-degrees", "1", "-repeat", "1", "-precisions", "double", "-json", path]
    return mpirun(1, "benchmarks/dong.py", *options).stdout, json.loads(path.read_text())


def test_rows_of_every_approach_and_factor(rows):
    expected = ["peak, fused multiply-add"]
    for factor in poly.FACTORS:
        for approach in poly.APPROACHES:
            titles = [*poly.PARTS, *(poly.PRODUCTS if approach == "2" else ())]
            expected += [f"poly {t}, {approach}, x{factor}" for t in titles]
    assert [r["kernel"] for r in rows] == expected
    assert 0.1 < rows[0]["gflops"] == rows[0]["peak_gflops_same_run"]


def test_rows_count_what_is_compulsory(rows):
    """Triangles of degree 1: three functions each; a matrix has a block for each, and two for each inner facet."""
    of = {r["kernel"]: r for r in rows[1:]}
    for r in rows[1:]:
        cells, count = {1: (128, 128), 4: (128, 32), 60: (242, 4)}[r["factor"]]
        assert (r["scheme"], r["cells"], r["polytopes"], r["dofs"]) == ("poly_gpu", cells, count, 3 * count)
        assert r["seconds_median"] > 0
        fraction = r["flops"] / r["seconds_median"] / r["peak_gflops_same_run"] / 1e9
        assert r["fraction_of_peak"] == pytest.approx(fraction)
    inner = (3 * 128 - 4 * 8) // 2
    one = of["poly indices, 2, x1"]
    assert one["values"] == 9 * (128 + 2 * inner) and one["bytes_compulsory"] == 8 * one["values"]
    assert of["poly AIJ product, 2, x1"]["flops"] == 2 * one["values"]
    element, facet = of["poly element kernel, 2, x1"], of["poly facet kernel, 2, x1"]
    assert element["flops"] % (128 * 2 * 3 * 9) == 0 and facet["flops"] > 0
    assert of["poly fill, 1, x1"]["flops"] == element["flops"] + facet["flops"]
    total = of["poly total, 1, x4"]["seconds_median"]
    assert total == of["poly indices, 1, x4"]["seconds_median"] + of["poly fill, 1, x4"]["seconds_median"]


def test_the_papers_meshes(dong):
    said, rows = dong
    counts = [(r["mesh"], r["polytopes"]) for r in rows[:: len(poly.PARTS)]]
    assert counts == [(1, 8), (1, 8), (2, 126), (2, 126), (3, 512), (3, 512)]
    assert [r["approach"] for r in rows[:: len(poly.PARTS)]] == ["1", "2"] * 3
    assert {r["cells"] for r in rows} == {512}
    for r in rows:
        assert 0 < r["share_of_indices"] < 1
    assert said.count("indices as a share") == 3 and "paper's are not in our copy" in said
