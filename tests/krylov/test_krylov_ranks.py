"""Krylov methods on several ranks, some without cells: iterates of PETSc's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run_krylov.py")
CASES = {"sipg_gpu", "hdg_gpu", "cg_gpu", "pieces", "two cells", "null space", "staged", "polynomial"}
METHODS = {"CG": "cg", "BiCGStab": "bcgs", "GMRES": "gmres", "FGMRES": "fgmres", "Chebyshev": "chebyshev"}


@pytest.fixture(scope="module")
def results(mpirun):
    """{method: {case: what run_krylov.py says}}"""
    return json.loads(mpirun(3, RUN, *(f"{ours}:{theirs}" for ours, theirs in METHODS.items())).stdout.splitlines()[-1])


@pytest.mark.parametrize("method", METHODS)
def test_iterates(results, method):
    found = results[method]
    assert set(found) == CASES
    for case, (iterations, reason, wanted, their_reason, early, solution) in found.items():
        assert (iterations, reason) == (wanted, their_reason) and reason > 0, case
        assert iterations > 2, case
        assert early < 1e-9 and solution < 1e-4, (case, early, solution)
