"""`bench krylov`: rows of ours beside PETSc's, at the same norms."""

from __future__ import annotations

import json

import pytest
from bench import krylov
from bench.krylov import COLUMNS

pytestmark = pytest.mark.full


def test_rows(mpirun, tmp_path):
    path = tmp_path / "rows.json"
    options = ("-schemes", "sipg", "hdg", "-vecs", "standard", "-unknowns", "3000", "-iterations", "8", "-json", path)
    said = mpirun(1, "benchmarks/bench", "krylov", *options).stdout
    assert all(name in said for name in COLUMNS)
    rows = json.loads(path.read_text())
    assert [(row["operator"].split()[0], row["ksp"]) for row in rows] == [
        (scheme, ksp) for scheme in ("sipg", "hdg") for ksp in ("cg", "petsc_hdg.CG")
    ]
    assert all(row["norm_difference_to_petsc"] < 1e-10 for row in rows)
    assert all(row["seconds_iteration"] > 0 and row["dofs"] > 1000 for row in rows)


def test_iterations_that_the_host_can_bear():
    assert krylov._affordable(60, "CG", "standard", 10**6) == krylov._affordable(60, "CG", "viennacl", 10**8) == 60
    assert krylov._affordable(60, "CG", "standard", 10**8) == 60 * krylov.LARGE_TIMES
    assert krylov._affordable(60, "cg", "standard", 10**6) == 60
    assert krylov._affordable(60, "cg", "standard", 10**8) == krylov.SHORT + 2
