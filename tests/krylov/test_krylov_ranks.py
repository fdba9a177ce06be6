"""Krylov methods on several ranks, some without cells: iterates of PETSc's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run_krylov.py")
CASES = {"sipg_gpu", "hdg_gpu", "cg_gpu", "monitored", "two cells", "null space", "staged", "polynomial"}
OF_CG = {
    "guess",
    "multigrid",
    "one rank does not sum",
    *(f"{n}, {pc}" for n in ("unpreconditioned", "natural") for pc in ("none", "jacobi")),
}
SINGLE = "CG:cg:ksp_cg_single_reduction"
METHODS = ("CG:cg", SINGLE, "BiCGStab:bcgs", "GMRES:gmres", "FGMRES:fgmres", "Chebyshev:chebyshev")


@pytest.fixture(scope="module")
def results(mpirun):
    """{words of METHODS: {case: what run_krylov.py says}}"""
    return json.loads(mpirun(3, RUN, *METHODS).stdout.splitlines()[-1])


@pytest.mark.parametrize("method", METHODS)
def test_iterates(results, method):
    found = {case: numbers for case, numbers in results[method].items() if case != "sums"}
    assert set(found) == (CASES | OF_CG if method.startswith("CG:") else CASES)
    for case, (iterations, reason, wanted, their_reason, early, solution) in found.items():
        assert (iterations, reason) == (wanted, their_reason) and reason > 0, case
        assert iterations > 2, case
        assert early < 1e-9 and solution < 1e-4, (case, early, solution)


def test_sums_over_ranks(results):
    """Two an iteration, one with -ksp_cg_single_reduction and by default, and one more for the first residual."""
    for method, each in (("CG:cg", 2), (SINGLE, 1)):
        iterations, sums, by_default, theirs = results[method]["sums"]
        assert iterations > 20 and sums == each * iterations + 1 and theirs == by_default + 1


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.full)])
def test_solves_without_the_host(mpirun, ranks):
    """Solutions by exchanges and sums that are launches are those by exchanges through the host."""
    rows = json.loads(mpirun(ranks, RUN.with_name("run_peers.py")).stdout.splitlines()[-1])
    iterations, exchanges = rows.pop("alone")  # all cells on one rank: sums over ranks alone
    assert abs(iterations - rows["cg_gpu"][1]) <= 1 and exchanges == 2 * (iterations + 1)
    assert set(rows) == {"cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu"}
    for scheme, (by_windows, by_peers, difference, exchanges, error) in rows.items():
        assert by_windows == by_peers > 3 and exchanges > 5 * by_peers, scheme
        assert difference < 1e-6 and (0 < error < 1e-14) == (scheme == "cg_gpu"), scheme
