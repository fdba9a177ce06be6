"""Condensed problems have the same norms for any number of ranks, partition and order of vertices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sample_meshes import SHAPES

SCRIPT = Path(__file__).parents[1] / "run_hdg_ranks.py"
TOLERANCE = 1e-11


def norms(mpirun, ranks: int, seed: int, *more) -> dict:
    return json.loads(mpirun(ranks, SCRIPT, seed, *more, timeout=120).stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def serial(mpirun):
    found = norms(mpirun, 1, 1)
    assert set(found) == set(SHAPES)
    for values in found.values():
        assert abs(values["full"] - values["solution"]) < 1e-10 * values["solution"]
    return found


def assert_same(found: dict, expected: dict) -> float:
    """Largest difference relative to the norm compared (errors: to the solution, whose round-off they carry)."""
    assert set(found) == set(expected)
    worst = 0.0
    for cell, values in expected.items():
        for name, value in values.items():
            if name in ("unknowns", "cells"):
                assert found[cell][name] == value
            else:
                scale = values["solution"] if name in ("L2", "H1", "star") else abs(value)
                worst = max(worst, abs(found[cell][name] - value) / scale)
    assert worst < TOLERANCE, worst
    return worst


@pytest.mark.parametrize("ranks, seed", [(1, 2), (2, 3), (3, 4), (4, 5), (7, 6)])
def test_norms_do_not_depend_on_ranks_or_orders(mpirun, serial, ranks, seed, record_property):
    record_property("difference", assert_same(norms(mpirun, ranks, seed), serial))


def test_more_ranks_than_cells(mpirun):
    alone, many = norms(mpirun, 1, 1, "two cells"), norms(mpirun, 4, 2, "two cells")
    assert all(values["cells"] == 2 for values in many.values())
    assert_same(many, alone)
