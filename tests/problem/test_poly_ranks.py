"""Polytopic DG has the same matrix and vectors on any number of ranks, for any partition and order of vertices."""

from __future__ import annotations

from pathlib import Path

import pytest
from rank_norms import expected_of, norms_of

SCRIPT = Path(__file__).with_name("run_poly_ranks.py")
TOLERANCE = 1e-12
RUNS = {1: ("1", "2"), 2: ("3 few",), 3: ("4",), 4: ("5 few",), 7: ("6 few",)}  # {ranks: runs}


RANKS = [(1, 2), (2, 3), pytest.param(3, 4, marks=pytest.mark.quick), (4, 5), (7, 6)]  # and seeds


@pytest.fixture(scope="module")
def runs(mpirun, request):
    return norms_of(mpirun, SCRIPT, RUNS, "triangle" if request.config.getoption("--quick") else "")


@pytest.mark.parametrize("ranks, seed", RANKS)
def test_matrices_do_not_depend_on_ranks_or_orders(runs, ranks, seed, record_property):
    found, serial = runs(ranks, seed), expected_of(runs(1, 1), ranks)
    assert set(found) == set(serial)
    for cell, expected in serial.items():
        assert found[cell]["sizes"] == expected["sizes"], cell
        record_property(f"balance of {cell}", found[cell]["balance"])
        for name in set(expected) - {"sizes", "balance"}:
            assert abs(found[cell][name] - expected[name]) < TOLERANCE * abs(expected[name]), (cell, name)
