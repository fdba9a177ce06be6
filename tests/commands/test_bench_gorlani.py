"""The script of Gorlani's tables runs, and its rows say what was measured."""

from __future__ import annotations

import json

import gorlani
import pytest
from paper_tables import Results

pytestmark = pytest.mark.full

PARTS = ["volume", "flux", "fused", "affine"]


@pytest.fixture(scope="module")
def rows(mpirun, tmp_path_factory):
    """Rows of times on 16 × 16 squares and of rules, whose run goes on without measuring them again."""
    folder = tmp_path_factory.mktemp("gorlani")
    path = folder / "gorlani.json"
    command = ["benchmarks/papers/gorlani.py", "-results", folder, "-repeat", "1"]
    mpirun(1, *command, "-only", "times n 16")
    first = json.loads(path.read_text())
    again = mpirun(1, *command, "-only", "times n 16", "-resume").stdout
    assert "-resume: kept of" in again and ": 1 row" in again and json.loads(path.read_text()) == first
    mpirun(1, *command, "-only", "points", "-resume")
    return json.loads(path.read_text())


def test_rows(rows):
    assert list(gorlani.PARTS) == PARTS
    row = rows[0]
    assert (row["table"], row["n"], row["p"], row["unknowns"]) == ("times", 16, 4, (16 * 5) ** 2)
    assert list(row["seconds"]) == PARTS
    reals = {"flux": 3}
    for name, seconds in row["seconds"].items():
        rate = 8 * reals.get(name, 2) * row["unknowns"] / seconds / 1e9
        assert row["GBs"][name] == pytest.approx(rate) and seconds > 0
        assert row["fraction_of_copy"][name] == pytest.approx(rate / row["copy_GBs"])


def test_rules_have_the_printed_errors(rows):
    rules = [row for row in rows if row["table"] == "quadrature"]
    assert [row["points"] for row in rules] == list(range(2, 9))
    for row in rules:
        assert row["largest_where_exact"] < 1e-14
        # Errors of 7 and 8 points begin at 1e-7 of values up to 2e3: their last digits are rounding.
        assert row["largest_difference"] < (1e-3 if row["points"] > 6 else 5e-6)


def rows_beside(tmp_path, key: str, cases: list[tuple]) -> dict:
    """Lines by their key of a table of times with rows (n, p, seconds of volume) of an H100."""
    (tmp_path / "papers_h100").mkdir(exist_ok=True)
    made = [{"table": "times", "n": n, "p": p, "seconds": {"volume": s}, "device": ""} for n, p, s in cases]
    (tmp_path / "papers_h100" / "gorlani.json").write_text(json.dumps(made))
    table = gorlani.times_table(Results("gorlani", {}, tmp_path), key)
    place = list(table.scope).index("volume, H100")
    return {row[0]: (row[3], row[place]) for row in table.rows}


def test_the_thesis_figures_stand_beside_equal_problems_alone(tmp_path):
    found = rows_beside(tmp_path, "p", [(512, 4, 1e-3), (256, 8, 1e-3)])
    assert found[4] == (3.849379, "1") and found[8] == (34.5566, "")
    found = rows_beside(tmp_path, "n", [(256, 4, 0.25e-3), (512, 4, 1e-3), (1024, 8, 1e-3)])
    assert found[512] == (3.844745, "1, 1.00") and found[1024] == (15.35866, "")


def test_copies_must_make_up_the_mesh():
    with pytest.raises(ValueError, match="12 × 12 squares are not copies of 8 × 8; give another tile"):
        gorlani.Tiles(8).of(12)
