"""The same norms for any number of ranks, partition and vertex order; the same bits between two runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from rank_norms import assert_same, expected_of, norms, norms_of
from sample_meshes import SHAPES

SCRIPT = Path(__file__).with_name("run_ranks.py")
QUICK = "triangle"  # the shape of the quick tier
TOLERANCE = 1e-12
# {ranks: runs}
RUNS = {1: ("1", "2", "1 two cells"), 2: ("3 few",), 3: ("4", "8", "9"), 4: ("5 few", "2 two cells"), 7: ("6 few",)}


RANKS = [(1, 2), (2, 3), pytest.param(3, 4, marks=pytest.mark.quick), (4, 5), (7, 6)]  # and seeds


@pytest.fixture(scope="module")
def found(mpirun, request):
    return norms_of(mpirun, SCRIPT, RUNS, QUICK if request.config.getoption("--quick") else "")


@pytest.fixture(scope="module")
def serial(found):
    found = found(1, 1)
    assert set(found) in (set(SHAPES), {QUICK})
    return found


@pytest.mark.parametrize("ranks, seed", RANKS)
def test_norms_do_not_depend_on_ranks_or_orders(found, serial, ranks, seed, record_property):
    record_property("difference", assert_same(found(ranks, seed), expected_of(serial, ranks), TOLERANCE))


def test_more_ranks_than_cells(found):
    alone, many = found(1, "1 two cells"), found(4, "2 two cells")
    assert all(values["cells"] == 2 and values["empty"] >= 2 for values in many.values())
    assert_same(many, alone, TOLERANCE)


def test_bits_are_the_same_between_runs(mpirun, found):
    first, second = found(3, 8), norms(mpirun, SCRIPT, 3, "8")["8"]
    assert {cell: values["bits"] for cell, values in first.items()} == {
        cell: values["bits"] for cell, values in second.items()
    }
    other = found(3, 9)
    assert first["triangle"]["bits"] != other["triangle"]["bits"], "the bits say nothing"


def test_any_overlap_of_the_users(mpirun):
    """All schemes on meshes that were distributed with 0, 1 and 2 layers of other ranks' cells."""
    assert "the same with any overlap on 2 ranks" in mpirun(2, SCRIPT.with_name("run_users_overlap.py")).stdout
