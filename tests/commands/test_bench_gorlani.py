"""The script of Gorlani's tables 4.15 to 4.17 runs, and its rows say what was measured."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gorlani.py"
PARTS = ["congruent", "stored", "volume", "flux", "fused", "affine"]


@pytest.fixture(scope="module")
def gorlani():
    spec = importlib.util.spec_from_file_location("gorlani", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def run(mpirun, tmp_path_factory):
    """What the script says, and its rows."""
    path = tmp_path_factory.mktemp("gorlani") / "rows.json"
    options = ["-meshes", "8,16", "-p", "1", "-n", "16", "-tile", "8", "-degrees", "1,2", "-repeat", "1"]
    said = mpirun(1, SCRIPT, *options, "-json", path).stdout
    rows = json.loads(path.read_text())
    again = mpirun(1, SCRIPT, *options, "-json", path, "-resume").stdout
    assert "-resume: kept of" in again and ": 4 rows" in again and json.loads(path.read_text()) == rows
    other = mpirun(1, SCRIPT, *options[:-4], "-degrees", "1", "-tile", "16", "-json", path, "-resume", check=False)
    assert "have arguments -tile 8, not -tile 16; give another file" in other.stderr
    return said, {name: [r for r in rows if r["name"].startswith(name)] for name in ("table4_15", "table4_16")}


def test_rows(run, gorlani):
    said, tables = run
    assert list(gorlani.PARTS) == PARTS
    assert [(r["n"], r["p"]) for r in tables["table4_15"]] == [(8, 1), (16, 1)]
    assert [(r["n"], r["p"]) for r in tables["table4_16"]] == [(16, 1), (16, 2)]
    for row in (*tables["table4_15"], *tables["table4_16"]):
        assert list(row["seconds"]) == PARTS
        assert row["unknowns"] == (row["n"] * (row["p"] + 1)) ** 2
        reals = {"flux": 3, "stored": 2 + (row["p"] + 1) ** 2}
        for name, seconds in row["seconds"].items():
            rate = 8 * reals.get(name, 2) * row["unknowns"] / seconds / 1e9
            assert row["GBs"][name] == pytest.approx(rate) and seconds > 0
            assert row["fraction_of_copy"][name] == pytest.approx(rate / row["copy_GBs"])
    assert said.count("ζ") >= 2 * len(PARTS) and "of copy (-)" in said


def test_the_papers_figures_stand_beside_equal_problems_alone(gorlani):
    rows = {"seconds": {"volume": 1e-3, "flux": 1e-3}, "device": ""}
    assert "volume 1.0000 (3.849379)  flux 1.0000 (2.433197)" in gorlani.line({"n": 512, "p": 4} | rows, None, "p")
    assert "volume 1.0000 (3.844745)  flux 1.0000 (2.429092)" in gorlani.line({"n": 512, "p": 4} | rows, None, "n")
    assert "volume 1.0000 (-)" in gorlani.line({"n": 256, "p": 4} | rows, None, "p")
    assert "volume 1.0000 (-)" in gorlani.line({"n": 512, "p": 8} | rows, None, "n")
    before = {"n": 256, "p": 4, "seconds": {"volume": 0.25e-3}}
    assert "volume 1.0000 (3.844745) ζ 1.00  flux" in gorlani.line({"n": 512, "p": 4} | rows, before, "n")


def test_copies_must_make_up_the_mesh(gorlani):
    with pytest.raises(ValueError, match="12 × 12 squares are not copies of 8 × 8; give another -tile"):
        gorlani.Tiles(8).of(12)
