"""Norms that a script prints under mpiexec, as JSON {run: {case: {name: number}}}, and how those of two compare.

A run is SEED, "SEED two cells", "SEED few" of two shapes, or "SEED SHAPE". Those on as many ranks share processes.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module

from run_ranks import FEW, norms_of_runs

ALL_SHAPES = (1, 3)  # ranks of the runs with all shapes: others have few
COUNTED = ("unknowns", "cells")  # equal, not only to rounding
OWN = ("bits", "empty")  # of each run by itself
ERRORS = ("L2", "H1", "star")  # carry the round-off of the solution


def norms(mpirun, script, ranks: int, *runs: str) -> dict:
    """What a script finds: on one rank in this process, else the last line of its output on so many ranks."""
    if ranks == 1:
        return norms_of_runs(import_module(script.stem).main, runs)
    return json.loads(mpirun(ranks, script, *runs).stdout.splitlines()[-1])


def norms_of(mpirun, script, runs: dict[int, tuple[str, ...]], shape: str = ""):
    """A function of ranks and run, for the runs {ranks: runs} of a script: those on as many ranks start with the first
    that is asked for; with a shape each starts alone, on that. Run 3 is "3 few" where the script has that alone."""
    on = cache(lambda ranks, started: norms(mpirun, script, ranks, *started))

    def found(ranks: int, run) -> dict:
        on_few, on_shape = f"{run} few", f"{run} {shape}"
        if shape:
            return on(ranks, (on_shape,))[on_shape]
        return on(ranks, runs[ranks])[on_few if on_few in runs[ranks] else str(run)]

    return found


def expected_of(serial: dict, ranks: int) -> dict:
    """Norms on one rank of the shapes that a run on so many ranks has."""
    return {shape: values for shape, values in serial.items() if ranks in ALL_SHAPES or shape in FEW}


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
