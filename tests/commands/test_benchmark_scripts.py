"""The scripts of the papers' tables run, and their rows agree with what the papers print."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(scope="module")
def king(mpirun, tmp_path_factory):
    """Rows of two small meshes, and what comparing them with themselves says."""
    path = tmp_path_factory.mktemp("king") / "rows.json"
    mpirun(1, "benchmarks/king.py", "-meshes", "20,40", "-orders", "1", "-json", path)
    return json.loads(path.read_text()), mpirun(1, "benchmarks/king.py", "-compare", f"{path},{path}").stdout


def test_king_rows(king):
    data, compared = king
    assert data["solver"]["ksp_type"] == "cg"
    small, large = data["rows"]
    assert (small["n"], large["n"], large["unknowns"]) == (20, 40, 2 * (3 * 40**2 - 2 * 40))
    assert large["Linf"] == pytest.approx(1.594e-2, rel=1e-3)
    assert large["L2"] == pytest.approx(3.844e-3, rel=1e-3)
    for row in data["rows"]:
        assert row["total_seconds"] == pytest.approx(sum(row["seconds"].values()))
        assert all(seconds > 0 for seconds in row["seconds"].values()) and row["cg_local_matrices_seconds"] > 0
    assert 0.6 < sum(large["bytes"].values()) / 2727e3 < 1  # kB of the paper's table 3
    assert compared.count("speed-up 1.0") == 2 and "(paper 6.2)" in compared


def test_roca_rows(mpirun, tmp_path):
    path = tmp_path / "rows.json"
    options = ["-degrees", "1", "-cells", "2000", "-repeat", "1", "-json", path]
    said = mpirun(1, "benchmarks/roca.py", *options).stdout
    small, large = json.loads(path.read_text())
    assert not small["large"] and large["large"] and "(3743188)" in said
    assert small["unknowns"] == 8 * 11783
    assert small["csr_nnz"] == pytest.approx(3743188, rel=2e-3) and small["dbf_nnz"] == 5 * 8**2 * 11783
    assert small["csr_bytes"] / 2**20 == pytest.approx(44.63, rel=2e-3)
    assert small["dbf_bytes"] / 2**20 < 33.29
