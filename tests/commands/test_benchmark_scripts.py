"""The scripts of the papers' tables run, and their rows agree with what the papers print."""

from __future__ import annotations

import json

import pytest
import roca
from paper_tables import pick

from petsc_hdg.device import Device

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def rows_of(mpirun, tmp_path_factory):
    """Rows of a paper's script whose names have a text, and what was printed."""

    def run(paper: str, only: str):
        folder = tmp_path_factory.mktemp(paper)
        said = mpirun(1, f"benchmarks/papers/{paper}.py", "-results", folder, "-only", only, "-repeat", "1").stdout
        return json.loads((folder / f"{paper}.json").read_text()), said

    return run


def test_king_rows(rows_of):
    rows, said = rows_of("king", "pipeline 40 P1")
    (row,) = rows
    assert (row["n"], row["order"], row["unknowns"]) == (40, 1, 2 * (3 * 40**2 - 2 * 40)) and "pipeline  n 40" in said
    assert row["Linf"] == pytest.approx(1.594e-2, rel=1e-3) and row["L2"] == pytest.approx(3.844e-3, rel=1e-3)
    assert row["total_seconds"] == pytest.approx(sum(row["seconds"].values()))
    assert all(seconds > 0 for seconds in row["seconds"].values()) and row["cg_local_matrices_seconds"] > 0
    assert 0.6 < sum(row["bytes"].values()) / 2727e3 < 1  # kB of the paper's table 3
    assert row["flops"] > row["cg_flops"] > 0


def test_king_trace_in_ell_by_atomics(rows_of):
    """The product is that of dense blocks; an entry takes 12 bytes in the place of 8."""
    rows, _ = rows_of("king", "trace 20 P")
    for row in rows:
        assert row["difference"] < 1e-14 and row["ell_bytes"] > 1.3 * row["dbf_bytes"]
        assert set(row["seconds"]) == {"dbf", "ell", "lock_free", "atomic"} and min(row["seconds"].values()) > 0


def test_king_batched_products(rows_of):
    rows, _ = rows_of("king", "gemm P")
    assert [row["size"] for row in rows] == [3, 10, 21] and all(row["gflops"] > 0 for row in rows)


def test_roca_rows(rows_of):
    rows, _ = rows_of("roca", "product p 1")
    small = pick(rows, p=1, large=False)
    assert small["unknowns"] == 8 * 11783
    assert small["csr_nnz"] == pytest.approx(3743188, rel=2e-3) and small["dbf_nnz"] == 5 * 8**2 * 11783
    assert small["csr_bytes"] / 2**20 == pytest.approx(44.63, rel=2e-3)
    assert small["dbf_bytes"] / 2**20 < 33.29


def test_roca_steps_and_peers():
    """The paper's two steps and scipy's matrix give the product of the flow's; all are timed."""
    row = roca.measure(Device.select("any"), 1, 1e9, 2, faces=(6, 5))
    assert row["unknowns"] == 12 * (6 * 5 * 3 + 6 + 5) and row["difference"] < 1e-13
    assert min(row[name] for name in ("seconds", "spread_seconds", "contract_seconds")) > 0
    assert {name.split()[1] for name in row["peer"]} <= {"csr", "bsr"}


@pytest.mark.parametrize("dim, degree, precision", [(2, 3, "single"), (3, 1, "double")])
def test_roca_figures(dim, degree, precision):
    """A matrix of the size that is asked for, of one real and half of it in single precision."""
    row = roca.figure(Device.select("any"), 1, 1e9, dim, degree, precision, 2.0)
    assert row["components"] == dim + 2 and row["seconds"] > 0
    assert 0.5 < row["dbf_bytes"] / (2.0 * 2**20 * roca.REALS[precision] / 8) < 2


def test_roca_takes_a_large_mesh():
    row = roca.measure_large(Device.select("any"), 1, 1e9, 1, cells=2000)
    assert row["large"] and 0 < row["dbf_nnz"] < 5e6 and row["seconds"] > 0


def test_decay_of_eddies_beside_a_fourier_method(mpirun, tmp_path):
    """Two Reynolds numbers; the dissipation at first is 3/4 / Re, on coarse cells less of it."""
    file, picture = tmp_path / "decay.json", tmp_path / "decay.png"
    options = ["-runs", "100:2:2,400:1:2", "-points", "16", "-end", "0.5", "-results", file, "-figure", picture]
    said = mpirun(1, "benchmarks/taylor_green.py", *options, "-snes_rtol", "1e-3").stdout
    curves = json.loads(file.read_text())
    assert [(c["reynolds"], "seconds" in c) for c in curves] == [(r, is_run) for r in (100, 400) for is_run in (0, 1)]
    for curve, least in zip(curves, (0.9999, 0.9, 0.9999, 0.3), strict=True):
        assert least < curve["dissipated"][0] * curve["reynolds"] / 0.75 < 1.0001 and curve["t"][-1] == 0.5
    assert curves[0]["energy"][-1] == pytest.approx(0.12127, abs=1e-5)  # 0.125 less half of 0.00746
    assert "| t, Re 100 | Fourier, 16³ points | degree 2, 2³ cells |" in said and picture.stat().st_size > 5000


def test_knepley_rows(rows_of):
    """Thread transposition takes blocks and batches, and nodal coefficients."""
    rows, _ = rows_of("knepley", "sweep double blocks 16")
    assert [(row["blocks"], row["batches"]) for row in rows] == [(16, 4), (16, 16)]
    nodal, _ = rows_of("knepley", "figure4 2D single transpose κ P1")
    for row in (*rows, *nodal):
        assert row["gflops"] == pytest.approx(84 * row["cells"] / row["seconds"] / 1e9)
        assert row["fraction_of_copy"] > 0 and row["model_gflops"] > 0


def test_all_scripts_share_a_budget(mpirun, tmp_path):
    """In no time nothing is measured."""
    options = ["-budget", "0", "-only-papers", "roca,knepley", "-results", tmp_path]
    done = mpirun(0, "benchmarks/papers/all.py", *options, check=False)
    assert done.returncode == 124 and "all papers:" in done.stdout and list(tmp_path.iterdir()) == []
