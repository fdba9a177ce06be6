"""The scripts of the papers' tables run, and their rows agree with what the papers print."""

from __future__ import annotations

import json
import re

import pytest

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def king(mpirun, tmp_path_factory):
    """Rows of two small meshes, what was printed of them, and what comparing them with themselves says."""
    path = tmp_path_factory.mktemp("king") / "rows.json"
    said = mpirun(1, "benchmarks/king.py", "-meshes", "20,40", "-orders", "1", "-json", path).stdout
    compared = mpirun(1, "benchmarks/king.py", "-compare", f"{path},{path}").stdout
    return json.loads(path.read_text()), said, compared


def test_king_rows(king):
    data, said, compared = king
    sums = re.findall(r"  stages [\d.]+ \((.*?)\)", said)
    assert sums == ["102.0", "167.0"]  # ms of the paper's tables 4 and 5, which have the same stages: B1 to B6
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
