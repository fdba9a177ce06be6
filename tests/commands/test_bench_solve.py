"""`bench solve`: it reaches the residual asked for, and its parts add up."""

from __future__ import annotations

import json

import pytest
from bench import solve

pytestmark = pytest.mark.full

OPTIONS = ["-unknowns", "600", "-degree", "1", "-schemes", "hdg_gpu", "sipg_gpu"]


@pytest.fixture(scope="module")
def rows(mpirun, tmp_path_factory) -> list[dict]:
    path = tmp_path_factory.mktemp("bench") / "rows.json"
    done = mpirun(1, "benchmarks/bench", "solve", *OPTIONS, "-json", path)
    assert all(name in done.stdout for name in solve.COLUMNS)
    return json.loads(path.read_text())


def test_solves_end_at_the_tolerance(rows):
    assert [r["scheme"] for r in rows] == ["hdg_gpu", "sipg_gpu"]
    for row in rows:
        assert 0 < row["true_residual"] < 1.1e-8 and row["rtol"] == 1e-8 and row["iterations"] > 2
        assert row["dofs"] == pytest.approx(600, rel=0.2) and row["degree"] == 1
    assert [r["pc_type"] for r in rows] == ["mg", "mg"] and {r["ksp_type"] for r in rows} == {"petsc_hdg.CG"}


def test_times_add_up(rows):
    for row in rows:
        parts = row["seconds"]
        assert row["dof_per_s"] == pytest.approx(row["dofs"] / row["seconds_median"])
        assert 0 < parts["linearize"] + parts["pc_setup"] < row["first_seconds"]
        assert parts["operator"] == pytest.approx(row["iterations"] * row["product_seconds"])
        whole = sum(parts[name] for name in ("operator", "preconditioner", "copies", "vectors"))
        assert parts["copies"] > 0
        assert whole == pytest.approx(row["seconds_median"]) or parts["vectors"] == 0
        vector = 8 * row["dofs"]  # once there, once back, and what sums and coarse levels need
        assert vector <= row["bytes_to_device"] < 40 * vector and row["device_memory_most"] > vector


def test_the_users_options_win(mpirun, tmp_path):
    path = tmp_path / "rows.json"
    options = ["-unknowns", "200", "-schemes", "cg_gpu", "-degree", "1", "-pc_type", "none", "-ksp_rtol", "1e-4"]
    mpirun(1, "benchmarks/bench", "solve", *options, "-json", path)
    (row,) = json.loads(path.read_text())
    assert row["pc_type"] == "none" and 1e-8 < row["true_residual"] < 1e-4


@pytest.mark.parametrize("scheme", solve.CASES)
def test_sizes_of_boxes(scheme):
    for cell in solve.SPLIT:
        faces = solve.faces_for(scheme, cell, 2, 1e6)
        boxes = faces[0] ** len(faces)
        found = boxes * solve.SPLIT[cell] * solve.unknowns_of_cell(scheme, cell, 2)
        assert found == pytest.approx(1e6, rel=0.1)


def test_unknown_schemes_are_named(mpirun):
    done = mpirun(1, "benchmarks/bench", "solve", "-schemes", "spectral", check=False)
    assert done.returncode == 2 and "spectral" in done.stderr
