"""The same norms for any number of ranks, partition and vertex order; the same bits between two runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sample_meshes import SHAPES

SCRIPT = Path(__file__).parents[1] / "run_ranks.py"
TOLERANCE = 1e-12


def norms(mpirun, ranks: int, seed: int, *more) -> dict:
    return json.loads(mpirun(ranks, SCRIPT, seed, *more, timeout=60).stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def serial(mpirun):
    found = norms(mpirun, 1, 1)
    assert set(found) == set(SHAPES)
    return found


def assert_same(found: dict, expected: dict) -> float:
    """Largest difference relative to the norm compared (errors: to the solution, whose round-off they carry)."""
    assert set(found) == set(expected)
    worst = 0.0
    for cell, values in expected.items():
        for name, value in values.items():
            if name in ("unknowns", "cells"):
                assert found[cell][name] == value
            elif name not in ("bits", "empty"):
                scale = values["solution"] if name in ("L2", "H1") else abs(value)
                worst = max(worst, abs(found[cell][name] - value) / scale)
    assert worst < TOLERANCE, worst
    return worst


@pytest.mark.parametrize("ranks, seed", [(1, 2), (2, 3), (3, 4), (4, 5), (7, 6)])
def test_norms_do_not_depend_on_ranks_or_orders(mpirun, serial, ranks, seed, record_property):
    record_property("difference", assert_same(norms(mpirun, ranks, seed), serial))


def test_more_ranks_than_cells(mpirun):
    alone, many = norms(mpirun, 1, 1, "two cells"), norms(mpirun, 4, 2, "two cells")
    assert all(values["cells"] == 2 and values["empty"] >= 2 for values in many.values())
    assert_same(many, alone)


def test_bits_are_the_same_between_runs(mpirun):
    first, second = norms(mpirun, 3, 8), norms(mpirun, 3, 8)
    assert {cell: values["bits"] for cell, values in first.items()} == {
        cell: values["bits"] for cell, values in second.items()
    }
    other = norms(mpirun, 3, 9)
    assert first["triangle"]["bits"] != other["triangle"]["bits"], "the bits say nothing"
