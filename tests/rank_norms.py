"""Norms that a script prints under mpiexec, as JSON {case: {name: number}}, and how those of two runs compare."""

from __future__ import annotations

import json

COUNTED = ("unknowns", "cells")  # equal, not only to rounding
OWN = ("bits", "empty")  # of each run by itself
ERRORS = ("L2", "H1", "star")  # carry the round-off of the solution


def norms(mpirun, script, ranks: int, seed: int, *more, timeout: float = 200) -> dict:
    """The last line of a script's output on so many ranks."""
    return json.loads(mpirun(ranks, script, seed, *more, timeout=timeout).stdout.splitlines()[-1])


def assert_same(found: dict, expected: dict, tolerance: float) -> float:
    """Largest difference relative to the norm compared: errors to the solution, sums to the residual."""
    assert set(found) == set(expected)
    worst = 0.0
    for case, values in expected.items():
        for name, value in values.items():
            if name in COUNTED:
                assert found[case][name] == value
            elif name not in OWN:
                scale = values["solution"] if name in ERRORS else values["residual"] if name == "sum" else abs(value)
                assert scale > 1e-3, (case, name)
                worst = max(worst, abs(found[case][name] - value) / scale)
    assert worst < tolerance, worst
    return worst
