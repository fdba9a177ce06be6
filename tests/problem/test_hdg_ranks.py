"""Condensed problems have the same norms for any number of ranks, partition and order of vertices."""

from __future__ import annotations

from pathlib import Path

import pytest
from rank_norms import assert_same, expected_of, norms_of
from sample_meshes import SHAPES

SCRIPT = Path(__file__).with_name("run_hdg_ranks.py")
QUICK = "hexahedron"  # the shape of the quick tier
TOLERANCE = 1e-11
# {ranks: runs}
RUNS = {1: ("1", "2", "1 two cells"), 2: ("3 few",), 3: ("4",), 4: ("5 few", "2 two cells"), 7: ("6 few",)}


RANKS = [(1, 2), (2, 3), pytest.param(3, 4, marks=pytest.mark.quick), (4, 5), (7, 6)]  # and seeds


@pytest.fixture(scope="module")
def found(mpirun, request):
    return norms_of(mpirun, SCRIPT, RUNS, QUICK if request.config.getoption("--quick") else "")


@pytest.fixture(scope="module")
def serial(found):
    found = found(1, 1)
    assert set(found) in (set(SHAPES), {QUICK})
    for values in found.values():
        assert abs(values["full"] - values["solution"]) < 1e-10 * values["solution"]
    return found


@pytest.mark.parametrize("ranks, seed", RANKS)
def test_norms_do_not_depend_on_ranks_or_orders(found, serial, ranks, seed, record_property):
    record_property("difference", assert_same(found(ranks, seed), expected_of(serial, ranks), TOLERANCE))


def test_more_ranks_than_cells(found):
    alone, many = found(1, "1 two cells"), found(4, "2 two cells")
    assert all(values["cells"] == 2 for values in many.values())
    assert_same(many, alone, TOLERANCE)
