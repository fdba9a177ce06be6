"""Interior penalty has the same norms on any number of ranks, for any partition and order of vertices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sample_meshes import SHAPES

SCRIPT = Path(__file__).parents[1] / "run_sipg_ranks.py"
TOLERANCE = 1e-11


def norms(mpirun, ranks: int, seed: int, *more) -> dict:
    return json.loads(mpirun(ranks, SCRIPT, seed, *more, timeout=200).stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def serial(mpirun):
    found = norms(mpirun, 1, 1)
    assert set(found) == {*SHAPES, "E"}
    return found


def assert_same(found: dict, expected: dict) -> float:
    """Largest difference relative to the norm compared (errors: to the solution, whose round-off they carry)."""
    assert set(found) == set(expected)
    worst = 0.0
    for case, values in expected.items():
        assert found[case]["cells"] == values["cells"]
        for name, value in values.items():
            scale = values["solution"] if name in ("L2", "H1") else values["residual"] if name == "sum" else abs(value)
            assert scale > 1e-3
            worst = max(worst, abs(found[case][name] - value) / scale)
    assert worst < TOLERANCE, worst
    return worst


@pytest.mark.parametrize("ranks, seed", [(1, 2), (2, 3), (3, 4), (4, 5), (7, 6)])
def test_norms_do_not_depend_on_ranks_or_orders(mpirun, serial, ranks, seed, record_property):
    record_property("difference", assert_same(norms(mpirun, ranks, seed), serial))


def test_more_ranks_than_cells(mpirun):
    alone, many = norms(mpirun, 1, 1, "two cells"), norms(mpirun, 4, 2, "two cells")
    assert all(values["cells"] == 2 for values in many.values())
    assert_same(many, alone)
