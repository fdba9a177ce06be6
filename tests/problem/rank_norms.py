"""Norms that a script prints under mpiexec, as JSON {run: {case: {name: number}}}, and how those of two compare.

A run is SEED, "SEED two cells", or "SEED few" of two shapes. Those on as many ranks share their processes.
"""

from __future__ import annotations

import json
from functools import cache

COUNTED = ("unknowns", "cells")  # equal, not only to rounding
OWN = ("bits", "empty")  # of each run by itself
ERRORS = ("L2", "H1", "star")  # carry the round-off of the solution


def norms(mpirun, script, ranks: int, *runs: str) -> dict:
    """The last line of a script's output on so many ranks."""
    return json.loads(mpirun(ranks, script, *runs).stdout.splitlines()[-1])


def norms_of(mpirun, script, runs: dict[int, tuple[str, ...]], few: bool = False):
    """A function of ranks and run, for the runs {ranks: runs} of a script: those on as many ranks start with the first
    that is asked for; with `few` each starts alone, on few shapes."""
    on = cache(lambda ranks, started: norms(mpirun, script, ranks, *started))
    if few:
        return lambda ranks, run: on(ranks, (f"{run} few",))[f"{run} few"]
    return lambda ranks, run: on(ranks, runs[ranks])[str(run)]


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
