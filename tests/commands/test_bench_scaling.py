"""`bench scaling`: equal blocks, complete rows, a halo that is counted, a model that finds its own numbers again."""

from __future__ import annotations

import json
from math import log2, prod

import numpy as np
import pytest
from bench import scaling_model, scaling_view
from bench.blocks import COARSE, Blocks, dimension, parts_of
from bench.scaling_model import Links, Model

from petsc_hdg.errors import OptionError

RUN = ["-schemes", "sipg_gpu", "-cell", "quadrilateral", "-degree", "2", "-unknowns", "600", "-repeat", "1"]


@pytest.mark.parametrize(
    "ranks, dim, parts",
    [(1, 2, (1, 1)), (4, 2, (2, 2)), (6, 2, (3, 2)), (7, 2, (7, 1)), (8, 3, (2, 2, 2)), (12, 3, (3, 2, 2))],
)
def test_parts(ranks, dim, parts):
    assert parts_of(ranks, dim) == parts


@pytest.mark.parametrize("cell", ["quadrilateral", "hexahedron"])
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_blocks_are_equal(cell, ranks):
    weak, strong = Blocks.weak(cell, ranks, 5000), Blocks.strong(cell, ranks, 5000, 8)
    for blocks in (weak, strong):
        assert prod(blocks.parts) == ranks and len(blocks.faces) == dimension(cell)
        counts = np.bincount(blocks.owners())
        assert len(counts) == ranks and (counts == counts[0]).all()
    boxes = prod(weak.faces) * 2 ** (weak.refinements * len(weak.faces))
    assert boxes == pytest.approx(5000 * ranks, rel=0.35) and weak.faces[0] >= COARSE * weak.parts[0]
    assert strong.faces == Blocks.strong(cell, 1, 5000, 8).faces


@pytest.fixture(scope="module")
def rows(mpirun, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scaling")
    done = mpirun(2, "benchmarks/bench", "scaling", *RUN, "-json", folder / "r.json", "-png", folder / "r.png")
    assert all(name in done.stdout for name in scaling_view.COLUMNS)
    assert (folder / "r.png").read_bytes().startswith(b"\x89PNG")
    return json.loads((folder / "r.json").read_text())


def test_rows(rows):
    cases, links = scaling_model.split(rows)
    assert [(r["mode"], r["ranks"]) for r in cases] == [("weak", 1), ("weak", 2), ("strong", 1), ("strong", 2)]
    assert [r["ranks"] for r in links] == [1, 2] and not links[0]["halo"] and len(links[1]["halo"]) == 3
    alone, two, whole, half = cases
    assert two["dofs"] == 2 * alone["dofs"] and half["dofs"] == whole["dofs"]
    for r in cases:
        assert r["dofs_rank"] == [r["dofs"] // r["ranks"]] * 2, "blocks differ"
        assert r["dofs"] == 9 * r["cells"] and r["nodes"] == 1 and r["scheme"] == "sipg_gpu"
        assert min(r[f"{what}_seconds"] for what in ("product", "iteration", "single_reduction")) > 1e-6
        assert (r["halo_bytes"] > 0) == (r["ranks"] > 1) == (r["neighbours"] == 1) == (r["halo_seconds_alone"] > 0)
        assert r["window_bytes"] + r["message_bytes"] == r["halo_bytes"]


def test_the_halo_is_that_of_a_side(rows):
    """A rank sends no more than the cells, and no less than the facets, of the side between two blocks."""
    (two,) = (r for r in rows if r["kernel"] == "scaling" and (r["mode"], r["ranks"]) == ("weak", 2))
    side = round((two["cells"] / 2) ** 0.5)
    assert 8 * 3 * side <= two["halo_bytes"] <= 8 * 9 * side


def test_files_are_read_again(rows, mpirun, tmp_path):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    said = mpirun(1, "benchmarks/bench", "scaling", "-read", path).stdout
    assert said.count("predicted efficiency") == 2 and "1024: " in said and said.count("sipg_gpu  quadrilateral") == 4


@pytest.mark.parametrize("text", ["{}", "[1]", "nothing", "[]"])
def test_files_without_rows(text, tmp_path):
    path = tmp_path / "rows.json"
    path.write_text(text)
    with pytest.raises(OptionError, match="rows|JSON|cases"):
        scaling_view.report(scaling_view.rows_of([str(path)]), "", (5e-6, 2.5e10))


def test_more_ranks_than_there_are(mpirun):
    done = mpirun(1, "benchmarks/bench", "scaling", "-ranks", "9", check=False)
    assert done.returncode == 1 and "numbers from 1 to 1" in done.stderr


# The model ---------------------------------------------------------------------------------------------------------

PRODUCT, VECTORS = ((1e-5, 8e-11), (2e-5, 1e-10)), ((4e-5, 2e-10), (7e-5, 2.2e-10))  # on one rank, on several
TRUE = Model(2, Links(3e-5, 4e10, 4e-6, 1e-6), PRODUCT, VECTORS, 50.0, 1.5e-5, 0.4)


def made_rows(sizes=(1e4, 1e6, 4e6), ranks=(1, 2, 4, 8)) -> list[dict]:
    """Rows as TRUE would measure them."""
    links = [
        {
            **{"kernel": "links", "ranks": k, "device": "D", "allreduce_seconds": TRUE.links.total(k)},
            "halo": [(m, TRUE.links.halo(m)) for m in (1e4, 1e5, 1e6)] if k > 1 else [],
        }
        for k in ranks
    ]
    return links + [made_row(n, k) for n in sizes for k in ranks]


def made_row(n: float, k: int) -> dict:
    product, iteration = TRUE.seconds(n, k)
    nbytes = TRUE.halo_bytes(n, k)
    return {
        **{"kernel": "scaling", "mode": "weak", "scheme": "sipg_gpu", "cell": "quadrilateral", "degree": 4},
        **{"device": "D", "ranks": k, "nodes": 1, "asked": n, "dofs": n * k, "dofs_rank": [n, n], "halo_bytes": nbytes},
        **{"product_seconds": product, "iteration_seconds": iteration, "setup_seconds": {}},
        "product_seconds_without_halo": PRODUCT[k > 1][0] + PRODUCT[k > 1][1] * n,
        "halo_seconds_alone": TRUE.links.halo(nbytes) if k > 1 else 0.0,
        "neighbour_blocks": sum(min(2, p - 1) for p in parts_of(k, 2)),
    }


def test_the_model_finds_its_numbers():
    (found,) = scaling_model.models(made_rows()).values()
    for got, expected in [
        (found.links.latency, 3e-5), (found.links.bandwidth, 4e10), (found.links.sum_doubling, 1e-6),
        (found.surface, 50.0), (found.product[0], PRODUCT[0]), (found.product[1], PRODUCT[1]), (found.least, 1.5e-5),
        (found.vectors[0], VECTORS[0]), (found.vectors[1], VECTORS[1]), (found.hidden, 0.4),
    ]:  # fmt: skip
        assert got == pytest.approx(expected, rel=1e-6)


def test_predictions_are_checked_on_the_most_ranks():
    found = scaling_model.checked(made_rows())
    assert len(found) == 3 and {c["ranks"] for c in found} == {8}
    for c in found:
        for what in ("product", "iteration"):
            assert c[what][0] == pytest.approx(c[what][1], rel=1e-6)


def test_efficiencies():
    rows = scaling_view.compared(made_rows())
    last = rows[-1]
    assert last["product_efficiency"] == pytest.approx(TRUE.efficiency("weak", 4e6, 8)[0])
    assert last["halo_share"] == pytest.approx(1.5e-5 / TRUE.seconds(4e6, 8)[0])
    strong = TRUE.efficiency("strong", 1e6, 4)[1]
    assert strong == pytest.approx(TRUE.seconds(4e6, 1)[1] / (4 * TRUE.seconds(1e6, 4)[1]))


def test_gorlanis_tables():
    """A row of 128 × 128 squares stands beside the thesis': 3.05 ms on 4 GPUs, efficiency 0.87."""
    import gorlani

    rows = [
        r | {"degree": 8, "cells": 128**2 * r["ranks"]} if r["kernel"] == "scaling" else r for r in made_rows((1e6,))
    ]
    weak, *_ = gorlani.scaling_tables([rows])
    four = next(row for row in weak.rows if row[:3] == ["128 × 128", 8, 4])
    assert four[3:5] == [3.04866, pytest.approx(2.65282 / 3.04866)]
    assert four[5] == pytest.approx(1e3 * TRUE.seconds(1e6, 4)[0]) and four[6] == pytest.approx(four[7])
    assert [row[2] for row in weak.rows if row[0] == "128 × 128"] == [1, 2, 4, 8, 16, 64, 256, 1024]


def test_nodes_cost_more():
    """Beyond a node sums take a message for each doubling, halos the network's time."""
    inside, outside = TRUE.seconds(1e4, 16), TRUE.seconds(1e4, 16, per_node=4, network=(1e-3, 1e9))
    nbytes = TRUE.halo_bytes(1e4, 16)
    assert outside[0] - inside[0] == pytest.approx(1e-3 + nbytes / 1e9 - nbytes / 4e10)
    sums = 2 * (TRUE.links.total(4) + 1e-3 * log2(4) - TRUE.links.total(16))
    assert outside[1] - inside[1] == pytest.approx(outside[0] - inside[0] + sums)


def test_a_case_that_fails_does_not_stop_the_others(mpirun, tmp_path):
    """Polytopes of degree 7 are refused on both ranks, weak and strong; what ranks pay for each other is known then."""
    path = tmp_path / "rows.json"
    options = ["-schemes", "poly_gpu", "-cell", "quadrilateral", "-degree", "7", "-unknowns", "600", "-ranks", "2"]
    run = ["benchmarks/bench", "scaling", *options, "-repeat", "1", "-json", path]
    done = mpirun(2, *run, check=False)
    assert done.returncode == 1 and done.stderr.count("failed: a polytope has the degree 7") == 2
    kinds = [(row["name"].split(",")[0], "failed" in row) for row in json.loads(path.read_text())]
    names = ("scaling weak poly_gpu quadrilateral P7", "scaling strong poly_gpu quadrilateral P7")
    assert kinds == [("links", False), *((name, True) for name in names)]
    assert "left: 2 rows, as -seconds 0 are over" in mpirun(2, *run, "-resume", "-seconds", "0").stdout
