"""The commands bench, check and precompile, run as a user runs them."""

from __future__ import annotations

import argparse
import json

import pytest

from petsc_hdg.commands.arguments import own_arguments
from petsc_hdg.discretizations import SCHEMES
from petsc_hdg.options import Options

ROW = set(
    "kernel scheme cell degree components precision device cells dofs dof_kind seconds_median dof_per_s "
    "bytes_compulsory flops copy_GBs_same_run fraction_of_copy gflops peer "
    "peak_gflops_same_run limit_seconds fraction_of_limit name arguments elapsed_seconds".split()
)


@pytest.fixture(scope="module")
def rows(mpirun, tmp_path_factory) -> list[dict]:
    """Rows of the smallest bench of triangles of degree 1."""
    path = tmp_path_factory.mktemp("bench") / "rows.json"
    options = ["-cells", "2000", "-repeat", "1", "-only", "triangle P1", "-json", path]
    mpirun(1, "benchmarks/bench", "cg", *options)
    return json.loads(path.read_text())


def test_bench_rows_are_complete(rows):
    assert [r["kernel"] for r in rows] == [
        *("cg element cell", "cg whole cell", "cg element transpose", "cg whole transpose", "cg whole patch")
    ]
    assert all(set(r) == ROW for r in rows)


def test_bench_counts_compulsory_bytes(rows):
    """The paper's form moves 88 bytes a triangle: geometry (4 + 1), three coefficients in, three out."""
    element, whole = rows[0], rows[1]
    assert element["bytes_compulsory"] == 88 * element["cells"]
    vertices = whole["dofs"]
    assert whole["bytes_compulsory"] == 8 * (2 + 2) * vertices + 12 * whole["cells"]
    for r in rows:
        expected = r["bytes_compulsory"] / (1e9 * r["copy_GBs_same_run"]) / r["seconds_median"]
        assert r["fraction_of_copy"] == pytest.approx(expected)
        assert r["dof_per_s"] == pytest.approx(r["dofs"] / r["seconds_median"])


@pytest.mark.parametrize("only", ["quadrilaterals Q3", "hdg_gpu, tetrahedra P3"])
def test_check_agrees_on_two_ranks(mpirun, only):
    """Cases of each scheme whose kernels compile in seconds; ranks and all cells: test_ranks and its siblings."""
    done = mpirun(2, "-m", "petsc_hdg", "check", "-only", only)
    assert "all agree" in done.stdout and "DIFFERS" not in done.stdout
    assert done.stdout.count("2 ranks: agrees") == (len(SCHEMES) if only.startswith("quad") else 1)


def test_check_of_no_case_says_so(mpirun):
    done = mpirun(2, "-m", "petsc_hdg", "check", "-only", "pentagons", check=False)
    assert done.returncode != 0
    assert done.stderr.count("-only 'pentagons' is in the name of no case; these are cg_gpu, triangles P3") == 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_check_has_every_shape_of_cells(scheme):
    from petsc_hdg.commands import check

    chosen = check._chosen(["-only", scheme])
    assert {(len(faces), simplex) for _, (faces, simplex, _) in chosen.values()} == {
        *((2, True), (2, False), (3, True), (3, False))
    }
    assert check._chosen([]).keys() >= chosen.keys()


def test_check_reports_a_difference(monkeypatch, capsys):
    from petsc_hdg.commands import check

    assert check._report("a case", 1.0e-3, 1.1e-3, check.Options()) == 1
    assert "DIFFERS" in capsys.readouterr().out


@pytest.mark.quick
def test_wrong_calls_say_so(mpirun):
    done = mpirun(1, "-m", "petsc_hdg", "bench", "-spectral", check=False)
    assert done.returncode == 2 and "usage" in done.stderr


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("check", "-onyl", "hdg_gpu"), "-onyl is not an option of petsc-hdg check; known are -h, -only"),
        (("precompile", "-fe_degree", "2"), "precompile compiles what a script solves; give the path of a Python"),
    ],
)
def test_misspelt_options_and_missing_scripts_say_so(mpirun, arguments, said):
    done = mpirun(2, "-m", "petsc_hdg", *arguments, check=False)
    assert done.returncode == 1 and done.stderr.count(said) == 1 and "-once" not in done.stderr


def test_options_of_petsc_go_with_those_of_a_command():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("-only", default="")
    petsc = ["-ksp_type", "cg", "-fe_degree", "2", "-dm_plex_box_faces", "8,8", "-info", "-ksp_rtol", "-1"]
    given, others = own_arguments(parser, ["-only", "a case", *petsc])
    assert given.only == "a case" and others == petsc


def test_check_shows_its_options(mpirun):
    done = mpirun(1, "-m", "petsc_hdg", "check", "-h")
    assert "-only ONLY" in done.stdout and "agree" not in done.stdout


def test_check_gives_element_kernels_to_the_scheme_that_has_them():
    from petsc_hdg.commands import check

    chosen = {scheme: check._plain(Options(kernel="cell"), scheme)["kernel"] for scheme in SCHEMES}
    assert chosen == {"cg_gpu": "cell", "hdg_gpu": "auto", "sipg_gpu": "auto", "poly_gpu": "auto"}


def test_bench_of_no_row_says_so(mpirun):
    done = mpirun(1, "benchmarks/bench", "sipg", "-only", "pentagons", check=False)
    assert done.returncode == 1 and "-only 'pentagons' is in the name of no row; leave it out" in done.stderr


@pytest.mark.quick
def test_bench_times_products(mpirun, tmp_path):
    path = tmp_path / "rows.json"
    options = ["-cells", "100", "-repeat", "1", "-only", "cg_gpu triangle", "-json", path]
    said = mpirun(1, "-m", "petsc_hdg", "bench", *options).stdout
    (row,) = json.loads(path.read_text())
    assert row["unknowns"] == 36 and row["cells"] == 98 and f"{row['of_copy']:.3g}" in said
    assert row["of_copy"] == pytest.approx(16 * 36 / (1e9 * row["copy_GBs"]) / row["product_seconds"])
    done = mpirun(1, "-m", "petsc_hdg", "bench", "-only", "pentagons", check=False)
    assert done.returncode == 1 and "-only 'pentagons' is in the name of no case; these are cg_gpu tri" in done.stderr
