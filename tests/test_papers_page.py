"""The page of the papers is that of its files, each of whose tables says its scope; and the scripts' small parts."""

from __future__ import annotations

import json

import paper_tables
import papers_page
import pytest
from paper_tables import NONE, Results, Table, pick

SCRIPTS = sorted(papers_page.PAPERS)
# Titles of the papers' tables and figures, by script
KNOWN = {
    "dong": [f"Table {k}:" for k in range(1, 7)] + ["Figures 4, 5, 7, 8 and 10:"],
    "gorlani": [f"4.{k}" for k in (1, 3, 5, *range(6, 12), *range(14, 22))],
    "king": [f"Table {k}:" for k in range(1, 8)] + ["Figures 5 to 7:", "Section 4.2:"],
    "knepley": ["Table 2:", "Figure 4:", "Figure 5:", "Equations 3 to 9:"],
    "roca": ["Table 1:", "Table 2:", "Table 3:", "Figures 2 to 4:"],
}


def script(name: str):
    return papers_page.import_module(name)


def test_page_is_up_to_date():
    written = papers_page.PAGE.read_text(encoding="utf-8")
    assert written == papers_page.page(), "call 'python benchmarks/papers_page.py'"


def test_each_script_has_rows_of_make_papers():
    assert {*SCRIPTS} == {*KNOWN}
    for name in SCRIPTS:
        rows = json.loads((paper_tables.RESULTS / "papers" / f"{name}.json").read_text(encoding="utf-8"))
        assert rows and all("failed" not in row and row["scale"] == "small" for row in rows), name


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_table_of_the_paper_says_its_scope(name):
    tables = script(name).tables()
    assert [text for text in KNOWN[name] if not any(text in t.title for t in tables)] == []
    for table in tables:
        assert table.note.startswith("Scope: ") and table.note.endswith("."), table.title
        assert {len(row) for row in table.rows} <= {len(table.scope)}, table.title


def test_a_table_leaves_out_what_has_no_figure():
    table = Table(
        "T", {"k": "", "paper": "then", "ours": "now", "none": ""}, [[1, 2.0, 3e-5, NONE], [2, NONE, NONE, NONE]], "N."
    )
    assert table.markdown().splitlines() == [
        "### T",
        "",
        "| k | paper | ours |",
        "| --- | --- | --- |",
        "|  | *then* | *now* |",
        "| 1 | 2 | 3.000e-05 |",
        "",
        "N.",
    ]


def test_new_rows_come_before_earlier_ones(tmp_path):
    (tmp_path / "papers_h100").mkdir()
    rows = [{"table": "t", "n": 1, "value": 1}, {"table": "t", "n": 2, "failed": "no"}]
    (tmp_path / "papers_h100" / "p.json").write_text(json.dumps(rows))
    (tmp_path / "old.json").write_text(json.dumps({"petsc": "3", "rows": [{"n": 1, "value": 2}, {"n": 2, "value": 3}]}))
    found = Results("p", {"t": "old"}, tmp_path)
    assert [pick(found.h100, table="t", n=n)["value"] for n in (1, 2)] == [1, 3]
    assert found.pocl == [] and pick(found.h100, n=3) == {}


# King: what makes the printed errors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 3])
def test_kings_printed_errors_are_those_of_nektars_points(order):
    """Six digits by its rule for load and norm; by an exact one L2 is 2.6 to 2.8 % lower."""
    from helmholtz_numpy import errors

    paper, found = pick(script("king").PAPER["table1_errors_40x40"], P=order), errors(40, order)
    assert found["nektar_L2"] == pytest.approx(paper["L2"], rel=5e-6)
    assert found["nektar_Linf"] == pytest.approx(paper["Linf"], rel=1e-5)
    assert 0.026 < 1 - found["L2"] / paper["L2"] < 0.028


# Knepley: the model --------------------------------------------------------------------------------------------------


def test_the_model_of_first_order_poisson_in_2d():
    """One point, three functions: two products with 3 gradients of 2 × 2 · 3 flops, and 6 at the point."""
    model = script("knepley").Sizes(dim=2, basis=3)
    assert (model.flops, model.traffic) == (3 * 12 + 6 + 3 * (12 + 2), 4 * (5 + 6))
    assert model.balance == pytest.approx(84 / 44)
    assert model.block_cells == 3 and model.reals_per_cell == 5 + 3 + 3
    assert model.shared_bytes(32) == 4 * (32 * 3 * 11 + 9)
    only = script("knepley").Sizes(dim=2, basis=3, has_values=False)
    assert only.reals_per_cell == 10 and only.shared_bytes(32) == 4 * (32 * 3 * 10 + 6)


def test_the_model_takes_the_papers_bound_for_a_bandwidth_the_device_has():
    knepley = script("knepley")
    model, bound = knepley.sizes("laplace", 2, "single"), knepley.PAPER["bandwidth_bound_2d_single_gflops"]
    device = pick(knepley.PAPER["table1_hardware"], device="GTX 580")
    assert 0.75 < bound / model.balance / device["GBs"] < 0.95
    assert model.gflops(bound / model.balance) == pytest.approx(bound)
    assert knepley.sizes("laplace", 2, "double").balance == pytest.approx(model.balance / 2)
    assert model.gflops(1e9, peak=device["gflops_single"]) == device["gflops_single"]


def test_coefficients_lower_the_balance_and_fill_blocks():
    knepley = script("knepley")
    balance = [knepley.sizes("laplace", 3, "single", c).balance for c in knepley.COEFFICIENTS]
    assert balance == sorted(balance, reverse=True) and len({*balance}) == 3
    vector = knepley.sizes("elasticity", 2, "single")
    assert vector.block_cells == 6 and vector.traffic == 4 * (5 + 12)
