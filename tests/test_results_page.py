"""The page of results is that of the files, each of which a page of the documentation cites."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import results_page  # noqa: E402


def test_page_is_up_to_date():
    written = results_page.PAGE.read_text(encoding="utf-8")
    assert written == results_page.page(), "call 'python benchmarks/results_page.py'"


def test_every_file_is_cited():
    assert sorted(results_page.citations()) == sorted(path.stem for path in results_page.RESULTS.glob("*.json"))


def test_rows_of_a_bench_have_a_column_per_degree():
    case = {"kernel": "k", "cell": "triangle", "dofs": 9, "seconds_median": 2.0, "peer": {"cublas": 3.0}}
    rows = [case | {"degree": p, "dof_per_s": p * 1e9, "fraction_of_copy": 0.25} for p in (1, 10, 2)]
    (made,) = results_page.tables("", [*rows, rows[0] | {"kernel": "other", "peer": {}}])
    assert made.splitlines() == [
        "cell triangle.",
        "",
        "| kernel | p = 1 | p = 2 | p = 10 |",
        "| --- | --- | --- | --- |",
        "| k | 1 (0.25); 1.5 × cublas | 2 (0.25); 1.5 × cublas | 10 (0.25); 1.5 × cublas |",
        "| other | 1 (0.25) |  |  |",
    ]
    same_degree = [rows[0], rows[0] | {"dofs": 18}]
    assert results_page.tables("", same_degree)[0].count("1 (0.25)") == 2  # none hides another
